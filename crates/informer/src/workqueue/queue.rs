//! What is queued and what is in work: a plain struct that knows no waiting; nor time, unless its
//! figures are collected.
//!
//! It guarantees that an item is queued at most once, is never handed out while it is in work, and
//! is handed out again if it was added in the meantime; and that it holds no reference to an item
//! that is done.
//!
//! client-go keeps two sets, *dirty* (needs work) and *processing* (in work).
//! An item is in one of four positions with respect to them, so here it has one [`Stage`], or none:
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
    /// Exactly the items whose stage is [`Stage::Queued`].
    order: Arrangement<T>,
    /// How many stages are [`Stage::Processing`] or [`Stage::Dirtied`].
    processing: usize,
    /// How many stages are [`Stage::Dirtied`].
    dirtied: usize,
    phase: Phase,
    /// What has happened since [`Queue::take_wake_ups`] was last asked.
    wake_ups: WakeUps,
    /// What a collector of figures has not heard yet.
    observed: Option<WorkQueueObserved>,
    /// How many items were accepted.
    adds: u64,
    /// Only if somebody wants to know.
    timing: Option<Timing<T>>,
}

/// What waiting tasks may have to be told of.
#[derive(Default)]
pub(super) struct WakeUps {
    /// How many items were put into the order.
    pub(super) pushed: usize,
    /// A shut-down has begun or come further, so that a waiting may have ended.
    pub(super) ending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Needs work, and waits in the order.
    Queued,
    /// Is in work.
    Processing,
    /// Is in work and was added again: goes back into the order when it is done.
    Dirtied,
}

/// How far the shut-down has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Items are accepted.
    Running,
    /// Nothing is accepted; somebody waits until everything is done.
    Draining,
    /// Nothing is accepted; nobody waits for what is in work.
    ShutDown,
}

/// What a worker that asks for an item is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    Item(T),
    /// Nothing now, perhaps later.
    Nothing,
    /// Nothing, and never again.
    End,
}

impl<T: Clone + Eq + Hash> Queue<T> {
    /// First in, first out, without an `order`.
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

    /// From now on it is measured how long items wait and are worked on.
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
            // An order that somebody else wrote may hand out what it was never given.
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
            // A dirtied item comes back, and the worker that holds it may not live to take it.
            Phase::Draining if self.dirtied > 0 => Next::Nothing,
            Phase::Draining | Phase::ShutDown => Next::End,
        }
    }

    /// Ends the work on an item that [`Queue::next`] handed out; only an `Item` calls this, once.
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

    /// A drain may follow a plain shut-down and the other way round; the last one counts.
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

    /// Whether nothing is queued and nothing is in work.
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
