//! Tests of delayed items: the time and the order in which they are queued, and their cancellation.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_delayed_item_is_returned_once_at_its_time() {
    let queue = queue();
    queue.add_after("one", 50 * MILLISECOND);
    assert_eq!(queue.len(), 0);

    let mut get = poll(queue.get());
    assert_pending!(get.poll());
    advance(49 * MILLISECOND).await;
    assert!(!get.is_woken(), "a millisecond early");
    assert_eq!(queue.len(), 0);
    advance(MILLISECOND).await;
    assert!(get.is_woken());
    assert_ready!(get.poll()).expect("it is due").done();

    advance(10 * SECOND).await;
    assert_eq!((queue.len(), queue.delayed()), (0, vec![]));
}

#[tokio::test(start_paused = true)]
async fn of_two_delays_of_an_item_the_earlier_applies() {
    for (first, second) in [(50, 70), (70, 50)] {
        let queue = queue();
        queue.add_after("one", first * MILLISECOND);
        queue.add_after("one", second * MILLISECOND);
        assert_eq!(queue.delayed(), [("one", 50 * MILLISECOND)]);

        advance(50 * MILLISECOND).await;
        assert_eq!(take_all(&queue), ["one"], "{first}, then {second}");
        advance(20 * MILLISECOND).await;
        assert_eq!(queue.len(), 0, "the item is returned once");
    }
}

#[tokio::test(start_paused = true)]
async fn delayed_items_are_returned_in_the_order_of_their_times() {
    let queue = queue();
    queue.add_after("first", SECOND);
    queue.add_after("second", 50 * MILLISECOND);
    advance(60 * MILLISECOND).await;
    assert_eq!(take_all(&queue), ["second"]);
    queue.add_after("third", 2 * SECOND);
    advance(SECOND).await;
    assert_eq!(take_all(&queue), ["first"]);
    advance(999 * MILLISECOND).await;
    assert_eq!(queue.len(), 0);
    advance(MILLISECOND).await;
    assert_eq!(take_all(&queue), ["third"]);
}

#[tokio::test(start_paused = true)]
async fn items_due_at_one_clock_step_are_returned_in_the_order_of_their_times() {
    let queue = queue();
    queue.add_after("foo", SECOND);
    queue.add_after("bar", 500 * MILLISECOND);
    queue.add_after("baz", 300 * MILLISECOND);
    queue.add_after("bax", 500 * MILLISECOND);
    advance(2 * SECOND).await;
    assert_eq!(queue.len(), 4, "due items count without a waiting worker");
    assert_eq!(take_all(&queue), ["baz", "bar", "bax", "foo"]);
}

#[tokio::test(start_paused = true)]
async fn an_item_with_a_delay_of_zero_is_queued_at_once() {
    let queue = queue();
    queue.add_after("one", Duration::ZERO);
    assert_eq!(queue.len(), 1);
    assert!(queue.delayed().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_longest_delay_does_not_overflow() {
    let queue = queue();
    queue.add_after("never", Duration::MAX);
    queue.add_after("in ten years", 3650 * 24 * 3600 * SECOND);
    let mut get = poll(queue.get());
    assert_pending!(get.poll());
    queue.add("one");
    assert!(get.is_woken());
    assert_eq!(
        *assert_ready!(get.poll()).expect("one is queued").key(),
        "one"
    );
}

#[tokio::test(start_paused = true)]
async fn delayed_items_can_be_inspected_and_cancelled() {
    let queue = queue();
    queue.add_after("late", 3 * SECOND);
    queue.add_after("soon", SECOND);
    advance(500 * MILLISECOND).await;
    assert_eq!(
        queue.delayed(),
        [("soon", 500 * MILLISECOND), ("late", 2500 * MILLISECOND)]
    );
    assert!(queue.cancel_delayed(&"soon"));
    assert!(!queue.cancel_delayed(&"soon"), "it is no longer delayed");
    advance(5 * SECOND).await;
    assert!(!queue.cancel_delayed(&"late"), "it is queued");
    assert_eq!(take_all(&queue), ["late"]);
}

#[tokio::test(start_paused = true)]
async fn an_item_due_while_in_work_is_queued_again_when_done() {
    let queue = queue();
    queue.add("one");
    let item = take(&queue);
    queue.add_after("one", SECOND);
    advance(SECOND).await;
    assert_eq!(queue.len(), 0);
    assert!(queue.delayed().is_empty());
    item.done();
    assert_eq!(take_all(&queue), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn adding_a_hundred_thousand_delayed_items_does_not_block() {
    let queue = RateLimitingQueue::new(MaxOf::new());
    let before = Instant::now();
    for item in 0..100_000u32 {
        queue.add_after(item, SECOND);
    }
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(queue.len(), 0);
    advance(SECOND).await;
    assert_eq!(queue.len(), 100_000);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_item_shortens_the_sleep_of_waiting_workers() {
    let queue = queue();
    queue.add_after("late", 10 * SECOND);
    let mut get = poll(queue.get());
    assert_pending!(get.poll());
    queue.add_after("soon", SECOND);
    assert!(get.is_woken());
    assert_pending!(get.poll());
    advance(SECOND).await;
    assert!(get.is_woken());
    assert_eq!(
        *assert_ready!(get.poll()).expect("soon is due").key(),
        "soon"
    );
}
