//! Tests that an informer that receives protobuf has the same cache and events as one that receives
//! JSON.

use std::{fmt::Debug, sync::Arc};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use kube_informer::{
    Event, InitialList, SharedInformer,
    pruning::Pruned,
    shared_informer::Builder,
    transport::{ByteStream, Encoding, Error, ListOptions, ListerWatcher, Response},
};
use kube_informer_protobuf::{Envelope, Messages, encode, put_bytes};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::setting::LONG;

/// A `ListerWatcher` that returns one list and one endless watch, both in `encoding`.
#[derive(Clone)]
struct Source {
    encoding: Encoding,
    /// The encodings that the informer requested, in the order of its requests.
    requested: Arc<Mutex<Vec<Option<Encoding>>>>,
}

/// Returns a pod's JSON as a server sends it, with the revision in the label `state`.
fn pod(name: &str, revision: u64) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("uid-{name}"),
            "resourceVersion": revision.to_string(),
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"state": format!("at-{revision}")},
            "annotations": {"note": "ä"},
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
        "status": {"phase": "Running"},
    })
}

fn without_kind(mut pod: Value) -> Value {
    let members = pod.as_object_mut().unwrap();
    members.remove("apiVersion");
    members.remove("kind");
    pod
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    put_bytes(number, bytes, &mut field);
    field
}

fn message(pod: &Value) -> Vec<u8> {
    encode(Messages::builtin().of_kind("v1", "Pod").unwrap(), pod).unwrap()
}

fn in_envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [&Envelope::MAGIC[..], &field(1, &type_meta), &field(2, raw)].concat()
}

impl Source {
    fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            requested: Arc::default(),
        }
    }

    fn list_body(&self) -> Vec<u8> {
        let pods = [pod("a", 1), pod("b", 2), pod("c", 3)];
        if self.encoding == Encoding::Json {
            let items: Vec<_> = pods.into_iter().map(without_kind).collect();
            let metadata = json!({"resourceVersion": "3"});
            let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items});
            return list.to_string().into_bytes();
        }
        let items = pods.iter().map(|pod| field(2, &message(pod)));
        let list = [
            field(1, &field(2, b"3")),
            items.collect::<Vec<_>>().concat(),
        ]
        .concat();
        in_envelope("PodList", &list)
    }

    fn event(&self, kind: &str, pod: &Value) -> Vec<u8> {
        if self.encoding == Encoding::Json {
            return json!({"type": kind, "object": pod})
                .to_string()
                .into_bytes();
        }
        let object = field(2, &field(1, &in_envelope("Pod", &message(pod))));
        let event = [field(1, kind.as_bytes()), object].concat();
        let length = u32::try_from(event.len()).unwrap();
        [&length.to_be_bytes()[..], &event].concat()
    }

    fn watch_body(&self) -> Vec<u8> {
        [
            self.event("MODIFIED", &pod("a", 4)),
            self.event("DELETED", &pod("b", 5)),
            self.event("ADDED", &pod("d", 6)),
        ]
        .concat()
    }

    fn response(&self, options: &ListOptions, whole: &[u8], ends: bool) -> Response {
        self.requested.lock().push(options.encoding);
        let content_type = match self.encoding {
            Encoding::Json => "application/json",
            _ => "application/vnd.kubernetes.protobuf;stream=watch",
        };
        // Each chunk ends inside an object.
        let chunks: Vec<_> = whole.chunks(100).map(Bytes::copy_from_slice).collect();
        let body = stream::iter(chunks.into_iter().map(Ok));
        let body: ByteStream = if ends {
            body.boxed()
        } else {
            body.chain(stream::pending()).boxed()
        };
        Response::new(content_type, body)
    }
}

impl ListerWatcher for Source {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let response = self.response(options, &self.list_body(), true);
        Box::pin(async { Ok(response) })
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let response = self.response(options, &self.watch_body(), false);
        Box::pin(async { Ok(response) })
    }
}

/// Runs the informer until pod `d` is added, and returns the informer's events and cached objects as text.
///
/// The text has one line per event or object. The lines are sorted.
async fn outcome<K>(builder: Builder<K>) -> String
where
    K: Resource + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Send + Sync + 'static,
{
    let (informer, controller) = builder.build();
    let mut events = informer.subscribe().unwrap();
    let read = async {
        let mut lines = Vec::new();
        while let Some(event) = events.next().await {
            let line = match &event {
                Event::Added { object, .. } => format!("added {}", show(object)),
                Event::Updated { old, new, .. } => format!("{} → {}", show(old), show(new)),
                Event::Deleted(gone) => format!("deleted {}", gone.object_name()),
                Event::Synced => "synced".to_owned(),
            };
            lines.push(line);
            if matches!(&event, Event::Added { object, .. } if object.name() == "d") {
                break;
            }
        }
        let objects = informer.indexer().list();
        lines.extend(objects.iter().map(show));
        lines.sort_unstable();
        lines.join("\n")
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = controller.run(async { drop(stopped.await) });
    let read = async {
        let lines = tokio::time::timeout(LONG, read)
            .await
            .expect("all events are received");
        drop(stop);
        lines
    };
    let (ended, lines) = tokio::join!(running, read);
    ended.unwrap();
    lines
}

fn show<K: Resource + Debug>(object: &kube_informer::Object<K>) -> String {
    format!("{:?}", *object.get().unwrap())
}

/// Asserts that an informer has the same events and cached objects with protobuf as with JSON.
///
/// `configure` returns the informer's builder for a source of responses.
async fn same<K>(configure: impl Fn(Source) -> Builder<K>)
where
    K: Resource + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Send + Sync + 'static,
{
    let from_json = outcome(configure(Source::new(Encoding::Json))).await;
    let from_protobuf = outcome(configure(Source::new(Encoding::Protobuf))).await;
    assert_eq!(from_protobuf, from_json);
    assert!(from_json.contains("at-4") && from_json.contains("deleted default/b"));
}

fn managed_fields() -> [kube_informer::pruning::FieldPath; 1] {
    ["metadata.managedFields".parse().unwrap()]
}

#[tokio::test(start_paused = true)]
async fn a_typed_cache_of_any_form_is_the_same_from_protobuf() {
    let pods = |source| SharedInformer::<Pod>::builder(source).initial_list(InitialList::List);
    same(pods).await;
    same(|source| pods(source).prune(managed_fields()).unwrap()).await;
    same(|source| pods(source).lazy()).await;
    same(|source| pods(source).packed_from(2)).await;
    same(|source| pods(source).packed_from(2).prune(managed_fields()).unwrap()).await;
    let labelled = |pod: &mut Pod| {
        pod.metadata.annotations = None;
    };
    same(|source| pods(source).packed_from(2).transform(labelled)).await;
}

#[tokio::test(start_paused = true)]
async fn pruned_metadata_only_and_dynamic_objects_are_the_same_from_protobuf() {
    let keep = || ["spec.containers.name".parse().unwrap()];
    same(|source| SharedInformer::<Pruned<Pod>>::builder(source).keep(keep())).await;
    same(SharedInformer::<PartialObjectMeta<Pod>>::builder).await;
    let resource = ApiResource::erase::<Pod>(&());
    let dynamic =
        |source| SharedInformer::<DynamicObject>::builder_with_type(source, resource.clone());
    same(dynamic).await;
    same(|source| dynamic(source).packed_from(2)).await;
    // The kind of a dynamic object is in the envelope, which pruning keeps.
    same(|source| dynamic(source).prune(managed_fields()).unwrap()).await;
    same(|source| {
        dynamic(source)
            .packed_from(2)
            .prune(managed_fields())
            .unwrap()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_request_the_encoding_of_the_informer() {
    for encoding in [None, Some(Encoding::Json), Some(Encoding::Protobuf)] {
        let source = Source::new(Encoding::Protobuf);
        let mut builder = SharedInformer::<Pod>::builder(source.clone());
        if let Some(encoding) = encoding {
            builder = builder.encoding(encoding);
        }
        outcome(builder).await;
        assert_eq!(*source.requested.lock(), [encoding; 2]);
    }
}
