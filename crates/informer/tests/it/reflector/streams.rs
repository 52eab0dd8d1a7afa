//! Tests of a reflector whose store or source is slow, or whose source sends events without pause. Also tests
//! the status that the reflector reports during lists and watches.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    indexer::{self, Indexers},
    reflector::{Delta, Reflector, ReflectorStore, StoreError, TimeoutConfig},
    status::Activity,
    transport::{Error, ListOptions, ListerWatcher, Response},
};
use tokio::{sync::Notify, time::sleep};

use super::MINUTE;
use crate::{
    script::{Answer, Script, Then, body, event, hangs, list, pod},
    setting::Trace,
};

/// A store that sleeps for this duration before it accepts its first object.
struct Slow(Option<Duration>);

impl ReflectorStore<Pod> for Slow {
    async fn accept(&mut self, delta: Delta<Pod>) -> Result<(), StoreError> {
        if delta.object().is_some()
            && let Some(pause) = self.0.take()
        {
            sleep(pause).await;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_slower_than_the_watch_timeout_is_not_a_connection_failure() {
    let second = Duration::from_secs(1);
    let events = event("ADDED", &pod("a", 6)) + &event("ADDED", &pod("b", 7));
    for (ends_after, failure) in [
        (11 * MINUTE + 29 * second, ""),
        (
            11 * MINUTE + 31 * second,
            "the watch is open beyond its requested time-out; its connection counts as lost\n",
        ),
    ] {
        let script = Script::new([
            body(list(5, "", &[])),
            Answer::Body(events.clone(), Then::EndsAfter(ends_after)),
        ]);
        let errors = Trace::default();
        let heard = errors.clone();
        let reflector = Reflector::builder(script.clone())
            .on_error(move |error| heard.note(error.to_string()))
            .timeouts(TimeoutConfig {
                full_store: Duration::MAX,
                ..TimeoutConfig::default()
            })
            .into_store(Slow(Some(11 * MINUTE)));
        reflector.run(sleep(12 * MINUTE)).await;
        assert_eq!(errors.take(), failure);
        assert_eq!(script.requests.take(), "list 0\nwatch 5\nwatch 7\n");
    }
}

/// A source whose watches always have another event ready. It notifies the test at its tenth event.
#[derive(Clone)]
struct Torrent {
    lists: Script,
    sent: Trace,
    tenth: Arc<Notify>,
}

impl ListerWatcher for Torrent {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.lists.list(options)
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let Self { sent, tenth, .. } = self.clone();
        let events = (6..5000).map(move |revision| {
            sent.note("event");
            if sent.len() == 10 {
                tenth.notify_one();
            }
            Ok(event("ADDED", &pod("a", revision)).into())
        });
        async { Ok(stream::iter(events).boxed().into()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_takes_effect_while_every_event_is_ready() {
    let source = Torrent {
        lists: Script::new([body(list(5, "", &[]))]),
        sent: Trace::default(),
        tenth: Arc::default(),
    };
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(source.clone()).into_indexer(writer);
    reflector.run(source.tenth.notified()).await;
    let sent = source.sent.len();
    assert!(sent < 1000, "{sent} events after the stop");
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_revision_counts_as_the_last_event() {
    let unversioned = event("ADDED", r#"{"metadata":{"name":"a"}}"#);
    let script = Script::new([
        body(list(5, "", &[])),
        Answer::Body(String::new(), Then::EndsAfter(MINUTE)),
        hangs(unversioned),
    ]);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script).into_indexer(writer);
    let status = reflector.status();
    let looked_at = async {
        sleep(MINUTE + MINUTE / 2).await;
        let source = &status.get().sources[0];
        assert_eq!(source.since_last_event(), Some(MINUTE / 2));
        assert_eq!(source.revision, 5.into());
    };
    reflector.run(looked_at).await;
}

#[tokio::test(start_paused = true)]
async fn the_status_reports_the_ages_of_the_last_bookmark_and_the_last_event() {
    let script = Script::new([
        body(list(5, "", &[])),
        Answer::Body(event("BOOKMARK", &pod("", 6)), Then::EndsAfter(MINUTE)),
        hangs(event("ADDED", &pod("a", 7))),
    ]);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script).into_indexer(writer);
    let status = reflector.status();
    let looked_at = async {
        sleep(MINUTE + MINUTE / 2).await;
        let source = &status.get().sources[0];
        assert_eq!(source.since_last_bookmark(), Some(MINUTE + MINUTE / 2));
        assert_eq!(source.since_last_event(), Some(MINUTE / 2));
    };
    reflector.run(looked_at).await;
}

#[tokio::test(start_paused = true)]
async fn the_status_reports_the_progress_of_a_list() {
    let script = Script::new([
        body(list(5, "more", &[pod("a", 1), pod("b", 2)])),
        Answer::Never,
    ]);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script).into_indexer(writer);
    let status = reflector.status();
    let looked_at = async {
        sleep(MINUTE / 2).await;
        let (page, objects) = (2, 2);
        let activity = status.get().activity();
        assert_eq!(activity, Activity::Listing { page, objects });
    };
    reflector.run(looked_at).await;
}

/// A source whose watches deliver no events, and end later than requested.
///
/// The `Duration` is the delay after the requested timeout.
struct Overdue(Script, Duration);

impl ListerWatcher for Overdue {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.0.list(options)
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let seconds = options.timeout_seconds.unwrap();
        let open_for = Duration::from_secs(seconds.into()) + self.1;
        let end = sleep(open_for).map(|()| Ok(Bytes::new())).into_stream();
        async { Ok(end.boxed().into()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_fails_half_a_minute_after_its_timeout() {
    for (overdue, is_dead) in [(29, false), (31, true)] {
        let script = Script::new([body(list(5, "", &[]))]);
        let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
        let source = Overdue(script, Duration::from_secs(overdue));
        let reflector = Reflector::builder(source).into_indexer(writer);
        let status = reflector.status();
        reflector.run(sleep(12 * MINUTE)).await;
        let failed = status.get().last_error().is_some();
        assert_eq!(failed, is_dead, "{overdue} s");
    }
}
