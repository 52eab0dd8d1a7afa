//! Tests how many past events a watch cache keeps for new watches under each [`WatchCache`] policy.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{ADAPTIVE_AGE, ADAPTIVE_EVENTS_MIN, Cache, WatchCache};
use crate::kinds::Kinds;
use crate::resource::{Registry, Resource};
use crate::storage::{Entry, Event};

/// A watch cache of pods and its event log.
struct Window {
    cache: Cache,
    log: VecDeque<Arc<Event>>,
    resource: Arc<Resource>,
}

impl Window {
    fn new(policy: WatchCache) -> Window {
        let registry = Registry::new(&Kinds::builtin());
        let resource = Arc::clone(
            registry
                .by_path("", "v1", "pods")
                .expect("pods are built in"),
        );
        Window {
            cache: Cache::new(policy),
            log: VecDeque::new(),
            resource,
        }
    }

    async fn write(&mut self, events: usize, apart: Duration) {
        for _ in 0..events {
            tokio::time::advance(apart).await;
            let revision = self.log.len() as u64 + 1;
            let object = json!({"metadata": {}});
            let entry = Entry::new(
                &self.resource,
                "a".into(),
                object.as_object().unwrap(),
                revision,
            );
            let now = tokio::time::Instant::now();
            self.log.push_back(Arc::new(Event::new(
                revision,
                now,
                None,
                Some(Arc::new(entry)),
            )));
            self.cache.advance(&self.log, 0);
        }
    }

    /// Returns the number of events in `log` that a new watch can still receive.
    fn reach(&self) -> u64 {
        self.log.len() as u64 - self.cache.horizon()
    }
}

#[tokio::test(start_paused = true)]
async fn a_fixed_window_holds_its_number_of_events() {
    let mut window = Window::new(WatchCache::Size(3));
    window.write(3, Duration::ZERO).await;
    assert_eq!(window.reach(), 3);
    window.write(7, Duration::ZERO).await;
    assert_eq!((window.reach(), window.cache.horizon()), (3, 7));
}

#[tokio::test(start_paused = true)]
async fn an_adaptive_window_grows_while_its_events_are_young() {
    let mut window = Window::new(WatchCache::Adaptive);
    window.write(1_000, Duration::from_millis(1)).await;
    assert_eq!(window.reach(), 1_000, "nothing younger than 75 s is lost");
    let mut slow = Window::new(WatchCache::Adaptive);
    slow.write(1_000, ADAPTIVE_AGE).await;
    assert_eq!(slow.reach(), ADAPTIVE_EVENTS_MIN as u64);
}

#[tokio::test(start_paused = true)]
async fn an_adaptive_window_shrinks_when_its_newest_quarter_is_old() {
    let mut window = Window::new(WatchCache::Adaptive);
    window.write(350, Duration::from_millis(1)).await;
    assert_eq!(window.cache.capacity, 400);
    window.write(500, Duration::from_secs(10)).await;
    assert_eq!(window.cache.capacity, ADAPTIVE_EVENTS_MIN);
}

#[test]
fn a_window_of_size_zero_turns_the_cache_off() {
    assert!(WatchCache::Size(0).is_off() && WatchCache::Off.is_off());
    assert!(!WatchCache::Adaptive.is_off() && !WatchCache::Size(1).is_off());
}
