//! [`Queue`]: the queued items and the items in work.
//!
//! A plain struct that does not wait; it reads the clock only for metrics.
//!
//! An item is queued at most once, is not returned while it is in work, and is returned again if it was added
//! in the meantime. The queue holds no reference to an item that is done.
//!
//! client-go keeps two sets, *dirty* (needs work) and *processing* (in work).
//! The two give four combinations, so here an item has one [`Stage`], or none:
//!
//! | dirty | processing | here |
//! | --- | --- | --- |
//! | no | no | unknown to the queue |
//! | yes | no | [`Stage::Queued`], and in the order |
//! | no | yes | [`Stage::Processing`] |
//! | yes | yes | [`Stage::Dirtied`], and not in the order until it is done |

use std::collections::hash_map::Entry;
use std::hash::{Hash, RandomState};
use std::mem;

use super::hashed::{Hashed, HashedLookup};
use super::order::{Arrangement, Order};
use super::timing::Timing;
use crate::metrics::{WorkQueueObserved, WorkQueueSample};

pub(super) struct Queue<T> {
    hash_state: RandomState,
    stages: HashedLookup<T, Stage>,
    /// The items whose stage is [`Stage::Queued`], and no others.
    order: Arrangement<T>,
    /// Number of items in stage [`Stage::Processing`] or [`Stage::Dirtied`].
    processing: usize,
    /// Number of items in stage [`Stage::Dirtied`].
    dirtied: usize,
    phase: Phase,
    /// Changes since the last [`Queue::take_wake_ups`] for which tasks may have to be woken.
    wake_ups: WakeUps,
    /// Measurement that is not reported yet; `None` without metrics.
    observed: Option<WorkQueueObserved>,
    /// Number of accepted items.
    adds: u64,
    /// Measures waiting and working times; `None` without metrics.
    timing: Option<Timing<T>>,
}

/// Changes of a queue for which waiting tasks may have to be woken.
#[derive(Default)]
pub(super) struct WakeUps {
    /// Number of items put into the order.
    pub(super) pushed: usize,
    /// Whether a shut-down has started or advanced, so that a wait may end.
    pub(super) ending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The item waits for a worker, and is in the order.
    Queued,
    /// The item is in work.
    Processing,
    /// The item is in work and was added again: it is queued again when it is done.
    Dirtied,
}

/// The progress of a shut-down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Items are accepted.
    Running,
    /// No items are accepted, and a caller waits until all items are done.
    Draining,
    /// No items are accepted, and no caller waits for items in work.
    ShutDown,
}

/// The result of a request for an item.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    Item(T),
    /// No item is queued now; an item may be queued later.
    Nothing,
    /// No item is queued now, and none will be queued later.
    End,
}

impl<T: Clone + Eq + Hash> Queue<T> {
    /// Creates an empty queue with this order, or with first in, first out if it is `None`.
    pub(super) fn new(order: Option<Box<dyn Order<T>>>) -> Self {
        Self {
            hash_state: RandomState::new(),
            stages: HashedLookup::default(),
            order: Arrangement::new(order),
            processing: 0,
            dirtied: 0,
            phase: Phase::Running,
            wake_ups: WakeUps::default(),
            observed: None,
            adds: 0,
            timing: None,
        }
    }

    /// Starts to measure waiting and working times.
    pub(super) fn time(&mut self) {
        self.timing = Some(Timing::default());
    }

    pub(super) fn add(&mut self, item: T) {
        if self.is_shutting_down() {
            return;
        }
        match self.stages.entry(Hashed::new(item, &self.hash_state)) {
            Entry::Vacant(unknown) => {
                self.adds += 1;
                if let Some(timing) = &mut self.timing {
                    timing.added(unknown.key());
                }
                self.order.push(unknown.key());
                unknown.insert(Stage::Queued);
                self.wake_ups.pushed += 1;
            }
            Entry::Occupied(mut known) => match known.get() {
                Stage::Queued => self.order.touch(known.key()),
                Stage::Processing => {
                    self.adds += 1;
                    if let Some(timing) = &mut self.timing {
                        timing.added(known.key());
                    }
                    known.insert(Stage::Dirtied);
                    self.dirtied += 1;
                }
                Stage::Dirtied => {}
            },
        }
    }

    pub(super) fn next(&mut self) -> Next<Hashed<T>> {
        while let Some(item) = self.order.pop(&self.hash_state) {
            // A user's order may return an item that was not pushed.
            if let Some(stage @ Stage::Queued) = self.stages.get_mut(&item) {
                *stage = Stage::Processing;
                self.processing += 1;
                if let Some(timing) = &mut self.timing {
                    self.observed = timing.handed_out(&item);
                }
                return Next::Item(item);
            }
        }
        match self.phase {
            Phase::Running => Next::Nothing,
            // A dirtied item is queued again, and its current worker may not live to receive it.
            Phase::Draining if self.dirtied > 0 => Next::Nothing,
            Phase::Draining | Phase::ShutDown => Next::End,
        }
    }

    /// Ends the work on an item that [`Queue::next`] returned. Only an `Item` calls this, once.
    pub(super) fn done(&mut self, item: &Hashed<T>) {
        self.wake_ups.ending |= self.is_shutting_down();
        if let Some(timing) = &mut self.timing {
            self.observed = timing.done(item);
        }
        match self.stages.remove(item) {
            Some((_, Stage::Processing)) => self.processing -= 1,
            Some((item, Stage::Dirtied)) => {
                self.processing -= 1;
                self.dirtied -= 1;
                self.order.push(&item);
                self.stages.insert(item, Stage::Queued);
                self.wake_ups.pushed += 1;
            }
            Some((item, stage @ Stage::Queued)) => {
                debug_assert!(false, "an item in work is never queued");
                self.stages.insert(item, stage);
            }
            None => debug_assert!(
                false,
                "an item in work is known, unless its hash has changed"
            ),
        }
    }

    /// Starts a shut-down. A drain may follow a plain shut-down, and the reverse; the last call applies.
    pub(super) fn shut_down(&mut self, phase: Phase) {
        debug_assert_ne!(phase, Phase::Running, "a queue does not start again");
        self.phase = phase;
        self.wake_ups.ending = true;
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.phase != Phase::Running
    }

    /// Returns whether no item is queued and none is in work.
    pub(super) fn is_idle(&self) -> bool {
        self.processing == 0 && self.order.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn processing(&self) -> usize {
        self.processing
    }

    pub(super) fn sample(&self) -> WorkQueueSample {
        let mut sample = WorkQueueSample {
            depth: self.len() + self.dirtied,
            adds: self.adds,
            ..WorkQueueSample::default()
        };
        if let Some(timing) = &self.timing {
            timing.sample(&mut sample);
        }
        sample
    }

    pub(super) fn take_wake_ups(&mut self) -> WakeUps {
        mem::take(&mut self.wake_ups)
    }

    pub(super) fn take_observed(&mut self) -> Option<WorkQueueObserved> {
        self.observed.take()
    }
}

#[cfg(test)]
mod tests;
