//! Tests of a plain shut-down and of a drain: the items that workers receive, the items that are dropped, and
//! the time at which workers receive `None`.

use super::*;

#[test]
fn after_a_shut_down_remaining_items_are_returned_and_new_ones_ignored() {
    let queue = queue();
    queue.add("one");
    assert!(!queue.is_shutting_down());
    queue.shut_down();
    assert!(queue.is_shutting_down());

    queue.add("two");
    queue.add_after("three", SECOND);
    queue.add_after("four", Duration::ZERO);
    queue.add_rate_limited("five");
    assert_eq!((queue.len(), queue.delayed()), (1, vec![]));
    assert_eq!(
        queue.num_requeues(&"five"),
        0,
        "nothing is recorded after the shutdown"
    );

    take(&queue).done();
    let mut get = poll(queue.get());
    assert!(assert_ready!(get.poll()).is_none());
}

#[test]
fn every_waiting_worker_receives_none_at_shut_down() {
    let queue = queue();
    let mut gets: Vec<_> = (0..3).map(|_| poll(queue.get())).collect();
    for get in &mut gets {
        assert_pending!(get.poll());
    }
    queue.shut_down();
    for get in &mut gets {
        assert!(get.is_woken());
        assert!(assert_ready!(get.poll()).is_none());
    }
}

#[test]
fn a_plain_shut_down_does_not_wait_for_items_in_work() {
    let queue = queue();
    queue.add("one");
    let item = take(&queue);
    queue.shut_down();
    let mut get = poll(queue.get());
    assert!(assert_ready!(get.poll()).is_none(), "workers end at once");
    item.done();
}

#[test]
fn a_drain_waits_for_all_items_in_work() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    let (foo, bar) = (take(&queue), take(&queue));
    let mut drain = poll(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    assert!(queue.is_shutting_down());

    foo.done();
    assert!(!drain.is_woken());
    assert_pending!(drain.poll());
    bar.done();
    assert!(drain.is_woken());
    assert_ready!(drain.poll());
}

#[test]
fn a_drain_waits_for_queued_items_when_none_is_in_work() {
    let queue = queue();
    queue.add("one");
    queue.add("two");
    let mut drain = poll(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    assert_eq!(queue.len(), 2);

    take(&queue).done();
    assert_pending!(drain.poll());
    let last = take(&queue);
    assert_pending!(drain.poll());
    last.done();
    assert!(drain.is_woken());
    assert_ready!(drain.poll());
}

#[test]
fn a_drain_waits_for_queued_items_after_the_item_in_work() {
    let queue = queue();
    queue.add("in work");
    queue.add("queued");
    let item = take(&queue);
    let mut drain = poll(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    item.done();
    assert_pending!(drain.poll());
    assert_eq!(take_all(&queue), ["queued"]);
    assert_ready!(drain.poll());
}

#[test]
fn an_empty_queue_is_drained_at_once() {
    let queue = queue();
    let mut drain = poll(queue.shut_down_with_drain());
    assert_ready!(drain.poll());
    let mut get = poll(queue.get());
    assert!(assert_ready!(get.poll()).is_none());
}

#[test]
fn concurrent_drains_end_together() {
    let queue = queue();
    queue.add("one");
    let item = take(&queue);
    let mut drains: Vec<_> = (0..3).map(|_| poll(queue.shut_down_with_drain())).collect();
    for drain in &mut drains {
        assert_pending!(drain.poll());
    }
    item.done();
    for drain in &mut drains {
        assert!(drain.is_woken());
        assert_ready!(drain.poll());
    }
}

#[test]
fn a_plain_shut_down_releases_every_drain() {
    let queue = queue();
    queue.add("one");
    let item = take(&queue);
    let mut drains: Vec<_> = (0..2).map(|_| poll(queue.shut_down_with_drain())).collect();
    for drain in &mut drains {
        assert_pending!(drain.poll());
    }
    queue.shut_down();
    let mut after = poll(queue.shut_down_with_drain());
    assert_pending!(after.poll());
    for drain in &mut drains {
        assert!(drain.is_woken());
        assert_ready!(drain.poll(), "although another drain has started since");
    }
    item.done();
    assert_ready!(after.poll());
}

#[test]
fn a_dirty_item_is_returned_again_during_a_drain() {
    let queue = queue();
    queue.add("foo");
    let item = take(&queue);
    queue.add("foo");
    let mut drain = poll(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    item.done();
    assert_pending!(drain.poll());

    let again = take(&queue);
    assert_eq!(*again.key(), "foo");
    assert_pending!(drain.poll());
    again.done();
    assert!(drain.is_woken());
    assert_ready!(drain.poll());
}

#[test]
fn a_worker_waits_for_a_dirty_item_that_another_may_drop_during_the_drain() {
    let queue = queue();
    queue.add("foo");
    let item = take(&queue);
    queue.add("foo");
    let mut drain = poll(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    let mut other = poll(queue.get());
    assert_pending!(other.poll());

    drop(item);
    assert!(other.is_woken());
    let again = assert_ready!(other.poll()).expect("the other worker receives the dirty item");
    let mut third = poll(queue.get());
    assert!(
        assert_ready!(third.poll()).is_none(),
        "no item can be added again"
    );
    again.done();
    assert_ready!(drain.poll());
    assert_eq!(queue.dropped_items(), 1);
}

#[test]
fn a_retry_during_the_drain_is_dropped() {
    let verdicts: [fn(Item<&'static str>); 3] =
        [Item::retry, |item| item.retry_after(SECOND), drop];
    for verdict in verdicts {
        let queue = queue();
        queue.add("one");
        let item = take(&queue);
        let mut drain = poll(queue.shut_down_with_drain());
        assert_pending!(drain.poll());
        verdict(item);
        assert_ready!(drain.poll());
        assert_eq!((queue.len(), queue.delayed()), (0, vec![]));
        assert_eq!(queue.num_requeues(&"one"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn both_kinds_of_shut_down_end_the_delays_at_once() {
    for drains in [false, true] {
        let queue = queue();
        queue.add_after("late", 10 * SECOND);
        let mut get = poll(queue.get());
        assert_pending!(get.poll());
        let before = Instant::now();

        if drains {
            queue.shut_down_with_drain().await;
        } else {
            queue.shut_down();
        }
        assert!(get.is_woken());
        assert!(assert_ready!(get.poll()).is_none());
        assert!(queue.delayed().is_empty());
        assert_eq!(
            before.elapsed(),
            Duration::ZERO,
            "no worker waited for a timer"
        );
        advance(20 * SECOND).await;
        assert_eq!(queue.len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_holds_no_reference_to_a_dropped_delayed_item() {
    let queue = RateLimitingQueue::new(MaxOf::new());
    let key = Arc::new("one");
    queue.add_after(Arc::clone(&key), SECOND);
    assert!(Arc::strong_count(&key) > 1);
    queue.shut_down();
    assert_eq!(Arc::strong_count(&key), 1);
}
