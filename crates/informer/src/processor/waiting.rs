//! [`Waiting`]: what waits for one listener, in the order in which it will be told. Pure: nobody
//! waits in here, nothing is locked, and the time is an argument.

mod merge;

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

use derive_where::derive_where;
use tokio::time::Instant;

use self::merge::merged;
use super::notification::{Expansion, Notification};
use crate::{event_handler::Event, object::ObjectName};

/// One message that waits.
pub(super) struct Slot<K> {
    /// How many messages were pushed before it.
    pub(super) number: u64,
    /// Since when the oldest change in it waits.
    pub(super) since: Instant,
    pub(super) notification: Notification<K>,
}

/// What waits for one listener.
pub(super) struct Waiting<K> {
    /// How many messages were ever pushed.
    pushed: u64,
    slots: Slots<K>,
}

enum Slots<K> {
    Each {
        slots: VecDeque<Slot<K>>,
        /// How many of them only tell again what was told before.
        resyncs: usize,
    },
    Merged(Merged<K>),
}

impl<K> Waiting<K> {
    /// Keeps every message.
    pub(super) fn each() -> Self {
        Self {
            pushed: 0,
            slots: Slots::Each {
                slots: VecDeque::new(),
                resyncs: 0,
            },
        }
    }

    /// Merges what waits, per object.
    pub(super) fn merged() -> Self {
        Self {
            pushed: 0,
            slots: Slots::Merged(Merged::default()),
        }
    }

    /// Takes a message; how many events will never be told because of it.
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

    /// The message that is to be told next.
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

    /// How many events at most are merged one by one when this is pushed: all of a list that has to be unfolded.
    pub(super) fn unfolded_by(&self, pushed: &Notification<K>) -> usize {
        match &self.slots {
            Slots::Each { .. } => 0,
            Slots::Merged(slots) => slots.unfolded_by(pushed),
        }
    }

    /// Takes out everything.
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

    /// How many events wait.
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

    /// Whether anything waits that only tells again what was told before.
    pub(super) fn has_resync(&self) -> bool {
        match &self.slots {
            Slots::Each { resyncs, .. } => *resyncs > 0,
            Slots::Merged(slots) => slots.resyncs > 0,
        }
    }

    /// Gives back what a burst took, down to room for so many messages.
    pub(super) fn shrink_to(&mut self, capacity: usize) {
        match &mut self.slots {
            Slots::Each { slots, .. } => slots.shrink_to(capacity),
            Slots::Merged(slots) => slots.positions.shrink_to(capacity),
        }
    }
}

/// Where what waits of each object stands.
#[expect(
    clippy::disallowed_types,
    reason = "pure look-up, its order is never seen"
)]
type Positions = std::collections::HashMap<ObjectName, Position>;

/// Where a message stands: the number of the push, and which of the events of that push it is.
type Position = (u64, u64);

/// At most one message per object.
///
/// A list, a late join or a resync stays whole while it is the only thing that waits, for then it is
/// told as it is. As soon as something of an object waits beside it, it is unfolded, so that the two
/// can be merged; that costs as much as the cache took to apply it.
#[derive_where(Default)]
struct Merged<K> {
    slots: BTreeMap<Position, Slot<K>>,
    positions: Positions,
    /// The one message of many objects. Nothing of a single object waits then.
    whole: Option<Position>,
    /// How many slots only tell again what was told before.
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

    /// Takes the events of a message one by one, where the message stands.
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

    /// Takes one event, beside or into what waits of its object.
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
