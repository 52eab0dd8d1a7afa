//! [`DelayingQueue`] adds items to a [`Queue`] at a later time.
//!
//! The delaying queue is a plain struct that never waits and reads no clock: the caller passes the current
//! time. Each time is a duration since a fixed origin that the caller selects.
//!
//! Guarantees: no item enters the queue before its time. Items enter the queue in the order of their times.
//! Items with equal times enter in the order of their addition. If a delayed item is added again, the earlier
//! of the two times applies. A shut-down drops all delayed items.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Duration;

use super::lookup::Lookup;
use super::order::Order;
use super::queue::{Phase, Queue};

pub(super) struct DelayingQueue<T> {
    queue: Queue<T>,
    /// Time at which each delayed item is queued; contains the same items as `calendar`.
    due: Lookup<T, Due>,
    calendar: BTreeMap<Due, T>,
    next_turn: u64,
}

/// Time at which a delayed item is queued; `turn` orders items with equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Duration,
    turn: u64,
}

impl<T: Clone + Eq + Hash> DelayingQueue<T> {
    pub(super) fn new(order: Option<Box<dyn Order<T>>>) -> Self {
        Self {
            queue: Queue::new(order),
            due: Lookup::default(),
            calendar: BTreeMap::new(),
            next_turn: 0,
        }
    }

    /// Returns the inner queue. Items whose delay has ended enter this queue at the next
    /// [`DelayingQueue::promote`].
    pub(super) fn queue(&mut self) -> &mut Queue<T> {
        &mut self.queue
    }

    pub(super) fn add_at(&mut self, item: T, at: Duration) {
        if self.queue.is_shutting_down() {
            return;
        }
        if let Some(&earlier) = self.due.get(&item) {
            if earlier.at <= at {
                return;
            }
            self.calendar.remove(&earlier);
        }
        let due = Due {
            at,
            turn: self.next_turn,
        };
        self.next_turn += 1;
        self.due.insert(item.clone(), due);
        self.calendar.insert(due, item);
    }

    /// Moves items whose delay has ended at `now` to the inner queue.
    pub(super) fn promote(&mut self, now: Duration) {
        while let Some(first) = self.calendar.first_entry()
            && first.key().at <= now
        {
            let item = first.remove();
            self.due.remove(&item);
            self.queue.add(item);
        }
    }

    /// Returns the earliest time at which a delayed item is queued, or `None` if no item is delayed.
    pub(super) fn earliest(&self) -> Option<Duration> {
        self.calendar.first_key_value().map(|(due, _)| due.at)
    }

    pub(super) fn cancel(&mut self, item: &T) -> bool {
        match self.due.remove(item) {
            Some((_, due)) => self.calendar.remove(&due).is_some(),
            None => false,
        }
    }

    pub(super) fn delayed_len(&self) -> usize {
        self.calendar.len()
    }

    /// Returns each delayed item and the end of its delay, earliest first.
    pub(super) fn delayed(&self) -> impl Iterator<Item = (&T, Duration)> {
        self.calendar.iter().map(|(due, item)| (item, due.at))
    }

    pub(super) fn shut_down(&mut self, phase: Phase) {
        self.queue.shut_down(phase);
        self.due.clear();
        self.calendar.clear();
    }
}

#[cfg(test)]
mod tests;
