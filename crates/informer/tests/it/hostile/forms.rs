//! Tests that all types of caches have the same content when a server sends invalid objects.
//!
//! A cache keeps objects decoded, compressed ([`Builder::packed`]), or undecoded until they are first read
//! ([`Builder::lazy`]). All types must contain the same objects, and report the same error for an object that
//! cannot be decoded. The invalid objects have fields of a wrong type, no metadata, another kind, duplicate
//! keys, deep nesting or invalid UTF-8.

mod steps;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use expect_test::expect;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use kube_informer::{
    Deleted, Event, EventHandler, Object, SharedInformer,
    pruning::{Pruned, Storable},
    shared_informer::Builder,
    transport::{Error, ListOptions, ListerWatcher, Response},
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{sync::Notify, time::sleep};

use crate::setting::Trace;

/// A simulated API server that stores and sends objects without parsing them.
#[derive(Clone, Default)]
struct Hostile(Arc<Kept>);

/// The state that all clones of a [`Hostile`] server share.
#[derive(Default)]
struct Kept {
    state: Mutex<State>,
    changed: Notify,
}

/// The stored objects and the recorded watch events of a [`Hostile`] server.
#[derive(Default)]
struct State {
    objects: BTreeMap<&'static str, Vec<u8>>,
    /// All watch events. The first event has revision 1.
    events: Vec<Bytes>,
}

impl Hostile {
    /// Stores `object`, and records an `ADDED` or `MODIFIED` event with `object`.
    ///
    /// The text `REVISION` in `object` is replaced by the revision of this event.
    fn write(&self, name: &'static str, object: &[u8]) {
        let mut state = self.0.state.lock();
        let object = at_revision(object, state.events.len() + 1);
        let kind = if state.objects.insert(name, object.clone()).is_some() {
            "MODIFIED"
        } else {
            "ADDED"
        };
        state.events.push(event(kind, &object));
        self.0.changed.notify_waiters();
    }

    /// Deletes an object, and records a `DELETED` event with the final state `last`.
    fn delete(&self, name: &'static str, last: &[u8]) {
        let mut state = self.0.state.lock();
        let last = at_revision(last, state.events.len() + 1);
        state.objects.remove(name);
        state.events.push(event("DELETED", &last));
        self.0.changed.notify_waiters();
    }

    fn body(&self) -> Bytes {
        let state = self.0.state.lock();
        let revision = state.events.len();
        let head = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}"}},"items":["#
        );
        let items: Vec<_> = state.objects.values().cloned().collect();
        [head.as_bytes(), &items.join(&b","[..]), b"]}"]
            .concat()
            .into()
    }

    /// Waits until the watch event at index `behind` exists, and returns this event.
    async fn next(self, behind: usize) -> Bytes {
        loop {
            let changed = self.0.changed.notified();
            if let Some(event) = self.0.state.lock().events.get(behind) {
                return event.clone();
            }
            changed.await;
        }
    }
}

fn at_revision(object: &[u8], revision: usize) -> Vec<u8> {
    let mark = b"REVISION";
    let (mut before, mut rest) = (Vec::new(), object);
    while let Some(at) = rest.windows(mark.len()).position(|it| it == mark) {
        before.extend_from_slice(&rest[..at]);
        before.extend_from_slice(revision.to_string().as_bytes());
        rest = &rest[at + mark.len()..];
    }
    [&before, rest].concat()
}

fn event(kind: &str, object: &[u8]) -> Bytes {
    let head = format!(r#"{{"type":"{kind}","object":"#);
    [head.as_bytes(), object, b"}\n"].concat().into()
}

impl ListerWatcher for Hostile {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let body = Ok(self.body());
        async { Ok(stream::iter([body]).boxed().into()) }.boxed()
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let from: usize = options.resource_version.to_string().parse().unwrap();
        let server = self.clone();
        let events = stream::iter(from..).then(move |behind| server.clone().next(behind).map(Ok));
        async { Ok(events.boxed().into()) }.boxed()
    }
}

/// The results of one informer, with one entry per step of [`steps::script`].
///
/// `shown` has the content of the cache after each step, `received` the handler's events during each step.
struct Lived {
    shown: Vec<String>,
    received: Vec<String>,
}

async fn live<K>(builder: impl FnOnce(Hostile) -> Builder<K>) -> Lived
where
    K: Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    let server = Hostile::default();
    server.write("other", br#"{"metadata":{"name":"other","namespace":"default","uid":"o","resourceVersion":"REVISION"}}"#);
    let trace = Trace::default();
    let reported = trace.clone();
    let builder = builder(server.clone()).rng_seed(1);
    let builder = builder.on_error(move |error| reported.note(format!("reported: {error}")));
    let (informer, controller) = builder.build();
    let told = trace.clone();
    informer.handler(Told(told)).register().unwrap();
    let mut lived = Lived {
        shown: Vec::new(),
        received: Vec::new(),
    };
    let script = async {
        informer.wait_for_sync().await.unwrap();
        for (step, act, bytes) in steps::script() {
            match act {
                "write" => server.write("a", &bytes),
                _ => server.delete("a", &bytes),
            }
            // Longer than any back-off after an event that can't be read at all.
            sleep(Duration::from_secs(120)).await;
            for object in informer.indexer().snapshot().iter() {
                let _ = object.get();
            }
            sleep(Duration::from_secs(1)).await;
            let (mut told, mut errors) = (Vec::new(), BTreeSet::new());
            for line in trace.take().lines() {
                match line.strip_prefix("reported: ") {
                    Some(error) if error.contains("watch") => {}
                    Some(error) => _ = errors.insert(error.to_owned()),
                    None => told.push(line.to_owned()),
                }
            }
            lived
                .shown
                .push(format!("{step}: {}\n{errors:#?}", show(&informer)));
            if told.is_empty() {
                told.push("nothing".to_owned());
            }
            lived.received.push(format!("{step}: {}", told.join(", ")));
        }
    };
    controller.run(script).await.unwrap();
    lived
}

/// Returns the cache's content as text: the numbers of decoded and undecodable objects, and all objects.
fn show<K: Resource + Debug>(informer: &SharedInformer<K>) -> String {
    let (snapshot, status) = (informer.indexer().snapshot(), informer.status().get());
    let listed = snapshot.iter().map(|object| {
        let labels: Vec<_> = object.labels().iter().collect();
        format!("{object:?} {} {labels:?} {:?}", object.uid(), object.get())
    });
    let broken = snapshot.broken().map(|(name, error)| {
        let object = snapshot.get(name).unwrap();
        assert_eq!(object.get().unwrap_err(), *error);
        let labels: Vec<_> = object.labels().iter().collect();
        format!("{object:?} {} {labels:?} {error}", object.uid())
    });
    let shown: Vec<_> = listed.chain(broken).collect();
    assert_eq!(status.broken_count, snapshot.broken_count());
    assert_eq!(snapshot.broken_in("default"), snapshot.broken_count());
    assert_eq!(snapshot.unread_count(), 0, "everything was read");
    format!(
        "{}, {} broken\n{}",
        snapshot.len(),
        status.broken_count,
        shown.join("\n")
    )
}

/// A handler that records its events, and whether their objects can be decoded.
struct Told(Trace);

impl<K: Send + Sync + 'static> EventHandler<K> for Told {
    async fn handle(&mut self, event: Event<K>) {
        let state = |object: &Object<K>| {
            let what = if object.get().is_ok() {
                ""
            } else {
                " undecodable"
            };
            format!("{object:?}{what}")
        };
        self.0.note(match &event {
            Event::Added { object, .. } => format!("add {}", state(object)),
            Event::Updated { old, new, .. } => format!("update {} → {}", state(old), state(new)),
            Event::Deleted(Deleted::Known(object)) => format!("delete {}", state(object)),
            Event::Deleted(Deleted::FinalStateUnknown { last_known, .. }) => {
                format!("delete, last known {:?}", last_known.as_ref().map(state))
            }
            Event::Synced => return,
        });
    }
}

/// Runs [`steps::script`] with all types of caches, and asserts that their content is the same.
///
/// The packed and lazy caches must also deliver the same events. The events of the decoded cache can differ.
/// Returns the results of the decoded cache, then those of the packed cache.
async fn same_in_every_form<K>(
    what: &str,
    builder: impl Fn(Hostile) -> Builder<K>,
) -> (Lived, Lived)
where
    K: Resource + Storable + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    let at_once = live(&builder).await;
    let packed = live(|server| builder(server).packed()).await;
    let from_8 = live(|server| builder(server).packed_from(8)).await;
    let lazy = live(|server| builder(server).lazy()).await;
    for (form, lived) in [
        ("packed", &packed),
        ("packed from 8", &from_8),
        ("lazy", &lazy),
    ] {
        assert_eq!(lived.shown, at_once.shown, "{what}, {form}");
        assert_eq!(lived.received, packed.received, "{what}, {form}");
    }
    (at_once, packed)
}

fn pods(server: Hostile) -> Builder<Pod> {
    SharedInformer::builder(server)
}

#[tokio::test(start_paused = true)]
async fn a_hostile_server_produces_the_same_cache_in_every_form() {
    let (pod, packed) = same_in_every_form("pods", pods).await;
    let pruned = |server| {
        let fields = ["metadata.managedFields".parse().unwrap()];
        pods(server).prune(fields).unwrap()
    };
    let pruned = same_in_every_form("pruned pods", pruned).await;
    assert_eq!(pruned.0.shown, pod.shown);
    assert_eq!(pruned.0.received, pod.received);
    assert_eq!(pruned.1.received, packed.received);
    same_in_every_form("cut pods", |server| {
        let fields = ["metadata.annotations".parse().unwrap()];
        SharedInformer::<Pruned<Pod>>::builder(server)
            .prune(fields)
            .unwrap()
    })
    .await;
    same_in_every_form(
        "metadata",
        SharedInformer::<PartialObjectMeta<Pod>>::builder,
    )
    .await;
    same_in_every_form("dynamic objects", |server| {
        SharedInformer::<DynamicObject>::builder_with_type(server, ApiResource::erase::<Pod>(&()))
    })
    .await;

    assert_eq!(rows_of_the_guide(), DIFFERENCES);
    let differs = pod.received.iter().zip(&packed.received);
    let differs = differs.filter(|(at_once, on_demand)| at_once != on_demand);
    let lines = differs.map(|(at_once, on_demand)| {
        let (_, on_demand) = on_demand.split_once(": ").unwrap();
        format!("{at_once}\n    on demand: {on_demand}\n")
    });
    expect![[r#"
        containers that are not a list: nothing
            on demand: update default/a@2 → default/a@3 undecodable
        broken after broken: nothing
            on demand: update default/a@3 undecodable → default/a@4 undecodable
        healthy again: update default/a@2 → default/a@5
            on demand: update default/a@4 undecodable → default/a@5
        null in a list: nothing
            on demand: update default/a@6 → default/a@7 undecodable
        a duplicate key: update default/a@6 → default/a@8
            on demand: update default/a@7 undecodable → default/a@8
        deep nesting: nothing
            on demand: update default/a@9 → default/a@10 undecodable
        invalid UTF-8: nothing
            on demand: update default/a@10 undecodable → default/a@11 undecodable
        labels that are not a map: nothing
            on demand: update default/a@11 undecodable → default/a@13 undecodable
        a label that is not a string: nothing
            on demand: update default/a@13 undecodable → default/a@14 undecodable
        annotations that are not a map: nothing
            on demand: update default/a@14 undecodable → default/a@15 undecodable
        owner references that are not a list: nothing
            on demand: update default/a@15 undecodable → default/a@16 undecodable
        an invalid time: nothing
            on demand: update default/a@16 undecodable → default/a@17 undecodable
        a uid that is not a string: delete, last known Some("default/a@9")
            on demand: delete, last known Some("default/a@17 undecodable")
        broken from the beginning: nothing
            on demand: add default/a@31 undecodable
        deleted while broken: nothing
            on demand: delete default/a@32 undecodable
        deleted in a broken state: delete, last known Some("default/a@33")
            on demand: delete default/a@34 undecodable
    "#]]
    .assert_eq(&lines.collect::<String>());
}

const GUIDE: &str = include_str!("../../../guide.md");

/// Returns the first cell of each row of the table of cache types in `guide.md`.
fn rows_of_the_guide() -> Vec<&'static str> {
    let table = GUIDE
        .lines()
        .skip_while(|line| !line.contains(FIRST_DIFFERENCE));
    let rows = table.take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split(" | ").next()).collect()
}

const FIRST_DIFFERENCE: &str = "is reported and counted";

/// Expected result of [`rows_of_the_guide`].
const DIFFERENCES: [&str; 4] = [
    "| A state that can't be decoded is reported and counted",
    "| A new state of a broken object",
    "| Handlers receive a state that can't be decoded",
    "| Handlers receive the deletion of an object that can't be decoded",
];
