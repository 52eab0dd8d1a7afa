//! Compares the queue with a model that has the fields of client-go's queue: two sets and a list.

use std::cell::Cell;
use std::hash::Hasher;
use std::rc::Rc;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Operation {
    Add(u8),
    Next,
    /// Ends the work on the item that the index selects from the items in work, if any.
    Done(prop::sample::Index),
    ShutDown,
    Drain,
}

/// A model with the fields and rules of client-go's queue, except for one rule.
///
/// After `ShutDownWithDrain`, client-go ends each worker that finds the queue empty. In this model and in the
/// library, the worker waits if an item in work was added again, because this item will be queued again.
#[derive(Default)]
struct Reference {
    dirty: Vec<u8>,
    processing: Vec<u8>,
    queue: Vec<u8>,
    shutting_down: bool,
    draining: bool,
}

impl Reference {
    fn add(&mut self, item: u8) {
        if self.shutting_down || self.dirty.contains(&item) {
            return;
        }
        self.dirty.push(item);
        if !self.processing.contains(&item) {
            self.queue.push(item);
        }
    }

    fn next(&mut self) -> Next<u8> {
        if !self.queue.is_empty() {
            let item = self.queue.remove(0);
            self.processing.push(item);
            self.dirty.retain(|dirty| *dirty != item);
            return Next::Item(item);
        }
        let comes_back = self.processing.iter().any(|item| self.dirty.contains(item));
        if self.shutting_down && !(self.draining && comes_back) {
            Next::End
        } else {
            Next::Nothing
        }
    }

    fn done(&mut self, item: u8) {
        self.processing.retain(|processing| *processing != item);
        if self.dirty.contains(&item) {
            self.queue.push(item);
        }
    }
}

/// Returns `next` with the plain item instead of the [`Hashed`] item.
fn plain(next: &Next<Hashed<u8>>) -> Next<u8> {
    match next {
        Next::Item(item) => Next::Item(**item),
        Next::Nothing => Next::Nothing,
        Next::End => Next::End,
    }
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        6 => (0..6u8).prop_map(Operation::Add),
        4 => Just(Operation::Next),
        4 => any::<prop::sample::Index>().prop_map(Operation::Done),
        1 => Just(Operation::ShutDown),
        1 => Just(Operation::Drain),
    ];
    prop::collection::vec(operation, 0..80)
}

proptest! {
    #[test]
    fn the_queue_equals_client_gos_two_sets_and_a_list(operations in operations()) {
        let mut queue = Queue::new(None);
        let mut reference = Reference::default();
        // The items in work, for which `done` can be called.
        let mut in_work = Vec::new();
        for operation in operations {
            match operation {
                Operation::Add(item) => {
                    queue.add(item);
                    reference.add(item);
                }
                Operation::Next => {
                    let next = queue.next();
                    prop_assert_eq!(plain(&next), reference.next());
                    if let Next::Item(item) = next {
                        in_work.push(item);
                    }
                }
                Operation::Done(which) => {
                    if !in_work.is_empty() {
                        let item = in_work.swap_remove(which.index(in_work.len()));
                        queue.done(&item);
                        reference.done(*item);
                    }
                }
                Operation::ShutDown => {
                    queue.shut_down(Phase::ShutDown);
                    (reference.shutting_down, reference.draining) = (true, false);
                }
                Operation::Drain => {
                    queue.shut_down(Phase::Draining);
                    (reference.shutting_down, reference.draining) = (true, true);
                }
            }
            let in_both = reference.processing.iter().filter(|item| reference.dirty.contains(item));
            prop_assert_eq!(queue.len(), reference.queue.len());
            prop_assert_eq!(queue.processing(), reference.processing.len());
            prop_assert_eq!(queue.dirtied, in_both.count());
            prop_assert_eq!(
                queue.is_idle(),
                reference.queue.is_empty() && reference.processing.is_empty()
            );
        }
    }
}

#[test]
fn an_item_invented_by_an_order_is_not_returned() {
    struct Liar;
    impl Order<u8> for Liar {
        fn push(&mut self, _item: u8) {}
        fn len(&self) -> usize {
            1
        }
        fn pop(&mut self) -> Option<u8> {
            None
        }
    }
    struct Inventor(Vec<u8>);
    impl Order<u8> for Inventor {
        fn push(&mut self, item: u8) {
            self.0.extend([item, item, 99]);
        }
        fn len(&self) -> usize {
            self.0.len()
        }
        fn pop(&mut self) -> Option<u8> {
            self.0.pop()
        }
    }

    let mut queue = Queue::new(Some(Box::new(Inventor(Vec::new()))));
    queue.add(1);
    assert_eq!(plain(&queue.next()), Next::Item(1), "99 was never added");
    assert_eq!(plain(&queue.next()), Next::Nothing, "1 is in work");

    let mut queue = Queue::new(Some(Box::new(Liar)));
    queue.add(1);
    assert_eq!(plain(&queue.next()), Next::Nothing);
}

#[test]
fn an_item_is_hashed_once_for_each_time_it_is_added() {
    #[derive(Clone, PartialEq, Eq)]
    struct Counted(Rc<Cell<u32>>);
    impl Hash for Counted {
        fn hash<H: Hasher>(&self, hasher: &mut H) {
            self.0.set(self.0.get() + 1);
            hasher.write_u8(0);
        }
    }

    let hashed = Rc::new(Cell::new(0));
    let mut queue = Queue::new(None);
    queue.add(Counted(Rc::clone(&hashed)));
    let Next::Item(item) = queue.next() else {
        panic!("it was added");
    };
    assert_eq!(hashed.get(), 1);
    queue.add(Counted(Rc::clone(&hashed)));
    queue.done(&item);
    assert!(matches!(queue.next(), Next::Item(_)), "it was dirtied");
    assert_eq!(hashed.get(), 2);
}
