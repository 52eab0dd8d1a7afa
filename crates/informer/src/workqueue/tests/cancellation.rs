//! Tests that no item and no wake-up is lost when the future of `get` or `shut_down_with_drain` is dropped at
//! any point.

use super::*;

#[test]
fn a_waiting_worker_is_woken_by_an_item() {
    let queue = queue();
    let mut get = poll(queue.get());
    assert_pending!(get.poll());
    queue.add("one");
    assert!(get.is_woken());
    assert_eq!(
        *assert_ready!(get.poll()).expect("one is queued").key(),
        "one"
    );
}

fn woken<F>(gets: &[tokio_test::task::Spawn<F>]) -> usize {
    gets.iter().filter(|get| get.is_woken()).count()
}

#[test]
fn each_item_wakes_one_worker() {
    let queue = queue();
    let mut gets: Vec<_> = (0..3).map(|_| poll(queue.get())).collect();
    for get in &mut gets {
        assert_pending!(get.poll());
    }
    queue.add("one");
    assert_eq!(woken(&gets), 1);
    queue.add("two");
    assert_eq!(woken(&gets), 2);
    queue.add("two");
    assert_eq!(woken(&gets), 2, "it is queued already");
}

#[test]
fn an_item_done_and_dirty_wakes_a_waiting_worker() {
    let queue = queue();
    queue.add("one");
    let item = take(&queue);
    queue.add("one");
    let mut get = poll(queue.get());
    assert_pending!(get.poll());
    item.done();
    assert!(get.is_woken());
    assert!(assert_ready!(get.poll()).is_some());
}

#[test]
fn a_get_dropped_before_its_first_poll_loses_no_item() {
    let queue = queue();
    queue.add("one");
    drop(queue.get());
    assert_eq!(take_all(&queue), ["one"]);
}

#[test]
fn a_wake_up_passes_to_the_next_worker_when_the_woken_one_is_dropped() {
    let queue = queue();
    let (mut first, mut second) = (poll(queue.get()), poll(queue.get()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.add("one");
    assert!(first.is_woken() && !second.is_woken());
    drop(first);
    assert!(second.is_woken());
    assert!(assert_ready!(second.poll()).is_some());
}

#[test]
fn a_woken_worker_whose_item_was_taken_by_another_waits_on() {
    let queue = queue();
    let mut get = poll(queue.get());
    assert_pending!(get.poll());
    queue.add("one");
    take(&queue).done();
    assert!(get.is_woken());
    assert_pending!(get.poll());
    queue.add("two");
    assert!(get.is_woken());
    assert_eq!(
        *assert_ready!(get.poll()).expect("two is queued").key(),
        "two"
    );
}

#[test]
fn items_added_before_any_worker_waits_wake_later_workers() {
    let queue = queue();
    queue.add("one");
    queue.add("two");
    let (mut first, mut second) = (poll(queue.get()), poll(queue.get()));
    let one = assert_ready!(first.poll());
    let two = assert_ready!(second.poll());
    assert!(one.is_some() && two.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_sleeping_worker_leaves_the_delayed_item_to_others() {
    let queue = queue();
    let (mut first, mut second) = (poll(queue.get()), poll(queue.get()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.add_after("one", SECOND);
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    drop(first);
    advance(SECOND).await;
    assert!(second.is_woken());
    assert_eq!(
        *assert_ready!(second.poll()).expect("it is due").key(),
        "one"
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_woken_for_an_earlier_item_and_dropped_leaves_it_to_others() {
    let queue = queue();
    queue.add_after("late", 10 * SECOND);
    let (mut first, mut second) = (poll(queue.get()), poll(queue.get()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.add_after("soon", SECOND);
    drop(first);
    assert!(second.is_woken());
    assert_pending!(second.poll());
    advance(SECOND).await;
    assert!(second.is_woken());
    assert_eq!(
        *assert_ready!(second.poll()).expect("it is due").key(),
        "soon"
    );
}

#[tokio::test(start_paused = true)]
async fn items_promoted_by_another_call_wake_waiting_workers() {
    let queue = queue();
    queue.add_after("one", SECOND);
    queue.add_after("two", SECOND);
    let (mut first, mut second) = (poll(queue.get()), poll(queue.get()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    advance(SECOND).await;
    assert_eq!(queue.len(), 2);
    assert!(first.is_woken() && second.is_woken());
    assert!(assert_ready!(first.poll()).is_some());
    assert!(assert_ready!(second.poll()).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_item_of_a_cancelled_worker_is_queued_again() {
    let queue = queue();
    queue.add("one");
    let mut workers = JoinSet::new();
    workers.spawn({
        let queue = queue.clone();
        async move {
            let _item = queue.get().await;
            std::future::pending::<()>().await;
        }
    });
    tokio::task::yield_now().await;
    assert_eq!(queue.processing(), 1);
    workers.shutdown().await;
    assert_eq!((queue.processing(), queue.dropped_items()), (0, 1));
    assert_eq!(queue.delayed(), [("one", MILLISECOND)]);
}

#[test]
fn a_drain_that_is_dropped_leaves_the_shut_down_and_the_other_drains() {
    let queue = queue();
    drop(queue.shut_down_with_drain());
    assert!(!queue.is_shutting_down(), "it was never polled");

    queue.add("one");
    let item = take(&queue);
    let (mut first, mut second) = (
        poll(queue.shut_down_with_drain()),
        poll(queue.shut_down_with_drain()),
    );
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    drop(first);
    assert!(queue.is_shutting_down());
    item.done();
    assert!(second.is_woken());
    assert_ready!(second.poll());
}

#[test]
fn a_drain_that_ends_between_two_polls_is_woken() {
    let queue = queue();
    queue.add("one");
    let item = take(&queue);
    let mut drain = poll(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    item.done();
    // The task must already be woken: the queue sends no further notification.
    assert!(drain.is_woken());
    assert_ready!(drain.poll());
}
