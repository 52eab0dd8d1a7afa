//! Tests of rate limits, and of the effect of each method that ends the work on an item.

use super::*;
use crate::workqueue::rate_limiter::Bucket;

#[tokio::test(start_paused = true)]
async fn a_rate_limited_item_waits_longer_each_time_until_it_is_forgotten() {
    let queue = queue();
    queue.add_rate_limited("one");
    assert_eq!(queue.delayed(), [("one", MILLISECOND)]);
    queue.cancel_delayed(&"one");
    queue.add_rate_limited("one");
    assert_eq!(queue.delayed(), [("one", 2 * MILLISECOND)]);
    assert_eq!(queue.num_requeues(&"one"), 2);
    queue.cancel_delayed(&"one");

    queue.add_rate_limited("two");
    assert_eq!(
        queue.delayed(),
        [("two", MILLISECOND)],
        "each item has its own delay"
    );
    queue.cancel_delayed(&"two");

    queue.forget(&"one");
    assert_eq!(queue.num_requeues(&"one"), 0);
    queue.add_rate_limited("one");
    assert_eq!(queue.delayed(), [("one", MILLISECOND)]);
}

#[tokio::test(start_paused = true)]
async fn a_limiter_receives_the_time() {
    let queue = RateLimitingQueue::new(Bucket::every(SECOND, 1));
    queue.add_rate_limited("first");
    queue.add_rate_limited("second");
    assert_eq!(
        (queue.len(), queue.delayed()),
        (1, vec![("second", SECOND)])
    );
    advance(5 * SECOND).await;
    queue.add_rate_limited("third");
    assert_eq!(queue.len(), 3, "a token has been added in the meantime");
}

#[tokio::test(start_paused = true)]
async fn a_retried_item_is_returned_after_the_limiters_delay() {
    let queue = queue();
    queue.add("one");
    for (requeues, delay) in [(0, 1), (1, 2), (2, 4)] {
        let item = take(&queue);
        assert_eq!(item.requeues(), requeues);
        item.retry();
        assert_eq!((queue.len(), queue.processing()), (0, 0));
        assert_eq!(queue.delayed(), [("one", delay * MILLISECOND)]);
        advance(delay * MILLISECOND).await;
    }
    take(&queue).forget();
    assert_eq!(queue.num_requeues(&"one"), 0);
    assert_eq!((queue.dropped_items(), queue.given_up_items()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn each_verdict_has_its_documented_effect() {
    let queue = queue();
    let failed_once = || {
        queue.add("one");
        take(&queue).retry();
        assert!(queue.cancel_delayed(&"one"));
        queue.add("one");
        take(&queue)
    };

    failed_once().done();
    assert_eq!(queue.num_requeues(&"one"), 1, "done remembers the failure");
    queue.forget(&"one");

    failed_once().forget();
    assert_eq!(queue.num_requeues(&"one"), 0);

    failed_once().retry_after(7 * SECOND);
    assert_eq!(queue.delayed(), [("one", 7 * SECOND)]);
    assert_eq!(queue.num_requeues(&"one"), 1, "the limiter was not called");
    queue.cancel_delayed(&"one");
    queue.forget(&"one");

    assert_eq!(queue.given_up_items(), 0);
    failed_once().give_up();
    assert_eq!(queue.given_up_items(), 1);
    assert_eq!(queue.num_requeues(&"one"), 0);
    assert_eq!((queue.len(), queue.processing()), (0, 0));
    assert!(queue.delayed().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_item_added_while_in_work_is_queued_at_once_after_any_verdict() {
    let verdicts: [fn(Item<&'static str>); 6] = [
        Item::done,
        Item::forget,
        Item::retry,
        |item| item.retry_after(SECOND),
        Item::give_up,
        drop,
    ];
    for (number, verdict) in verdicts.into_iter().enumerate() {
        let queue = queue();
        queue.add("one");
        let item = take(&queue);
        queue.add("one");
        verdict(item);
        assert_eq!(queue.len(), 1, "verdict {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_dropped_by_a_panicking_worker_is_retried_and_counted() {
    let queue = queue();
    queue.add("one");
    let mut workers = JoinSet::new();
    workers.spawn({
        let queue = queue.clone();
        async move {
            let item = queue.get().await.expect("one is queued");
            panic!("the worker can't handle {:?}", item.key());
        }
    });
    let ended = workers.join_next().await.expect("one worker");
    assert!(ended.expect_err("it panicked").is_panic());

    assert_eq!(queue.dropped_items(), 1);
    assert_eq!(queue.processing(), 0);
    assert_eq!(queue.delayed(), [("one", MILLISECOND)]);
    assert_eq!(queue.num_requeues(&"one"), 1);
    advance(MILLISECOND).await;
    assert_eq!(take_all(&queue), ["one"]);
}
