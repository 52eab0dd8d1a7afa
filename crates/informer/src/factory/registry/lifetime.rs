//! The lifetime of one informer: it ends with the factory, alone, or after its last hold is dropped.
//!
//! The module decides when the informer ends. It does not stop the informer's tasks itself.

use std::{sync::Weak, time::Duration};

use tokio::sync::watch;

use super::{EntryId, Registry};
use crate::{clock, status::InformerError};

/// Whether a running informer is still needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Demand {
    /// The informer has a hold, or is pinned until the factory ends.
    Wanted,
    /// The informer has no pin and no hold.
    Idle,
    /// The informer must end.
    Ended,
}

impl Demand {
    /// Changes the demand to `after` if it is `before`; returns whether it changed.
    pub(super) fn becomes(&mut self, before: Self, after: Self) -> bool {
        let changes = *self == before;
        if changes {
            *self = after;
        }
        changes
    }
}

/// Receives the signals that end one running informer.
///
/// The receivers are dropped after the informer's last task has ended. Shutdown waits for these receivers to
/// be dropped.
pub(in super::super) struct Lifetime {
    pub(super) registry: Weak<Registry>,
    pub(super) id: EntryId,
    pub(super) demand: watch::Receiver<Demand>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) idle_grace: Duration,
}

impl Lifetime {
    /// Waits until the informer must end.
    pub(in super::super) async fn over(&mut self) {
        loop {
            let demand = *self.demand.borrow_and_update();
            if demand == Demand::Ended {
                return;
            }
            let grace_ends = (demand == Demand::Idle).then(|| clock::from_now(self.idle_grace));
            tokio::select! {
                biased;
                // An error means that the factory was dropped, which also ends its informers.
                _ = self.stop.wait_for(|stop| *stop) => return,
                // The entry owns the sender. An error means that another informer has replaced the entry.
                changed = self.demand.changed() => if changed.is_err() {
                    return;
                },
                () = clock::until(grace_ends) => {
                    let registry = self.registry.upgrade();
                    if registry.is_none_or(|registry| registry.retire(self.id)) {
                        return;
                    }
                }
            }
        }
    }

    /// Reports that the informer's tasks have ended; `failure` is the error if the informer failed.
    pub(in super::super) fn end(self, failure: Option<InformerError>) {
        if let Some(registry) = self.registry.upgrade() {
            if let Some(failure) = failure {
                registry.failed(failure);
            }
            registry.clear(self.id);
        }
    }
}
