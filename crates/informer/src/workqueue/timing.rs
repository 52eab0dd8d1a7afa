//! [`Timing`] measures the waiting time and the working time of each item, for the metrics of a queue.
//!
//! The waiting time starts when the item is added, even if a worker still processes the item. The waiting
//! time ends when a worker receives the item. Additions of an item that already waits have no effect.
//! `Timing` keeps no state for an item that is neither queued nor in work.

use derive_where::derive_where;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::lookup::Lookup;
use crate::metrics::{WorkQueueObserved, WorkQueueSample};

#[derive_where(Default)]
pub(super) struct Timing<T> {
    added: Lookup<T, Instant>,
    /// Identifier of each item in work. An item has a new identifier each time a worker receives the item.
    started: Lookup<T, u64>,
    /// For each item that a worker processes, the time at which the worker received the item. The key is the
    /// item's identifier in `started`.
    running: BTreeMap<u64, Instant>,
    next_turn: u64,
}

impl<T: Clone + Eq + Hash> Timing<T> {
    /// Records the time at which an item starts to wait for a worker.
    pub(super) fn added(&mut self, item: &T) {
        self.added.insert(item.clone(), Instant::now());
    }

    pub(super) fn handed_out(&mut self, item: &T) -> Option<WorkQueueObserved> {
        let now = Instant::now();
        let turn = self.next_turn;
        self.next_turn += 1;
        self.started.insert(item.clone(), turn);
        self.running.insert(turn, now);
        let (_, added) = self.added.remove(item)?;
        Some(WorkQueueObserved::Queued(now - added))
    }

    pub(super) fn done(&mut self, item: &T) -> Option<WorkQueueObserved> {
        let (_, turn) = self.started.remove(item)?;
        let started = self.running.remove(&turn)?;
        Some(WorkQueueObserved::Worked(started.elapsed()))
    }

    /// Writes the sum and the maximum of the working times of all unfinished items into `sample`.
    pub(super) fn sample(&self, sample: &mut WorkQueueSample) {
        let now = Instant::now();
        let ages = self.running.values().map(|started| now - *started);
        sample.unfinished = ages.clone().sum();
        sample.longest_running = ages.max().unwrap_or(Duration::ZERO);
    }
}
