//! Which bodies that are decoded on demand have been decoded, and how many objects of a store have not.
//!
//! A body that has not been decoded may turn out not to decode; [`Object::found_broken`] says that it did.
//! Who moves such an object among the broken ones of its store is the store's writer, and nobody else.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering},
};

use super::{
    super::{Inner, Object},
    Body,
};

/// Counts the objects of one store that have not been decoded. Readers and the store's writer change it.
#[derive(Debug, Default)]
pub(crate) struct UnreadCount {
    count: AtomicUsize,
    /// The number of the newest moment of the store.
    newest: AtomicU64,
}

/// The same count for one moment of the store.
///
/// The newest moment reads the store's own count; an older one keeps the count that it had when the next one
/// began. So the count of a moment only falls, and is never below what it counts.
#[derive(Debug)]
pub(crate) struct UnreadMoment {
    store: Arc<UnreadCount>,
    number: u64,
    last: AtomicUsize,
}

impl UnreadMoment {
    /// The first moment of an empty store.
    pub(crate) fn first(store: Arc<UnreadCount>) -> Self {
        Self {
            store,
            number: 0,
            last: AtomicUsize::new(0),
        }
    }

    /// Ends this moment. The writer calls it before its first change of the next one.
    pub(crate) fn next(&self) -> Self {
        let number = self.number + 1;
        let count = self.store.count.load(Ordering::Acquire);
        self.last.store(count, Ordering::Release);
        // Before any change of the count by the writer: whoever reads such a change sees this number too.
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

/// Whether one body has been decoded, and whether its store counts it.
#[derive(Debug, Default)]
pub(super) struct Reading(AtomicU8);

const READ: u8 = 1;
const STORED: u8 = 2;

impl Reading {
    /// Of a body that was made of a decoded object.
    #[cfg(feature = "packed")]
    pub(super) fn done() -> Self {
        Self(AtomicU8::new(READ))
    }

    /// Of a copy of the body, which is in no store.
    #[cfg(feature = "packed")]
    pub(super) fn of_copy(&self) -> Self {
        Self(AtomicU8::new(self.0.load(Ordering::Relaxed) & READ))
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) & READ != 0
    }

    /// The body has been decoded, or turned out not to decode.
    pub(super) fn end(&self, unread: &UnreadCount) {
        if !self.is_done() && self.0.fetch_or(READ, Ordering::AcqRel) == STORED {
            unread.count.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn enter(&self, unread: &UnreadCount) {
        // Counted before others can see it, so that the count is never below zero.
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
    /// The store has it from now on. Its body is in no other place of the store.
    pub(crate) fn enters_store(&self) {
        if let Some((reading, unread)) = self.reading() {
            reading.enter(unread);
        }
    }

    /// The store does not have it any more.
    pub(crate) fn leaves_store(&self) {
        if let Some((reading, unread)) = self.reading() {
            reading.leave(unread);
        }
    }

    fn reading(&self) -> Option<(&Reading, &UnreadCount)> {
        self.inner.body.reading()
    }

    /// The same state as a broken object, if its body was decoded in vain.
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
