//! How long one informer of a factory runs: until all are told to end, or this one is, or it has not been held
//! for a while.

use std::{sync::Weak, time::Duration};

use tokio::sync::watch;

use super::{EntryId, Registry};
use crate::{clock, status::InformerError};

/// What is wanted of an informer that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Demand {
    /// It is held, or is to run as long as the factory does.
    Wanted,
    /// It is no longer held.
    Idle,
    /// It is to end.
    Ended,
}

impl Demand {
    /// Changes if it was this before; one that is to end stays so.
    pub(super) fn becomes(&mut self, before: Self, after: Self) -> bool {
        let changes = *self == before;
        if changes {
            *self = after;
        }
        changes
    }
}

/// The time for which an informer runs. Its receivers live until the informer's last task has ended, which is what
/// those who wait for the end wait for.
pub(in super::super) struct Lifetime {
    pub(super) registry: Weak<Registry>,
    pub(super) id: EntryId,
    pub(super) demand: watch::Receiver<Demand>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) idle_grace: Duration,
}

impl Lifetime {
    /// Waits until it is over.
    pub(in super::super) async fn over(&mut self) {
        loop {
            let demand = *self.demand.borrow_and_update();
            if demand == Demand::Ended {
                return;
            }
            let grace_ends = (demand == Demand::Idle).then(|| clock::from_now(self.idle_grace));
            tokio::select! {
                biased;
                // An error says that the factory is gone, which ends its informers too.
                _ = self.stop.wait_for(|stop| *stop) => return,
                // The sender is with the entry, which another informer has replaced then.
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

    /// The informer's tasks have ended, because it failed if there is an error.
    pub(in super::super) fn end(self, failure: Option<InformerError>) {
        if let Some(registry) = self.registry.upgrade() {
            if let Some(failure) = failure {
                registry.failed(failure);
            }
            registry.clear(self.id);
        }
    }
}
