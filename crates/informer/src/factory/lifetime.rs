//! How long one informer of a factory runs: until all are told to end, or this one is, or nobody has
//! held it for a while.

use std::{sync::Weak, time::Duration};

use tokio::{sync::watch, time::sleep};

use super::places::{PlaceId, Places};
use crate::status::InformerError;

/// What is wanted of an informer that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// Somebody holds it, or it is to run as long as the factory does.
    Wanted,
    /// Nobody holds it any more.
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

/// The time for which an informer runs. Its receivers live until the informer's last task has ended:
/// that is what whoever waits for the end waits for.
pub(super) struct Term {
    places: Weak<Places>,
    id: PlaceId,
    demand: watch::Receiver<Demand>,
    stop: watch::Receiver<bool>,
    idle_grace: Duration,
}

impl Term {
    pub(super) fn new(
        (places, id, demand): (Weak<Places>, PlaceId, watch::Receiver<Demand>),
        stop: watch::Receiver<bool>,
        idle_grace: Duration,
    ) -> Self {
        Self {
            places,
            id,
            demand,
            stop,
            idle_grace,
        }
    }

    /// Waits until it is over.
    pub(super) async fn over(&mut self) {
        loop {
            let demand = *self.demand.borrow_and_update();
            if demand == Demand::Ended {
                return;
            }
            let nobody_comes = async {
                match demand {
                    Demand::Idle => sleep(self.idle_grace).await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // An error says that the factory is gone, which ends its informers too.
                _ = self.stop.wait_for(|stop| *stop) => return,
                // The sender is with the place, which another informer has taken then.
                changed = self.demand.changed() => if changed.is_err() {
                    return;
                },
                () = nobody_comes => {
                    let places = self.places.upgrade();
                    if places.is_none_or(|places| places.retire(self.id)) {
                        return;
                    }
                }
            }
        }
    }

    /// The informer's tasks have ended, because it failed if there is an error.
    pub(super) fn end(self, failure: Option<InformerError>) {
        if let Some(places) = self.places.upgrade() {
            if let Some(failure) = failure {
                places.failed(failure);
            }
            places.clear(self.id);
        }
    }
}
