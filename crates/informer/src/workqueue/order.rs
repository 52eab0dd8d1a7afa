//! [`Order`] determines the order in which workers receive queued items. [`Fifo`] is the default order.
//!
//! An `Order` contains only queued items. The queue ensures that an item is queued at most once, and that no
//! item is queued while a worker processes it.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, RandomState};

use derive_where::derive_where;

use super::hashed::Hashed;
use super::lookup::room_after_removal;

/// Stores the queued items of a work queue, and determines which item a worker receives next. Implement the
/// trait for priorities, or for fairness between groups of items.
///
/// The queue calls an `Order` while the queue's lock is held. An implementation must be fast, must not block,
/// and must not call its queue, which would cause a deadlock.
///
/// `pop` must return every pushed item exactly once. If `pop` returns an item that was not pushed, the queue
/// ignores the item.
#[doc(alias = "Queue")]
pub trait Order<T>: Send {
    /// Called when a program adds an item that this order already contains.
    ///
    /// An order by priority may move the item forward. The default implementation does nothing.
    #[doc(alias = "Touch")]
    fn touch(&mut self, item: &T) {
        let _ = item;
    }

    /// Adds an item that is not in this order yet.
    #[doc(alias = "Push")]
    fn push(&mut self, item: T);

    /// Returns the number of items in this order.
    #[doc(alias = "Len")]
    fn len(&self) -> usize;

    /// Returns whether this order contains no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes and returns the item that a worker receives next. Returns `None` if this order is empty.
    #[doc(alias = "Pop")]
    fn pop(&mut self) -> Option<T>;
}

/// An [`Order`] that returns items in the order in which they were added. This order is the default.
///
/// A `Fifo` releases memory after many items were removed.
#[doc(alias = "DefaultQueue")]
#[derive(Clone)]
#[derive_where(Default)]
pub struct Fifo<T> {
    items: VecDeque<T>,
}

impl<T> Fifo<T> {
    /// Creates an empty first-in, first-out order.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T> fmt::Debug for Fifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fifo")
            .field("len", &self.items.len())
            .finish()
    }
}

impl<T> Fifo<T> {
    fn take_first(&mut self) -> Option<T> {
        let item = self.items.pop_front();
        if let Some(room) = room_after_removal(self.items.len(), self.items.capacity()) {
            self.items.shrink_to(room);
        }
        item
    }
}

impl<T: Send> Order<T> for Fifo<T> {
    fn push(&mut self, item: T) {
        self.items.push_back(item);
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    fn pop(&mut self) -> Option<T> {
        self.take_first()
    }
}

/// The order of one queue: the built-in first-in, first-out order, or a user-defined [`Order`].
pub(super) enum Arrangement<T> {
    /// The built-in first-in, first-out order, which stores each item with its hash.
    Fifo(Fifo<Hashed<T>>),
    /// A user-defined [`Order`], which stores items without their hash. The queue computes the hash again for
    /// each item that the order returns.
    Given(Box<dyn Order<T>>),
}

impl<T: Clone + Hash> Arrangement<T> {
    pub(super) fn new(order: Option<Box<dyn Order<T>>>) -> Self {
        order.map_or_else(|| Self::Fifo(Fifo::new()), Self::Given)
    }

    pub(super) fn touch(&mut self, item: &T) {
        match self {
            Self::Fifo(_) => {}
            Self::Given(order) => order.touch(item),
        }
    }

    pub(super) fn push(&mut self, item: &Hashed<T>) {
        match self {
            Self::Fifo(fifo) => fifo.items.push_back(item.clone()),
            Self::Given(order) => order.push(T::clone(item)),
        }
    }

    pub(super) fn pop(&mut self, hash_state: &RandomState) -> Option<Hashed<T>> {
        match self {
            Self::Fifo(fifo) => fifo.take_first(),
            Self::Given(order) => order.pop().map(|item| Hashed::new(item, hash_state)),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fifo(fifo) => fifo.items.len(),
            Self::Given(order) => order.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Fifo(fifo) => fifo.items.is_empty(),
            Self::Given(order) => order.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_releases_the_memory_of_a_hundred_thousand_keys() {
        let mut fifo = Fifo::new();
        for key in 0..100_000 {
            fifo.push(key);
        }
        assert!(fifo.items.capacity() >= 100_000);
        for key in 0..100_000 {
            assert_eq!(fifo.pop(), Some(key));
        }
        assert!(fifo.is_empty());
        assert!(
            fifo.items.capacity() <= 1024,
            "{} slots are kept",
            fifo.items.capacity()
        );
    }
}
