//! Tests protobuf responses of the benchmark's object server.
//!
//! The tests use an independent decoder, which shares no code with the server's encoder.

use http::{Method, StatusCode};
use prost::Message;
use source::CorpusKind;

use crate::served::Served;

const ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, tag = "1")]
    types: Option<TypeMeta>,
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct List {
    #[prost(message, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(message, repeated, tag = "2")]
    items: Vec<Object>,
}

#[derive(Clone, PartialEq, Message)]
struct ListMeta {
    #[prost(string, tag = "2")]
    revision: String,
    #[prost(string, tag = "3")]
    token: String,
    #[prost(int64, optional, tag = "4")]
    remaining: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Object {
    #[prost(message, tag = "1")]
    metadata: Option<ObjectMeta>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    revision: String,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct WatchEvent {
    #[prost(string, tag = "1")]
    event: String,
    #[prost(message, tag = "2")]
    object: Option<RawExtension>,
}

#[derive(Clone, PartialEq, Message)]
struct RawExtension {
    #[prost(bytes = "vec", tag = "1")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "4")]
    reason: String,
    #[prost(int32, tag = "6")]
    code: i32,
}

/// Returns the message in the envelope `runtime.Unknown`, which follows four magic bytes in `bytes`.
///
/// Panics unless the envelope contains the API version `v1` and the kind `kind`.
fn open<M: Message + Default>(bytes: &[u8], kind: &str) -> M {
    let unknown = Unknown::decode(bytes.strip_prefix(b"k8s\0").unwrap()).unwrap();
    let types = unknown.types.unwrap();
    assert_eq!(
        (types.api_version.as_str(), types.kind.as_str()),
        ("v1", kind)
    );
    M::decode(&unknown.raw[..]).unwrap()
}

fn events(mut bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut events = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let (frame, rest) = rest.split_at(u32::from_be_bytes(*len) as usize);
        let event = WatchEvent::decode(frame).unwrap();
        events.push((event.event, event.object.unwrap().raw));
        bytes = rest;
    }
    events
}

fn identities(list: &serde_json::Value) -> Vec<[String; 4]> {
    let items = list["items"].as_array().unwrap();
    let text =
        |item: &serde_json::Value, name: &str| item["metadata"][name].as_str().unwrap().to_owned();
    items
        .iter()
        .map(|item| ["namespace", "name", "uid", "resourceVersion"].map(|name| text(item, name)))
        .collect()
}

fn identity(object: Object) -> [String; 4] {
    let metadata = object.metadata.unwrap();
    [
        metadata.namespace,
        metadata.name,
        metadata.uid,
        metadata.revision,
    ]
}

#[tokio::test]
async fn a_list_has_the_objects_that_json_has() {
    for (kind, path, list_kind) in [
        (CorpusKind::Pods, "/api/v1/pods", "PodList"),
        (
            CorpusKind::Configmaps,
            "/api/v1/configmaps",
            "ConfigMapList",
        ),
        (CorpusKind::Secrets, "/api/v1/secrets", "SecretList"),
    ] {
        let served = Served::new(kind, 200).await;
        served.post("/emit?n=30").await;
        let (_, bytes) = served.ask(Method::GET, path, ACCEPT).await;
        let list: List = open(&bytes, list_kind);
        let (_, json) = served.get(path).await;
        assert_eq!(
            list.metadata.unwrap().revision,
            json["metadata"]["resourceVersion"].as_str().unwrap()
        );
        let found: Vec<_> = list.items.into_iter().map(identity).collect();
        assert_eq!(found, identities(&json));
    }
}

#[tokio::test]
async fn a_page_says_what_follows() {
    let served = Served::new(CorpusKind::Pods, 200).await;
    let (_, bytes) = served
        .ask(Method::GET, "/api/v1/pods?limit=150", ACCEPT)
        .await;
    let page: List = open(&bytes, "PodList");
    let metadata = page.metadata.unwrap();
    assert_eq!((page.items.len(), metadata.remaining), (150, Some(50)));
    let rest = format!("/api/v1/pods?limit=150&continue={}", metadata.token);
    let (_, bytes) = served.ask(Method::GET, &rest, ACCEPT).await;
    let page: List = open(&bytes, "PodList");
    assert_eq!(
        (page.items.len(), page.metadata.unwrap().token.as_str()),
        (50, "")
    );
}

#[tokio::test]
async fn a_watch_has_the_initial_objects_a_bookmark_and_the_changes() {
    let served = Served::new(CorpusKind::Pods, 40).await;
    let (_, json) = served.get("/api/v1/pods").await;
    let path = "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let watch = served.ask(Method::GET, path, ACCEPT);
    let change = async {
        // A change that is made before the watch begins would be in its initial objects.
        while served.get("/stats").await.1["watching"] != 1 {
            tokio::task::yield_now().await;
        }
        served.post("/emit?n=25").await;
        while served.get("/stats").await.1["events"] != 66 {
            tokio::task::yield_now().await;
        }
        served.post("/cut").await;
    };
    let ((code, bytes), ()) = tokio::join!(watch, change);
    assert_eq!(code, StatusCode::OK);
    let events = events(&bytes);
    let names: Vec<_> = events.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(
        names,
        [["ADDED"; 40].as_slice(), &["BOOKMARK"], &["MODIFIED"; 25]].concat()
    );
    let added: Vec<_> = events[..40]
        .iter()
        .map(|(_, raw)| identity(open(raw, "Pod")))
        .collect();
    assert_eq!(added, identities(&json));
    let bookmark = open::<Object>(&events[40].1, "Pod").metadata.unwrap();
    assert_eq!(bookmark.annotations["k8s.io/initial-events-end"], "true");
    let mut revision: u64 = bookmark.revision.parse().unwrap();
    assert_eq!(
        bookmark.revision,
        json["metadata"]["resourceVersion"].as_str().unwrap()
    );
    for (_, raw) in &events[41..] {
        let metadata = open::<Object>(raw, "Pod").metadata.unwrap();
        revision += 1;
        assert_eq!(metadata.revision, revision.to_string());
        assert!(metadata.annotations["bench/ts"].parse::<u64>().unwrap() > 0);
    }
}

#[tokio::test]
async fn a_watch_that_cant_begin_says_why() {
    let served = Served::new(CorpusKind::Pods, 10).await;
    for (revision, code, reason) in [("1", 410, "Expired"), ("9999999999", 504, "Timeout")] {
        let path = format!("/api/v1/pods?watch=true&resourceVersion={revision}");
        let (_, bytes) = served.ask(Method::GET, &path, ACCEPT).await;
        let events = events(&bytes);
        assert_eq!((events.len(), events[0].0.as_str()), (1, "ERROR"));
        let status: Status = open(&events[0].1, "Status");
        assert_eq!((status.code, status.reason.as_str()), (code, reason));
    }
}
