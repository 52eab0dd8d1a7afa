//! Stores the messages that wait for delivery to one listener, and can merge messages about the same object.
//!
//! [`Waiting`] is a pure data structure: it does not block, it uses no locks, and it does not read the clock.

mod merge;

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

use derive_where::derive_where;
use tokio::time::Instant;

use self::merge::merged;
use super::notification::{Events, Expansion, Notification};
use crate::{event_handler::Event, object::ObjectName};

pub(super) struct Slot<K> {
    /// Number of messages that were pushed to the buffer before this message.
    pub(super) number: u64,
    /// Time at which the oldest change in this message was applied to the cache.
    pub(super) since: Instant,
    pub(super) notification: Notification<K>,
}

/// A queue of the messages that wait for one listener. A queue from [`each`](Self::each) keeps every message.
/// A queue from [`merged`](Self::merged) merges messages about the same object.
pub(super) struct Waiting<K> {
    pushed: u64,
    slots: Slots<K>,
}

enum Slots<K> {
    Each {
        slots: VecDeque<Slot<K>>,
        /// Number of waiting messages that are periodic resyncs.
        resyncs: usize,
    },
    Merged(Merged<K>),
}

impl<K> Waiting<K> {
    pub(super) fn each() -> Self {
        Self {
            pushed: 0,
            slots: Slots::Each {
                slots: VecDeque::new(),
                resyncs: 0,
            },
        }
    }

    pub(super) fn merged() -> Self {
        Self {
            pushed: 0,
            slots: Slots::Merged(Merged::default()),
        }
    }

    /// Adds a message, or merges it with waiting messages about the same objects.
    ///
    /// `since` is the time at which the oldest change in the message was applied to the cache. Returns the
    /// number of events that merging eliminated.
    pub(super) fn push(&mut self, notification: Notification<K>, since: Instant) -> u64 {
        let number = self.pushed;
        self.pushed += 1;
        let slot = Slot {
            number,
            since,
            notification,
        };
        match &mut self.slots {
            Slots::Each { slots, resyncs } => {
                *resyncs += usize::from(slot.notification.is_resync());
                slots.push_back(slot);
                0
            }
            Slots::Merged(slots) => slots.push(slot),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Slot<K>> {
        match &mut self.slots {
            Slots::Each { slots, resyncs } => {
                let slot = slots.pop_front()?;
                *resyncs -= usize::from(slot.notification.is_resync());
                Some(slot)
            }
            Slots::Merged(slots) => slots.pop(),
        }
    }

    /// Returns an upper limit for the number of single events that [`push`](Self::push) must process to add
    /// `pushed`. The limit is 0 if `push` only appends the message.
    ///
    /// The limit includes the events of an already waiting message if `push` must split that message.
    pub(super) fn unfolded_by(&self, pushed: &Notification<K>) -> usize {
        match &self.slots {
            Slots::Each { .. } => 0,
            Slots::Merged(slots) => slots.unfolded_by(pushed),
        }
    }

    /// Moves all messages to a new queue, and returns the new queue.
    pub(super) fn take(&mut self) -> Self {
        let slots = match self.slots {
            Slots::Each { .. } => Self::each().slots,
            Slots::Merged(_) => Self::merged().slots,
        };
        Self {
            pushed: self.pushed,
            slots: mem::replace(&mut self.slots, slots),
        }
    }

    /// Returns the total number of events in the waiting messages.
    pub(super) fn events(&self) -> u64 {
        let events = |slot: &Slot<K>| slot.notification.events();
        match &self.slots {
            Slots::Each { slots, .. } => slots.iter().map(events).sum(),
            Slots::Merged(slots) => slots.slots.values().map(events).sum(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.slots {
            Slots::Each { slots, .. } => slots.len(),
            Slots::Merged(slots) => slots.slots.len(),
        }
    }

    pub(super) fn oldest(&self) -> Option<&Slot<K>> {
        match &self.slots {
            Slots::Each { slots, .. } => slots.front(),
            Slots::Merged(slots) => slots.slots.first_key_value().map(|(_, slot)| slot),
        }
    }

    pub(super) fn pushed(&self) -> u64 {
        self.pushed
    }

    pub(super) fn has_resync(&self) -> bool {
        match &self.slots {
            Slots::Each { resyncs, .. } => *resyncs > 0,
            Slots::Merged(slots) => slots.resyncs > 0,
        }
    }

    /// Releases unused memory, but keeps memory for at least `capacity` messages.
    pub(super) fn shrink_to(&mut self, capacity: usize) {
        match &mut self.slots {
            Slots::Each { slots, .. } => slots.shrink_to(capacity),
            Slots::Merged(slots) => slots.positions.shrink_to(capacity),
        }
    }
}

/// Maps the name of each object to the queue position of its waiting message.
#[expect(
    clippy::disallowed_types,
    reason = "pure look-up, its order is never seen"
)]
type Positions = std::collections::HashMap<ObjectName, Position>;

/// Position in the queue: number of the pushed message, and index of the event in that message.
///
/// The index is 0 if the message was not split into single events.
type Position = (u64, u64);

/// A queue with at most one message per object.
///
/// A bulk message is a list, a resync or the initial objects. A bulk message stays whole only while no other
/// message about objects waits. The next pushed message, except [`Event::Synced`], splits the bulk message
/// into single events.
#[derive_where(Default)]
struct Merged<K> {
    slots: BTreeMap<Position, Slot<K>>,
    positions: Positions,
    /// Position of the waiting message with a list, a resync or the initial objects, if that message is not
    /// split into single events.
    ///
    /// While this field is set, no other message about objects waits.
    whole: Option<Position>,
    /// Number of waiting resync messages.
    resyncs: usize,
}

impl<K> Merged<K> {
    fn push(&mut self, slot: Slot<K>) -> u64 {
        let position = (slot.number, 0);
        match slot.notification {
            Notification::One(Event::Synced) => self.insert(position, slot),
            Notification::One(_) | Notification::Both(..) => {
                return self.unfold_whole() + self.unfold(slot);
            }
            Notification::Join(_) | Notification::Replaced { .. } | Notification::Resync(_) => {
                if !self.positions.is_empty() || self.whole.is_some() {
                    return self.unfold_whole() + self.unfold(slot);
                }
                self.whole = Some(position);
                self.insert(position, slot);
            }
        }
        0
    }

    fn unfolded_by(&self, pushed: &Notification<K>) -> usize {
        let whole = self.whole.and_then(|position| self.slots.get(&position));
        match (whole, pushed.events_max()) {
            (_, 1) if matches!(pushed, Notification::One(Event::Synced)) => 0,
            (Some(whole), events) => whole.notification.events_max() + events,
            (None, _) if self.positions.is_empty() => 0,
            (None, events) => events,
        }
    }

    fn pop(&mut self) -> Option<Slot<K>> {
        let (position, slot) = self.slots.pop_first()?;
        self.resyncs -= usize::from(slot.notification.is_resync());
        if self.whole == Some(position) {
            self.whole = None;
        }
        if let Some(name) = slot.notification.object_name() {
            self.positions.remove(name);
        }
        Some(slot)
    }

    fn unfold_whole(&mut self) -> u64 {
        let whole = self.whole.take().and_then(|position| self.remove(position));
        whole.map_or(0, |slot| self.unfold(slot))
    }

    /// Splits the message in `slot` into single events. Adds each event to the queue, or merges the event
    /// with the waiting message about the same object.
    ///
    /// Returns the number of events that merging eliminated.
    fn unfold(&mut self, slot: Slot<K>) -> u64 {
        let (number, since) = (slot.number, slot.since);
        let mut events = Expansion::new(slot.notification);
        let mut never_told = 0;
        for at in 0.. {
            let Some(event) = events.next() else {
                break;
            };
            let slot = Slot {
                number,
                since,
                notification: Notification::One(event),
            };
            never_told += self.take_in((number, at), slot);
        }
        never_told
    }

    /// Adds the single event in `slot` to the queue at `position`. If a message about the same object already
    /// waits, merges the event with that message instead.
    ///
    /// Returns the number of events that merging eliminated.
    fn take_in(&mut self, position: Position, slot: Slot<K>) -> u64 {
        let Some(name) = slot.notification.object_name().cloned() else {
            self.insert(position, slot);
            return 0;
        };
        let first = self.positions.get(&name).copied();
        let Some((first, waits)) = first.and_then(|first| Some((first, self.remove(first)?)))
        else {
            self.positions.insert(name, position);
            self.insert(position, slot);
            return 0;
        };
        let before = waits.notification.events() + slot.notification.events();
        let Some(notification) = merged(waits.notification, slot.notification) else {
            self.positions.remove(&name);
            return before;
        };
        let never_told = before - notification.events();
        let slot = Slot {
            notification,
            ..waits
        };
        self.insert(first, slot);
        never_told
    }

    fn insert(&mut self, position: Position, slot: Slot<K>) {
        self.resyncs += usize::from(slot.notification.is_resync());
        self.slots.insert(position, slot);
    }

    fn remove(&mut self, position: Position) -> Option<Slot<K>> {
        let slot = self.slots.remove(&position)?;
        self.resyncs -= usize::from(slot.notification.is_resync());
        Some(slot)
    }
}

#[cfg(test)]
mod tests;
