//! Tests of the metrics of work queues. Each metric is defined as in client-go.

use kube_informer::{
    metrics::WorkQueueSample,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use tokio::time::advance;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn queue(recorder: &Recorder) -> RateLimitingQueue<&'static str> {
    RateLimitingQueue::builder(rate_limiter::controller_default())
        .metrics("pods", recorder.metrics())
        .build()
}

fn sample(recorder: &Recorder) -> WorkQueueSample {
    recorder.0.queue_samplers.lock()[0].sample().unwrap()
}

/// A port of client-go's test `TestMetrics`.
#[tokio::test(start_paused = true)]
async fn adds_depth_waiting_and_work_are_exact() {
    let recorder = Recorder::default();
    let queue = queue(&recorder);
    for depth_and_adds in [(0, 0), (1, 1), (1, 1)] {
        let WorkQueueSample { depth, adds, .. } = sample(&recorder);
        assert_eq!((depth, adds), depth_and_adds);
        queue.add("foo"); // from the second time on it is queued already
        advance(25 * MS).await;
    }
    let item = queue.get().await.unwrap();
    assert_eq!(sample(&recorder).depth, 0);
    advance(10 * MS).await;
    // The item is added again while it is processed: it waits from now on, and is counted.
    queue.add("foo");
    queue.add("foo");
    let WorkQueueSample { depth, adds, .. } = sample(&recorder);
    assert_eq!((depth, adds), (1, 2));
    advance(15 * MS).await;
    item.done();
    let WorkQueueSample { depth, adds, .. } = sample(&recorder);
    assert_eq!((depth, adds), (1, 2));
    advance(30 * MS).await;
    queue.get().await.unwrap().done();
    expect![[r#"
        queue pods
        Queued(75ms)
        Worked(25ms)
        Queued(45ms)
        Worked(0ns)
    "#]]
    .assert_eq(&recorder.0.told.take());
}

#[tokio::test(start_paused = true)]
async fn the_age_of_an_item_grows_until_it_is_done() {
    let recorder = Recorder::default();
    let queue = queue(&recorder);
    queue.add("foo");
    queue.add("bar");
    let ages = || {
        let WorkQueueSample {
            unfinished,
            longest_running,
            ..
        } = sample(&recorder);
        (unfinished, longest_running)
    };
    assert_eq!(ages(), (Duration::ZERO, Duration::ZERO));
    let foo = queue.get().await.unwrap();
    advance(50 * MS).await;
    let bar = queue.get().await.unwrap();
    advance(10 * MS).await;
    assert_eq!(ages(), (70 * MS, 60 * MS));
    foo.done();
    assert_eq!(ages(), (10 * MS, 10 * MS));
    drop(bar);
    assert_eq!(ages(), (Duration::ZERO, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn every_delayed_add_before_the_shutdown_is_counted_as_a_retry() {
    let recorder = Recorder::default();
    let queue = queue(&recorder);
    queue.add_after("foo", 50 * MS);
    queue.add_after("bar", Duration::ZERO);
    queue.add_rate_limited("baz");
    let WorkQueueSample {
        depth,
        delayed,
        adds,
        retries,
        ..
    } = sample(&recorder);
    assert_eq!((depth, delayed, adds, retries), (1, 2, 1, 3));
    queue.get().await.unwrap().retry();
    assert_eq!(sample(&recorder).retries, 4);
    queue.shut_down();
    queue.add("late");
    queue.add_after("late", MS);
    queue.add_rate_limited("late");
    let WorkQueueSample { adds, retries, .. } = sample(&recorder);
    assert_eq!((adds, retries), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn the_metrics_of_a_queue_are_dropped_with_its_last_handle_and_item() {
    let recorder = Recorder::default();
    let queue = queue(&recorder);
    queue.add("foo");
    let item = queue.get().await.unwrap();
    drop(queue);
    let sampler = recorder.0.queue_samplers.lock()[0].clone();
    assert!(sampler.sample().is_some(), "an item is a handle too");
    item.done();
    assert!(sampler.sample().is_none() && sampler.is_gone());
    assert_eq!(recorder.under_way(), 0);
}

/// A metrics collector that panics on every report of a work queue.
struct Panics;

impl Metrics for Panics {
    fn work_queue(&self, _: &Arc<str>, _: WorkQueueSampler) -> Option<Box<dyn WorkQueueMetrics>> {
        Some(Box::new(Self))
    }
}

impl WorkQueueMetrics for Panics {
    fn observe(&self, _: WorkQueueObserved) {
        panic!("planted")
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_collector_loses_no_item() {
    let queue = RateLimitingQueue::builder(rate_limiter::controller_default())
        .metrics("pods", Arc::new(Panics))
        .build();
    queue.add("foo");
    queue.get().await.unwrap().done();
    assert_eq!((queue.len(), queue.processing()), (0, 0));
}
