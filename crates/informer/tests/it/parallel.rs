//! Tests of decoding on a runtime with several threads.
//!
//! Several threads decode the objects of one list or of one watch. The handlers must receive the same events,
//! in the same order, as on a runtime with one thread.

use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler, InitialList, Object, SharedInformer, reflector::TimeoutConfig,
};
use parking_lot::{Condvar, Mutex};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    script::{Answer, Script, Then},
    setting::{Running, run},
};

const PODS: usize = 1500;

/// Maximum real time of a wait, reached only by a failing test.
const SOON: Duration = Duration::from_secs(30);

/// Returns about one kilobyte of JSON of pod `number`; pod 700 does not decode.
fn item(number: usize, revision: usize) -> String {
    let containers = if number == 700 {
        "7".to_owned()
    } else {
        let image = "x".repeat(1024);
        format!(r#"[{{"name":"main","image":"{image}{revision}"}}]"#)
    };
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p{number:04}","namespace":"default","uid":"{number}","resourceVersion":"{revision}"}},"spec":{{"containers":{containers}}}}}"#
    )
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

/// Returns a streaming list's body with `pods` pods and the final bookmark.
fn initial_events(pods: usize) -> String {
    let end = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{pods}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}"#
    );
    let added = (0..pods).map(|number| event("ADDED", &item(number, number + 1)));
    added.chain([event("BOOKMARK", &end)]).collect()
}

/// Returns responses that deliver all pods, and then two updates per pod. One chunk contains all updates.
fn script(way: InitialList) -> Script {
    let changes = (0..2 * PODS).map(|at| event("MODIFIED", &item(at % PODS, PODS + 1 + at)));
    let changes: String = changes.collect();
    let all = (0..PODS).map(|number| item(number, number + 1));
    let answers = if way == InitialList::Streaming {
        vec![Answer::Body(initial_events(PODS) + &changes, Then::Hangs)]
    } else {
        let items = all.collect::<Vec<_>>().join(",");
        let list = format!(r#"{{"metadata":{{"resourceVersion":"{PODS}"}},"items":[{items}]}}"#);
        vec![
            Answer::Body(list, Then::Ends),
            Answer::Body(changes, Then::Hangs),
        ]
    };
    Script::streaming(answers)
}

/// A handler that decodes every object that it receives, and records its events.
#[derive(Clone, Default)]
struct Looking(Arc<Told>);

/// The state that all clones of a [`Looking`] handler share.
#[derive(Default)]
struct Told {
    lines: Mutex<Vec<String>>,
    /// When the handler has received this number of events, it pauses until `goes_on` is notified. 0 means
    /// that the handler never pauses.
    stops_at: usize,
    stopped: Notify,
    goes_on: Notify,
}

fn image(object: &Object<Pod>) -> String {
    let Ok(pod) = object.get() else {
        return "broken".to_owned();
    };
    let image = pod.spec.as_ref().unwrap().containers[0].image.clone();
    image.unwrap().trim_start_matches('x').to_owned()
}

impl EventHandler<Pod> for Looking {
    async fn handle(&mut self, event: Event<Pod>) {
        let line = match event {
            Event::Added { object, .. } => format!("+{} {}", object.name(), image(&object)),
            Event::Updated { new, .. } => format!("{} {}", new.name(), image(&new)),
            Event::Deleted(deleted) => format!("-{}", deleted.object_name()),
            Event::Synced => "synced".to_owned(),
        };
        let told = {
            let mut lines = self.0.lines.lock();
            lines.push(line);
            lines.len()
        };
        if told == self.0.stops_at {
            self.0.stopped.notify_one();
            self.0.goes_on.notified().await;
        }
    }
}

fn begin(way: InitialList, is_packed: bool, handler: &Looking) -> Running {
    let building = SharedInformer::builder(script(way)).initial_list(way);
    let building = if is_packed {
        building.packed_from(64)
    } else {
        building
    };
    let informer = run(building);
    informer.pods.handler(handler.clone()).register().unwrap();
    informer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn events_are_delivered_in_the_order_of_the_watch() {
    for way in [InitialList::Streaming, InitialList::List] {
        for is_packed in [false, true] {
            let handler = Looking::default();
            let informer = begin(way, is_packed, &handler);
            let written = informer.pods.wait_for_revision(3 * PODS as u64, SOON);
            written.await.unwrap();
            timeout(SOON, informer.pods.handlers_idle()).await.unwrap();
            let told = |number: usize, revision: usize, sign: &str| match (number, is_packed) {
                (700, false) => None,
                (700, true) => Some(format!("{sign}p0700 broken")),
                _ => Some(format!("{sign}p{number:04} {revision}")),
            };
            let added = (0..PODS).filter_map(|number| told(number, number + 1, "+"));
            let changed = (0..2 * PODS).filter_map(|at| told(at % PODS, PODS + 1 + at, ""));
            let expected: Vec<_> = added.chain(["synced".to_owned()]).chain(changed).collect();
            let heard = handler.0.lines.lock().clone();
            let differ = heard
                .iter()
                .zip(&expected)
                .find(|(heard, said)| heard != said);
            assert_eq!(differ, None, "{way:?} {is_packed}");
            assert_eq!(heard.len(), expected.len());
            informer.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn undelivered_events_of_a_removed_handler_are_counted_as_discarded() {
    let handler = Looking(Arc::new(Told {
        stops_at: 300,
        ..Told::default()
    }));
    let informer = begin(InitialList::List, true, &handler);
    timeout(SOON, handler.0.stopped.notified()).await.unwrap();
    let written = informer.pods.wait_for_revision(3 * PODS as u64, SOON);
    written.await.unwrap();
    let all = 3 * PODS as u64 + 1;
    let told = Arc::clone(&handler.0);
    let (pods, ()) = tokio::join!(informer.stop(), async {
        // A stop waits for the call in progress.
        tokio::task::yield_now().await;
        told.goes_on.notify_one();
    });
    let heard = handler.0.lines.lock().len() as u64;
    let discarded = pods.status().get().discarded;
    assert!(heard < all && discarded > 0);
    assert_eq!(heard + discarded, all);
}

/// A barrier for two threads. A thread that waits longer than [`SOON`] continues and sets `missed`.
#[derive(Default)]
struct Rendezvous {
    came: Mutex<usize>,
    changed: Condvar,
    missed: AtomicBool,
}

impl Rendezvous {
    fn wait(&self) {
        let mut came = self.came.lock();
        *came += 1;
        self.changed.notify_all();
        let waited = self
            .changed
            .wait_while_for(&mut came, |came| *came < 2, SOON);
        let is_late = waited.timed_out();
        self.missed.fetch_or(is_late, Ordering::Relaxed);
    }
}

/// Returns a list or streaming list of all pods, with one chunk per pod.
fn in_small_chunks(way: InitialList) -> Answer {
    if way == InitialList::Streaming {
        let events = initial_events(PODS);
        let chunks = events.split_inclusive('\n').map(str::to_owned);
        return Answer::Chunks(chunks.collect(), Then::Hangs);
    }
    let begin = format!(r#"{{"metadata":{{"resourceVersion":"{PODS}"}},"items":["#);
    let items = (0..PODS).map(|number| match number {
        0 => item(number, number + 1),
        _ => format!(",{}", item(number, number + 1)),
    });
    let chunks = iter::once(begin).chain(items).chain(["]}".to_owned()]);
    Answer::Chunks(chunks.collect(), Then::Ends)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_list_with_a_chunk_for_each_object_is_decoded_by_several_threads() {
    for way in [InitialList::Streaming, InitialList::List] {
        let rendezvous = Arc::new(Rendezvous::default());
        let two = Arc::clone(&rendezvous);
        let informer = run(
            SharedInformer::builder(Script::streaming([in_small_chunks(way)]))
                .initial_list(way)
                .transform(move |pod: &mut Pod| {
                    // Far enough apart to be decoded in different batches.
                    if matches!(pod.metadata.name.as_deref(), Some("p0000" | "p0080")) {
                        two.wait();
                    }
                }),
        );
        let synced = informer.pods.wait_for_sync().deadline(3 * SOON);
        synced.await.unwrap();
        let missed = rendezvous.missed.load(Ordering::Relaxed);
        assert!(!missed, "{way:?}: the objects are decoded sequentially");
        assert_eq!(informer.pods.indexer().len(), PODS - 1);
        informer.stop().await;
    }
}

/// Maximum wait for the next initial event in the test
/// `a_deadline_that_passes_while_another_thread_decodes_does_not_stop_the_reflector`.
const INITIAL_EVENTS: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_that_passes_while_another_thread_decodes_does_not_stop_the_reflector() {
    // Large enough to be decoded on another thread, and small enough that the body is read on meanwhile.
    let pods = 200;
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let (gate, reached) = (Mutex::new(gate), Arc::new(Notify::new()));
    let in_decoder = Arc::clone(&reached);
    let script = Script::streaming([Answer::Body(initial_events(pods), Then::Hangs)]);
    let informer = run(SharedInformer::builder(script)
        .initial_list(InitialList::Streaming)
        .timeouts(TimeoutConfig {
            initial_events: INITIAL_EVENTS,
            ..TimeoutConfig::default()
        })
        .transform(move |pod: &mut Pod| {
            if pod.metadata.resource_version.as_deref() == Some("101") {
                in_decoder.notify_one();
                // Returns when the test drops the sender.
                let _ = gate.lock().recv();
            }
        }));
    timeout(SOON, reached.notified()).await.unwrap();
    // If the deadline wins every poll from here on, the decoded pieces are never received.
    sleep(3 * INITIAL_EVENTS).await;
    drop(open);
    informer.pods.wait_for_sync().deadline(SOON).await.unwrap();
    assert_eq!(informer.pods.indexer().len(), pods);
    let status = informer.pods.status().get();
    assert!(status.sources[0].last_error.is_none(), "{status}");
    informer.stop().await;
}
