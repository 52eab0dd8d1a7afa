//! Tests the log lines about a handler that panics, and about a handler that handles events more slowly than
//! they arrive.

use std::{io, sync::Arc, time::Duration};

use expect_test::expect;
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tracing::{
    Dispatch,
    subscriber::{DefaultGuard, NoSubscriber, set_default},
};

use super::{added, buffer};
use crate::{
    event_handler::{Event, EventHandler},
    processor::{Expansion, ListenerBuffer, Listening, Schedule, SyncReport, listen},
};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn begin() -> (Self, (DefaultGuard, Dispatch)) {
        // While only one subscriber exists, tracing checks only with the subscriber of the first thread that
        // reaches a log line whether the line is enabled, and caches the result for all threads.
        let second = Dispatch::new(NoSubscriber::default());
        let log = Self::default();
        let written = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .with_writer(move || written.clone())
            .finish();
        (log, (set_default(subscriber), second))
    }

    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_growing_buffer_is_logged_once_until_half_of_it_is_delivered() {
    let (log, _guard) = Log::begin();
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    let push = |count: usize| {
        for _ in 0..count {
            buffer.push(added("a", 1));
        }
        log.take()
    };
    let tell = |count: usize| {
        for _ in 0..count {
            buffer.next().now_or_never().unwrap();
        }
    };
    let warning = " WARN a handler is slower than its events handler=test depth=1025\n";
    assert_eq!(push(1024), "");
    assert_eq!(push(1), warning);
    assert_eq!(push(75), "", "a burst is logged once");
    tell(1100 - 513);
    assert_eq!(push(1100 - 513), "", "less than half was delivered");
    tell(1100 - 512);
    assert_eq!(push(512), "");
    assert_eq!(push(1), warning, "a new burst is logged again");
}

/// A test handler that sleeps for a number of milliseconds. The number is the name of the event's pod.
///
/// The handler panics if the pod has the name `text`, `formatted` or `value`.
struct Planted;

impl EventHandler<Pod> for Planted {
    async fn handle(&mut self, event: Event<Pod>) {
        match event.object_name().unwrap().name() {
            "text" => panic!("planted"),
            "formatted" => panic!("planted {}", 7),
            "value" => std::panic::panic_any(7),
            millis => sleep(Duration::from_millis(millis.parse().unwrap())).await,
        }
    }
}

/// Sends one event per pod name in `names` to a `Planted` handler, and returns the log after 10 s.
async fn log_of(names: &[&str]) -> String {
    let (log, _guard) = Log::begin();
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    for name in names {
        buffer.push(added(name, 1));
    }
    let listening = Listening::new(&buffer, Expansion::default());
    let mut task = JoinSet::new();
    task.spawn(listen(
        Planted,
        listening,
        Arc::from("test"),
        SyncReport::new().0,
    ));
    sleep(Duration::from_secs(10)).await;
    assert_eq!(buffer.depth(), 0);
    log.take()
}

#[tokio::test(start_paused = true)]
async fn a_callback_over_100_ms_is_logged_if_events_wait() {
    assert_eq!(log_of(&["100", "1"]).await, "");
    assert_eq!(log_of(&["1", "500"]).await, "", "no event waits");
    let slow = " WARN slow handler handler=test object=\"101\" took=101ms depth=2\n";
    assert_eq!(log_of(&["101", "1"]).await, slow);
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_is_logged_ten_times_a_minute_and_then_counted() {
    let (log, _guard) = Log::begin();
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    for _ in 0..200 {
        buffer.push(added("1000", 1));
    }
    let listening = Listening::new(&buffer, Expansion::default());
    let (synced, ..) = SyncReport::new();
    let mut task = JoinSet::new();
    task.spawn(listen(Planted, listening, Arc::from("test"), synced));
    sleep(Duration::from_secs(135)).await;
    let log = log.take();
    let lines: Vec<_> = log.lines().collect();
    let more: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("more often"))
        .collect();
    let expected = " WARN the handler was slow more often within a minute handler=test times=50";
    assert_eq!(more, [&expected, &expected]);
    assert_eq!(lines.len(), 3 * 10 + 2, "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_logged_with_its_message() {
    expect![[r#"
        ERROR a handler panicked handler=test object="text" reason="planted"
        ERROR a handler panicked handler=test object="formatted" reason="planted 7"
        ERROR a handler panicked handler=test object="value" reason="no message"
    "#]]
    .assert_eq(&log_of(&["text", "formatted", "value"]).await);
}

#[test]
fn only_a_changed_resync_period_is_logged() {
    let (log, _guard) = Log::begin();
    let logged = |informer: u64, started: bool, asked_for: u64| {
        let now = Instant::now();
        let mut schedule = Schedule::new(Duration::from_millis(informer));
        if started {
            schedule.start(now);
        }
        schedule.add(0, Some(Duration::from_millis(asked_for)), now);
        log.take().trim().to_owned()
    };
    expect!["WARN a resync period under 1 s is raised to 1 s requested=999ms"]
        .assert_eq(&logged(10_000, false, 999));
    expect!["WARN the informer has started; a shorter resync period is raised to its check period requested=9s check_period=10s"].assert_eq(&logged(10_000, true, 9_000));
    expect!["WARN the informer has no resync period, so the period of its handler has no effect requested=5s"]
        .assert_eq(&logged(0, false, 5_000));
    for (informer, started, asked_for) in [
        (10_000, false, 1_000),
        (10_000, false, 9_000),
        (10_000, true, 10_000),
        (10_000, true, 11_000),
        (10_000, true, 0),
        (0, false, 0),
    ] {
        let text = logged(informer, started, asked_for);
        assert_eq!(
            text, "",
            "{asked_for} ms requested of an informer with {informer} ms"
        );
    }
}
