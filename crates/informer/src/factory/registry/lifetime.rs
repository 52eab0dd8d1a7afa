//! Determines when a running informer must end.
//!
//! An informer must end in each of these cases:
//!
//! - The factory ends.
//! - The program stops the informer.
//! - During the idle grace period, neither a [`Hold`](crate::factory::Hold) nor the factory kept the informer
//!   running.
//!
//! The function that runs the informer ends the informer's tasks.

use std::{sync::Weak, time::Duration};

use tokio::sync::watch;

use super::{EntryId, Registry};
use crate::{clock, status::InformerError};

/// Whether a running informer is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Demand {
    /// A handle ([`Hold`](crate::factory::Hold)) or the factory keeps the informer running.
    Wanted,
    /// Nothing keeps the informer running. The informer ends after the idle grace period.
    Idle,
    /// The informer must end, even if a handle or the factory keeps it running.
    Ended,
}

impl Demand {
    /// If `self` equals `before`, sets `self` to `after`. Returns whether `self` was set.
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
    /// If the idle grace period has passed, the informer is removed from the registry before the method
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

    /// Reports to the registry that the informer's tasks have ended, and the error of a failed informer.
    pub(in super::super) fn end(self, failure: Option<InformerError>) {
        if let Some(registry) = self.registry.upgrade() {
            if let Some(failure) = failure {
                registry.failed(failure);
            }
            registry.clear(self.id);
        }
    }
}
