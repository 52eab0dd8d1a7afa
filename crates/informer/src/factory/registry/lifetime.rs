//! Determines when a running informer must end.
//!
//! An informer must end when its factory ends, when the program requests it, or when the idle grace period
//! has passed after the program dropped the informer's last [`Hold`](crate::factory::Hold). This module does
//! not end the informer's tasks. The function that runs the informer does.

use std::{sync::Weak, time::Duration};

use tokio::sync::watch;

use super::{EntryId, Registry};
use crate::{clock, status::InformerError};

/// Whether a running informer is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Demand {
    /// A handle ([`Hold`](crate::factory::Hold)) or the factory keeps the informer running.
    Wanted,
    /// Neither a handle ([`Hold`](crate::factory::Hold)) nor the factory keeps the informer running. The
    /// informer ends after the idle grace period.
    Idle,
    /// The informer must end, even if a handle or the factory keeps it running.
    Ended,
}

impl Demand {
    /// If `self` equals `before`, sets `self` to `after` and returns true. Otherwise returns false.
    pub(super) fn becomes(&mut self, before: Self, after: Self) -> bool {
        let changes = *self == before;
        if changes {
            *self = after;
        }
        changes
    }
}

/// The signals that end one running informer.
///
/// The shutdown of the factory waits until every `Lifetime` is dropped.
pub(in super::super) struct Lifetime {
    pub(super) registry: Weak<Registry>,
    pub(super) id: EntryId,
    pub(super) demand: watch::Receiver<Demand>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) idle_grace: Duration,
}

impl Lifetime {
    /// Waits until the informer must end.
    ///
    /// If the idle grace period has passed, this method removes the informer from the registry before it
    /// returns.
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

    /// Reports the end of the informer's tasks, and the error of a failed informer, to the registry.
    pub(in super::super) fn end(self, failure: Option<InformerError>) {
        if let Some(registry) = self.registry.upgrade() {
            if let Some(failure) = failure {
                registry.failed(failure);
            }
            registry.clear(self.id);
        }
    }
}
