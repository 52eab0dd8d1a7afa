//! Tests the server-side timeouts that watches request, and the maximum pause after a response with
//! `Retry-After`.

use super::*;

#[test]
fn watch_timeouts_are_uniform_between_once_and_twice_the_minimum() {
    let timeouts = |min: u64| -> Vec<u32> {
        let config = RequestOptions {
            watch_timeout_min: Some(Duration::from_secs(min)),
            ..listing()
        };
        let mut machine = Machine::new(config, fastrand::Rng::with_seed(3));
        let timeout = |action| match action {
            Action::Watch(options) => options.timeout_seconds.unwrap(),
            other => panic!("{other:?}"),
        };
        (0..2000).map(|_| timeout(machine.watch())).collect()
    };
    for (min, low, high) in [(0, 300, 600), (1, 300, 600), (1800, 1800, 3600)] {
        let timeouts = timeouts(min);
        assert!(
            timeouts.iter().all(|t| (low..=high).contains(t)),
            "minimum {min}"
        );
        let middle = u32::midpoint(low, high);
        assert!(timeouts.iter().any(|t| *t < middle) && timeouts.iter().any(|t| *t > middle));
    }
}

#[test]
fn an_unlimited_watch_timeout_is_the_longest_that_can_be_requested() {
    let config = RequestOptions {
        watch_timeout_min: Some(Duration::MAX),
        ..listing()
    };
    let mut machine = Machine::new(config, fastrand::Rng::with_seed(3));
    let Action::Watch(options) = machine.watch() else {
        panic!("not a watch");
    };
    assert_eq!(options.timeout_seconds, Some(u32::MAX));
}

#[tokio::test(start_paused = true)]
async fn a_pause_requested_by_a_server_is_limited_to_two_minutes() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    let hour = Duration::from_secs(3600);
    let error = Error::new(Class::TooManyRequests, "").with_retry_after(Some(hour));
    machine.start(Instant::now());
    let action = machine.list_failed(&error, Instant::now());
    let Action::Sleep(pause) = action else {
        panic!("{action:?}");
    };
    assert_eq!(pause, Duration::from_secs(120));
}
