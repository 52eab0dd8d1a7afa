//! Compares the delaying queue with a simple model, which is a sorted list of items and their times.

use proptest::prelude::*;

use super::*;
use crate::workqueue::queue::Next;

#[derive(Clone, Debug)]
enum Operation {
    AddAfter(u8, u64),
    Advance(u64),
    Cancel(u8),
    /// Takes all queued items from the `Queue` inside the delaying queue, and calls `done` for each item.
    TakeAll,
    ShutDown,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        8 => (0..5u8, 0..20u64).prop_map(|(item, delay)| Operation::AddAfter(item, delay)),
        6 => (0..15u64).prop_map(Operation::Advance),
        2 => (0..5u8).prop_map(Operation::Cancel),
        3 => Just(Operation::TakeAll),
        1 => Just(Operation::ShutDown),
    ];
    prop::collection::vec(operation, 0..60)
}

/// A simple model of the delaying queue.
///
/// An entry of `delayed` contains the end of the delay, a sequence number, and the item. The entries are
/// sorted in this order.
#[derive(Default)]
struct Reference {
    delayed: Vec<(u64, usize, u8)>,
    queued: Vec<u8>,
    added: usize,
    shut_down: bool,
}

impl Reference {
    fn add_at(&mut self, item: u8, at: u64) {
        let waits = self.delayed.iter().position(|entry| entry.2 == item);
        match waits {
            _ if self.shut_down => return,
            Some(position) if self.delayed[position].0 <= at => return,
            Some(position) => drop(self.delayed.remove(position)),
            None => {}
        }
        self.added += 1;
        self.delayed.push((at, self.added, item));
        self.delayed.sort_unstable();
    }

    fn promote(&mut self, now: u64) {
        while self.delayed.first().is_some_and(|first| first.0 <= now) {
            let (_, _, item) = self.delayed.remove(0);
            if !self.queued.contains(&item) {
                self.queued.push(item);
            }
        }
    }
}

proptest! {
    #[test]
    fn the_delaying_queue_equals_a_sorted_list(operations in operations()) {
        let mut queue = DelayingQueue::new(None);
        let mut reference = Reference::default();
        let mut now = 0;
        for operation in operations {
            match operation {
                Operation::AddAfter(item, delay) => {
                    queue.add_at(item, Duration::from_secs(now + delay));
                    reference.add_at(item, now + delay);
                }
                Operation::Advance(by) => {
                    now += by;
                    queue.promote(Duration::from_secs(now));
                    reference.promote(now);
                }
                Operation::Cancel(item) => {
                    let was_delayed = reference.delayed.iter().any(|entry| entry.2 == item);
                    reference.delayed.retain(|entry| entry.2 != item);
                    prop_assert_eq!(queue.cancel(&item), was_delayed);
                }
                Operation::TakeAll => {
                    let mut taken = Vec::new();
                    while let Next::Item(item) = queue.queue().next() {
                        queue.queue().done(&item);
                        taken.push(*item);
                    }
                    prop_assert_eq!(taken, std::mem::take(&mut reference.queued));
                }
                Operation::ShutDown => {
                    queue.shut_down(Phase::ShutDown);
                    reference.delayed.clear();
                    reference.shut_down = true;
                }
            }
            let delayed: Vec<_> = queue.delayed().map(|(item, at)| (*item, at.as_secs())).collect();
            let expected: Vec<_> = reference.delayed.iter().map(|&(at, _, item)| (item, at)).collect();
            prop_assert_eq!(delayed, expected);
            prop_assert_eq!(queue.earliest().map(|at| at.as_secs()), reference.delayed.first().map(|entry| entry.0));
            prop_assert_eq!(queue.queue().len(), reference.queued.len());
        }
    }
}
