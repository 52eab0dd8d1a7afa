//! Tests of the queue through its public API: order, deduplication, delays, retries, and shut-down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, advance};
use tokio_test::task::spawn as poll;
use tokio_test::{assert_pending, assert_ready};

use super::rate_limiter::{ItemExponentialFailure, MaxOf};
use super::{Item, Order, RateLimitingQueue};

mod cancellation;
mod delays;
mod shut_down;
mod verdicts;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Returns an empty queue whose limiter delays retries by 1, 2, 4 … ms.
fn queue() -> RateLimitingQueue<&'static str> {
    RateLimitingQueue::new(ItemExponentialFailure::new(MILLISECOND, SECOND))
}

/// Returns the next item of the queue, which must not be empty.
fn take(queue: &RateLimitingQueue<&'static str>) -> Item<&'static str> {
    let mut get = poll(queue.get());
    assert_ready!(get.poll()).expect("the queue has not ended")
}

fn assert_nothing_to_take(queue: &RateLimitingQueue<&'static str>) {
    let mut get = poll(queue.get());
    assert!(get.poll().is_pending(), "an item was returned");
}

/// Takes all queued items, calls `done` for each item, and returns their keys.
fn take_all(queue: &RateLimitingQueue<&'static str>) -> Vec<&'static str> {
    let mut taken = Vec::new();
    while !queue.is_empty() {
        let item = take(queue);
        taken.push(*item.key());
        item.done();
    }
    taken
}

#[test]
fn items_are_returned_in_the_order_of_addition() {
    let queue = queue();
    for item in ["c", "a", "b"] {
        queue.add(item);
    }
    assert_eq!(take_all(&queue), ["c", "a", "b"]);
}

#[test]
fn an_item_added_twice_is_queued_once() {
    let queue = queue();
    queue.add("one");
    assert_eq!(queue.len(), 1);
    queue.add("two");
    assert_eq!(queue.len(), 2);
    queue.add("one");
    assert_eq!(queue.len(), 2);
    assert!(!queue.is_empty());
}

#[test]
fn an_item_added_while_in_work_is_queued_again_when_done() {
    let queue = queue();
    queue.add("one");
    let first = take(&queue);
    queue.add("one");
    assert_eq!(
        (queue.len(), queue.processing()),
        (0, 1),
        "not while the item is in work"
    );
    assert_nothing_to_take(&queue);

    first.done();
    let second = take(&queue);
    assert_eq!(*second.key(), "one");
    second.done();
    assert_eq!((queue.len(), queue.processing()), (0, 0));
}

#[test]
fn an_item_taken_by_one_worker_can_be_added_and_taken_by_the_next() {
    let queue = queue();
    queue.add("one");
    take(&queue).done();
    queue.add("one");
    take(&queue).done();
    assert!(queue.is_empty());
}

/// A last-in, first-out [`Order`] that records the items passed to `touch`.
struct Stack {
    items: Vec<&'static str>,
    touched: Arc<Mutex<Vec<&'static str>>>,
}

impl Order<&'static str> for Stack {
    fn touch(&mut self, item: &&'static str) {
        self.touched.lock().push(item);
    }
    fn push(&mut self, item: &'static str) {
        self.items.push(item);
    }
    fn len(&self) -> usize {
        self.items.len()
    }
    fn pop(&mut self) -> Option<&'static str> {
        self.items.pop()
    }
}

fn stack() -> (
    RateLimitingQueue<&'static str>,
    Arc<Mutex<Vec<&'static str>>>,
) {
    let touched = Arc::default();
    let stack = Stack {
        items: Vec::new(),
        touched: Arc::clone(&touched),
    };
    let queue = RateLimitingQueue::builder(MaxOf::new())
        .order(stack)
        .build();
    (queue, touched)
}

#[test]
fn a_custom_order_determines_the_next_item() {
    let (queue, _) = stack();
    for item in ["a", "b", "c"] {
        queue.add(item);
    }
    assert_eq!(take_all(&queue), ["c", "b", "a"]);
}

#[test]
fn two_adds_are_one_item_and_the_second_touches_the_order() {
    let (queue, touched) = stack();
    queue.add("one");
    assert!(touched.lock().is_empty());
    queue.add("one");
    assert_eq!(*touched.lock(), ["one"]);
    assert_eq!(take_all(&queue), ["one"]);
    assert_nothing_to_take(&queue);
}

#[test]
fn two_adds_while_in_work_are_one_later_run_and_touch_nothing() {
    let (queue, touched) = stack();
    queue.add("one");
    let first = take(&queue);
    queue.add("one");
    queue.add("one");
    assert_nothing_to_take(&queue);
    first.done();
    assert_eq!(take_all(&queue), ["one"]);
    assert_nothing_to_take(&queue);
    assert!(touched.lock().is_empty());
}

#[test]
fn the_queue_holds_no_reference_to_an_item_that_is_done() {
    let queue = RateLimitingQueue::new(ItemExponentialFailure::new(MILLISECOND, SECOND));
    let key = Arc::new("one");
    queue.add(Arc::clone(&key));
    queue.add_after(Arc::clone(&key), SECOND);
    assert!(queue.cancel_delayed(&key));
    let mut get = poll(queue.get());
    let item = assert_ready!(get.poll()).expect("one is queued");
    drop(get);
    assert!(
        Arc::strong_count(&key) > 1,
        "the queue knows it while it is in work"
    );
    item.forget();
    assert_eq!(Arc::strong_count(&key), 1);
}

/// Records which items are being processed, and how often each item was processed.
#[derive(Default)]
struct Ledger {
    in_work: BTreeSet<u32>,
    runs: BTreeMap<u32, u32>,
}

async fn work(queue: RateLimitingQueue<u32>, ledger: Arc<Mutex<Ledger>>) {
    while let Some(item) = queue.get().await {
        assert!(
            ledger.lock().in_work.insert(*item.key()),
            "two workers have the same item"
        );
        tokio::task::yield_now().await;
        {
            let mut ledger = ledger.lock();
            ledger.in_work.remove(item.key());
            *ledger.runs.entry(*item.key()).or_default() += 1;
        }
        item.forget();
    }
}

/// Starts 10 workers and 50 producers, and waits until all items were added.
///
/// Each producer adds its own 40 items three times.
///
/// Returns the workers, which continue to run, and their ledger.
async fn produce_and_work(queue: &RateLimitingQueue<u32>) -> (JoinSet<()>, Arc<Mutex<Ledger>>) {
    let ledger = Arc::<Mutex<Ledger>>::default();
    let mut workers = JoinSet::new();
    for _ in 0..10 {
        workers.spawn(work(queue.clone(), Arc::clone(&ledger)));
    }
    let mut producers = JoinSet::new();
    for producer in 0..50 {
        let queue = queue.clone();
        producers.spawn(async move {
            for round in 0..3 {
                for item in 0..40 {
                    queue.add(producer * 40 + item);
                    if item % 7 == round {
                        tokio::task::yield_now().await;
                    }
                }
            }
        });
    }
    producers.join_all().await;
    (workers, ledger)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_producers_and_ten_workers_lose_nothing_when_the_queue_is_shut_down() {
    let queue = RateLimitingQueue::new(MaxOf::new());
    let (workers, ledger) = produce_and_work(&queue).await;
    queue.shut_down();
    queue.add(1_000_000);
    workers.join_all().await;
    let ledger = ledger.lock();
    assert!(
        ledger.runs.keys().copied().eq(0..2000),
        "every item was processed, and no late one"
    );
    assert!(ledger.runs.values().all(|runs| (1..=3).contains(runs)));
    assert_eq!((queue.len(), queue.processing()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_producers_and_ten_workers_lose_nothing_when_the_queue_is_drained() {
    let queue = RateLimitingQueue::new(MaxOf::new());
    let (workers, ledger) = produce_and_work(&queue).await;
    queue.shut_down_with_drain().await;
    assert_eq!((queue.len(), queue.processing()), (0, 0));
    queue.add(1_000_000);
    workers.join_all().await;
    assert!(ledger.lock().runs.keys().copied().eq(0..2000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_between_many_threads() {
    for round in 0..300 {
        let queue = RateLimitingQueue::<u32>::new(MaxOf::new());
        let mut workers = JoinSet::new();
        for _ in 0..4 {
            let queue = queue.clone();
            // Each worker takes one item and ends: a lost wake-up leaves an item in the queue.
            workers.spawn(async move { queue.get().await.map(Item::done) });
        }
        for item in 0..4 {
            let queue = queue.clone();
            workers.spawn(async move {
                if item % 2 == round % 2 {
                    tokio::task::yield_now().await;
                }
                queue.add(item);
                Some(())
            });
        }
        let ended = workers.join_all().await;
        assert!(
            ended.iter().all(Option::is_some),
            "every worker received the end"
        );
    }
}

#[tokio::test]
async fn a_worker_that_never_waits_yields_to_other_tasks() {
    let queue = RateLimitingQueue::new(MaxOf::new());
    queue.add(0);
    let mut tasks = JoinSet::new();
    tasks.spawn({
        let queue = queue.clone();
        async move {
            while let Some(item) = queue.get().await {
                queue.add(*item.key());
                item.done();
            }
        }
    });
    tasks.spawn({
        let queue = queue.clone();
        async move { while queue.get().await.is_some_and(|item| *item.key() == 0) {} }
    });
    tasks.spawn(async move { queue.shut_down() });
    tasks.join_all().await;
}

#[test]
fn handles_have_debug_output() {
    let queue = queue();
    queue.add("one");
    queue.add("two");
    let item = take(&queue);
    assert_eq!(
        format!("{queue:?} {item:?}"),
        "RateLimitingQueue { queued: 1, processing: 1, phase: Running, .. } Item(\"one\")"
    );
}
