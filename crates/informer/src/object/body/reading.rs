//! [`UnreadCount`] counts the objects of a store that have not been decoded, in a cache that decodes objects
//! on demand. [`UnreadMoment`] is the number of undecoded objects in one snapshot of the store.
//!
//! If an object fails to decode on the first read, [`Object::found_broken`] returns a copy of the object that
//! contains the decode error. The store's writer replaces the object with the copy. Readers do not change the
//! store.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering},
};

use super::{
    super::{Inner, Object},
    Body,
};

/// Number of objects in one store that have not been decoded.
#[derive(Debug, Default)]
pub(crate) struct UnreadCount {
    count: AtomicUsize,
    /// Sequence number of the store's newest snapshot.
    newest: AtomicU64,
}

/// Number of undecoded objects in one snapshot of the store.
///
/// While the snapshot is the newest one, the number decreases whenever a read decodes an object. After the
/// store's writer has started the next snapshot, the number no longer changes.
#[derive(Debug)]
pub(crate) struct UnreadMoment {
    store: Arc<UnreadCount>,
    number: u64,
    last: AtomicUsize,
}

impl UnreadMoment {
    /// Creates the counter of undecoded objects for a store's first snapshot, which contains no objects.
    pub(crate) fn first(store: Arc<UnreadCount>) -> Self {
        Self {
            store,
            number: 0,
            last: AtomicUsize::new(0),
        }
    }

    /// Stores the current number of undecoded objects as the final number of this snapshot. Returns the
    /// counter for the next snapshot.
    ///
    /// The store's writer must call this method before the first change of the next snapshot.
    pub(crate) fn next(&self) -> Self {
        let number = self.number + 1;
        let count = self.store.count.load(Ordering::Acquire);
        self.last.store(count, Ordering::Release);
        // Stored before the writer changes the count for the next snapshot. A reader that sees such a change
        // therefore also sees the new number.
        self.store.newest.store(number, Ordering::Release);
        Self {
            store: Arc::clone(&self.store),
            number,
            last: AtomicUsize::new(0),
        }
    }

    pub(crate) fn count(&self) -> usize {
        let count = self.store.count.load(Ordering::Acquire);
        if self.store.newest.load(Ordering::Acquire) == self.number {
            count
        } else {
            self.last.load(Ordering::Acquire)
        }
    }
}

/// Whether one object has been decoded, and whether it is in the store.
#[derive(Debug, Default)]
pub(super) struct Reading(AtomicU8);

const READ: u8 = 1;
const STORED: u8 = 2;

impl Reading {
    /// Creates the value for an object that was decoded before and is not in the store. Such an object never
    /// counts as undecoded.
    #[cfg(feature = "packed")]
    pub(super) fn done() -> Self {
        Self(AtomicU8::new(READ))
    }

    /// Returns the value for a clone of the object. The clone is decoded if the object is, but is not in the
    /// store.
    #[cfg(feature = "packed")]
    pub(super) fn of_copy(&self) -> Self {
        Self(AtomicU8::new(self.0.load(Ordering::Relaxed) & READ))
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) & READ != 0
    }

    /// Records that decoding of the object has ended.
    ///
    /// Decrements `unread` if the object is in the store and was not decoded before.
    pub(super) fn end(&self, unread: &UnreadCount) {
        if !self.is_done() && self.0.fetch_or(READ, Ordering::AcqRel) == STORED {
            unread.count.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn enter(&self, unread: &UnreadCount) {
        // Counted before it is visible to others, so that the count never falls below zero.
        unread.count.fetch_add(1, Ordering::AcqRel);
        if self.0.fetch_or(STORED, Ordering::AcqRel) != 0 {
            unread.count.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn leave(&self, unread: &UnreadCount) {
        if self.0.fetch_and(!STORED, Ordering::AcqRel) == STORED {
            unread.count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl<K> Object<K> {
    /// Records that the object was added to the store.
    ///
    /// An object must be removed before it is added again.
    pub(crate) fn enters_store(&self) {
        if let Some((reading, unread)) = self.reading() {
            reading.enter(unread);
        }
    }

    pub(crate) fn leaves_store(&self) {
        if let Some((reading, unread)) = self.reading() {
            reading.leave(unread);
        }
    }

    fn reading(&self) -> Option<(&Reading, &UnreadCount)> {
        self.inner.body.reading()
    }

    /// Returns a copy of this object with the decode error, if decoding has failed.
    pub(crate) fn found_broken(&self) -> Option<Self> {
        let (reading, _) = self.reading()?;
        if !reading.is_done() {
            return None;
        }
        let broken = self.inner.body.found_broken()?;
        let inner = Inner {
            name: self.inner.name.clone(),
            revision: self.inner.revision.clone(),
            wire_bytes: 0,
            uid: self.inner.uid,
            body: Body::Broken(Box::new(broken)),
        };
        Some(Self {
            inner: Arc::new(inner),
        })
    }
}

#[cfg(test)]
mod tests;
