//! [`Queue`] contains the queued items and the items in work, and returns each item to one worker at a time.
//!
//! Guarantees: an item is queued at most once. The queue does not return an item that is in work. The queue
//! returns an item again if the item was added while it was in work. The queue keeps no copy of an item that
//! is done.
//!
//! The queue is a plain struct that never waits. It reads the clock only for metrics.
//!
//! client-go keeps two sets of items: *dirty* (needs work) and *processing* (in work). This queue keeps one
//! [`Stage`] for each item instead. A stage corresponds to a combination of the two sets:
//!
//! | dirty | processing | stage |
//! | --- | --- | --- |
//! | no | no | not in the queue |
//! | yes | no | [`Stage::Queued`]; the item waits for a worker |
//! | no | yes | [`Stage::Processing`] |
//! | yes | yes | [`Stage::Dirtied`]; the item is queued again when the worker is done |

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
    /// The items in stage [`Stage::Queued`], in the order in which workers receive them.
    order: Arrangement<T>,
    /// Number of items in work, which are in stage [`Stage::Processing`] or [`Stage::Dirtied`].
    processing: usize,
    /// Number of items in stage [`Stage::Dirtied`].
    dirtied: usize,
    phase: Phase,
    wake_ups: WakeUps,
    /// The last measured waiting or working time that is not yet reported to the metrics.
    observed: Option<WorkQueueObserved>,
    /// Number of additions that queued an item or moved it to stage [`Stage::Dirtied`].
    adds: u64,
    /// Measures the waiting and working times of items; `None` without metrics.
    timing: Option<Timing<T>>,
}

/// Changes since the last call of [`Queue::take_wake_ups`] that can wake waiting tasks.
#[derive(Default)]
pub(super) struct WakeUps {
    /// Number of items that were queued.
    pub(super) pushed: usize,
    /// Whether one of these events has occurred since the last call of [`Queue::take_wake_ups`]: a shut-down
    /// started, or an item was done during a shut-down.
    pub(super) ending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The item waits for a worker.
    Queued,
    /// A worker processes the item.
    Processing,
    /// A worker processes the item, and the item was added again meanwhile. When the worker is done, the item
    /// is queued again.
    Dirtied,
}

/// Whether a queue runs, is drained, or is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No shut-down has started: the queue accepts items.
    Running,
    /// The queue accepts no items. `RateLimitingQueue::shut_down_with_drain` waits until all items are done.
    Draining,
    /// The queue accepts no items. Pending calls of `RateLimitingQueue::shut_down_with_drain` return.
    ShutDown,
}

/// Result of a worker's request for the next item.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    Item(T),
    /// No item is queued now, but an item may be queued later.
    Nothing,
    /// No item is queued, and no item will be queued later.
    End,
}

impl<T: Clone + Eq + Hash> Queue<T> {
    /// Creates an empty queue, which is first-in, first-out if `order` is `None`.
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

    /// Starts to measure the waiting and working times of items, for metrics.
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
            // A dirtied item is queued again, and its current worker may end before it can receive the item.
            Phase::Draining if self.dirtied > 0 => Next::Nothing,
            Phase::Draining | Phase::ShutDown => Next::End,
        }
    }

    /// Ends the work on an item. If the item was added during the work, queues the item again.
    ///
    /// Must be called exactly once for each item that [`Queue::next`] returned.
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

    /// Starts a shut-down, with or without a drain. A later call replaces an earlier one.
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

    /// Returns whether no item is queued and no item is in work.
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
