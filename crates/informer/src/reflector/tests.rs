//! Tests a reflector that runs twice, a start from a saved revision, consistency checks and unreadable
//! events.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::*;
use crate::{
    object::Epoch,
    transport::{ListOptions, Response},
};

/// A test server whose LISTs return the queued revisions, and whose watches send a 410 error at once.
///
/// If the queue is empty, a LIST never returns.
#[derive(Clone)]
struct Source(Arc<Mutex<VecDeque<u64>>>);

impl ListerWatcher for Source {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        let Some(revision) = self.0.lock().pop_front() else {
            return std::future::pending().boxed();
        };
        let list = format!(
            r#"{{"metadata":{{"resourceVersion":"{revision}"}},"items":[{{"metadata":{{"name":"a","resourceVersion":"1"}}}}]}}"#
        );
        let body = stream::iter([Ok(Bytes::from(list))]).boxed();
        std::future::ready(Ok(body.into())).boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        let expired =
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        let body = stream::iter([Ok(Bytes::from(format!("{expired}\n")))]).boxed();
        std::future::ready(Ok(body.into())).boxed()
    }

    fn streams_lists(&self) -> bool {
        false
    }
}

/// Runs the reflector for 20 seconds, and returns the [`Epoch`] of each delivered list.
///
/// An epoch is a period in the server's history. A restore of the server from a backup starts a new epoch.
async fn lists(
    reflector: &Reflector<ConfigMap, mpsc::Sender<Delta<ConfigMap>>>,
    received: &mut mpsc::Receiver<Delta<ConfigMap>>,
) -> Vec<Epoch> {
    let running = reflector.again(None).run_inside();
    let ended = timeout(Duration::from_secs(20), running).await;
    assert!(
        ended.is_err(),
        "the reflector runs until its store is dropped"
    );
    let mut epochs = Vec::new();
    while let Ok(delta) = received.try_recv() {
        let DeltaKind::ReplacedAll { objects, revision } = delta.kind else {
            panic!("{:?} is not a list", delta.kind);
        };
        assert_eq!(objects.len(), 1);
        assert_eq!(objects[0].revision().epoch(), revision.epoch());
        epochs.push(revision.epoch());
    }
    epochs
}

#[tokio::test(start_paused = true)]
async fn a_second_run_of_a_reflector_delivers_another_epoch() {
    let source = Source(Arc::new(Mutex::new([5, 5, 4].into())));
    let (sender, mut received) = mpsc::channel(16);
    let reflector = Reflector::builder::<ConfigMap>(source.clone())
        .rng_seed(1)
        .into_store(sender);
    let first = lists(&reflector, &mut received).await;
    let went_back = Epoch::FIRST.after_rollback(Epoch::FIRST);
    assert_eq!(first, [Epoch::FIRST, Epoch::FIRST, went_back]);

    source.0.lock().extend([9, 9]);
    let second = lists(&reflector, &mut received).await;
    assert_eq!(second, [went_back.after_suspicion(went_back); 2]);
}

/// A test server whose first two watches lose their connection.
///
/// The server responds to each later watch request after 60 seconds, and sends a 410 error 0.5 seconds after
/// the response.
#[derive(Clone, Default)]
struct Overloaded(Arc<Mutex<u32>>);

impl ListerWatcher for Overloaded {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        let list = r#"{"metadata":{"resourceVersion":"5"},"items":[]}"#;
        let body = stream::iter([Ok(Bytes::from(list))]).boxed();
        std::future::ready(Ok(body.into())).boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        *self.0.lock() += 1;
        let watches = *self.0.lock();
        async move {
            if watches < 3 {
                let lost = transport::Error::new(transport::Class::Connection, "lost");
                return Ok(stream::iter([Err(lost)]).boxed().into());
            }
            sleep(Duration::from_secs(60)).await;
            let expired =
                r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
            let late = sleep(Duration::from_millis(500)).map(move |()| Ok(Bytes::from(expired)));
            Ok(late.into_stream().boxed().into())
        }
        .boxed()
    }

    fn streams_lists(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_watch_that_is_due_a_probe_does_not_confirm_a_saved_revision() {
    let (sender, mut received) = mpsc::channel(16);
    let mut reflector = Reflector::builder::<ConfigMap>(Overloaded::default())
        .initial_list(InitialList::List)
        .rng_seed(1)
        .into_store(sender);
    reflector.from = Some("5".into());
    let running = reflector.run(sleep(Duration::from_secs(66)));
    running.await;
    let first = received.recv().await.unwrap().kind;
    assert!(
        matches!(first, DeltaKind::ReplacedAll { .. }),
        "{first:?} before the server has reported that the revision expired"
    );
}

/// A test server that has no objects and sends no events.
struct Quiet;

impl ListerWatcher for Quiet {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        let list = r#"{"metadata":{"resourceVersion":"5"},"items":[]}"#;
        let body = stream::iter([Ok(Bytes::from(list))]).boxed();
        std::future::ready(Ok(body.into())).boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        std::future::ready(Ok(stream::pending().boxed().into())).boxed()
    }

    fn streams_lists(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_is_checked_only_while_its_reflector_watches() {
    let (request, signal) = RelistRequest::new();
    let (sender, _heard) = mpsc::channel(16);
    let mut reflector = Reflector::builder::<ConfigMap>(Quiet).into_store(sender);
    reflector.relist = signal;
    assert!(!request.is_watching());
    let mut running = JoinSet::new();
    running.spawn(reflector.again(None).run_inside());
    sleep(Duration::from_secs(1)).await;
    assert!(request.is_watching());
    running.shutdown().await;
    assert!(!request.is_watching(), "the next reflector may not watch");
}

/// A test server without objects, whose watch sends an event of invalid JSON and a bookmark.
#[derive(Clone)]
struct Garbled;

impl ListerWatcher for Garbled {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        let list = r#"{"metadata":{"resourceVersion":"5"},"items":[]}"#;
        let body = stream::iter([Ok(Bytes::from(list))]).boxed();
        std::future::ready(Ok(body.into())).boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
        let garbled = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",,\"resourceVersion\":\"6\"}}}\n{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n";
        let body = stream::iter([Ok(Bytes::from(garbled))])
            .chain(stream::pending())
            .boxed();
        std::future::ready(Ok(body.into())).boxed()
    }

    fn streams_lists(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_event_is_followed_by_a_list() {
    let (sender, mut received) = mpsc::channel(16);
    let reflector = Reflector::builder::<ConfigMap>(Garbled)
        .rng_seed(1)
        .into_store(sender);
    reflector.run(sleep(Duration::from_secs(4))).await;
    let mut kinds = Vec::new();
    while let Ok(delta) = received.try_recv() {
        kinds.push(format!("{:?}", delta.delta_type()));
    }
    assert_eq!(kinds, ["ReplacedAll", "ReplacedAll"]);
}
