//! Tests responses in protobuf: objects, lists, watches and errors, with and without injected faults.

use bytes::Bytes;
use expect_test::expect;
use http_body_util::{BodyExt as _, Full};
use kube_informer_apiserver::{Kind, Scope, Server};
use kube_informer_protobuf::{
    Envelope, Messages, Missing, Options, WireFields, decode_with, encode,
};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::ask::{builder, get, labelled, pod, pods, request};

const PODS: &str = "/api/v1/pods";
const POD: &str = "/api/v1/namespaces/default/pods/a";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const EITHER: &str = "application/vnd.kubernetes.protobuf,application/json";

struct Reply {
    code: u16,
    content_type: String,
    body: Bytes,
}

async fn get_as(server: &Server, uri: &str, accept: &str) -> Reply {
    let request = request("GET", uri).header("accept", accept);
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let response = server.clone().call(request).await.unwrap();
    let (parts, body) = response.into_parts();
    Reply {
        code: parts.status.as_u16(),
        content_type: parts.headers["content-type"].to_str().unwrap().to_owned(),
        body: body.collect().await.unwrap().to_bytes(),
    }
}

/// Decodes the object in a protobuf envelope, and returns the object as JSON.
fn decoded(object: &[u8]) -> Value {
    let object = object
        .strip_prefix(&Envelope::MAGIC)
        .expect("the magic number");
    let envelope = Envelope::read(object).unwrap();
    let type_meta = (&*envelope.api_version, &*envelope.kind);
    let message = Messages::v1_36().of_kind(type_meta.0, type_meta.1);
    let options = Options {
        depth: 127,
        containers: 1_000,
        values: 1_000,
        missing: Missing::Nothing,
    };
    let decoded = decode_with(
        message.unwrap(),
        Some(type_meta),
        envelope.raw,
        options,
        |message| Value::deserialize(message),
    );
    decoded.unwrap_or_else(|error| json!(error.to_string()))
}

/// Returns the API version and kind, the encoded `ListMeta`, and the encoded items of a protobuf list.
///
/// The `ListMeta` is a vector, because a protobuf message can contain the same field more than once.
fn list(body: &[u8]) -> (String, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let envelope = Envelope::read(body.strip_prefix(&Envelope::MAGIC).unwrap()).unwrap();
    let of_number = |number: u32| {
        let fields = WireFields::new(envelope.raw).map(Result::unwrap);
        let fields = fields.filter(move |(found, _)| *found == number);
        fields.map(|(_, value)| value.bytes().unwrap().to_vec())
    };
    let kind = format!("{} {}", envelope.api_version, envelope.kind);
    (kind, of_number(1).collect(), of_number(2).collect())
}

/// Decodes the protobuf events of a watch into one line of text per event.
fn events(mut body: &[u8]) -> Vec<String> {
    let mut events = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap();
        let (event, rest) = rest.split_at(length);
        body = rest;
        events.push(event_text(event).unwrap_or_else(|| "unreadable".to_owned()));
    }
    events
}

fn event_text(event: &[u8]) -> Option<String> {
    let (mut event_type, mut object) = (String::new(), Value::Null);
    for field in WireFields::new(event) {
        let (number, value) = field.ok()?;
        let bytes = value.bytes().ok()?;
        if number == 1 {
            event_type = String::from_utf8_lossy(bytes).into_owned();
        } else {
            let (_, raw) = WireFields::new(bytes).next()?.ok()?;
            object = decoded(raw.bytes().ok()?);
        }
    }
    let text = match &object {
        Value::String(error) => error.clone(),
        Value::Object(_) if object["kind"] == "Status" => {
            format!("{} {}", object["code"], object["message"].as_str()?)
        }
        _ => {
            let metadata = &object["metadata"];
            let name = metadata["name"].as_str().unwrap_or("-");
            let end = metadata.pointer("/annotations/k8s.io~1initial-events-end");
            let end = if end.is_some() { " end" } else { "" };
            let (kind, revision) = (
                object["kind"].as_str()?,
                metadata["resourceVersion"].as_str()?,
            );
            format!("{kind} {name}@{revision}{end}")
        }
    };
    Some(format!("{event_type} {text}"))
}

/// Returns the events of a one-second watch that starts with the current objects.
async fn watch(server: &Server, accept: &str) -> String {
    let uri = format!(
        "{PODS}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let reply = get_as(server, &uri, accept).await;
    assert_eq!(reply.content_type, format!("{PROTOBUF};stream=watch"));
    events(&reply.body).join("\n") + "\n"
}

#[tokio::test(start_paused = true)]
async fn objects_and_lists_have_the_bytes_of_their_json() {
    let server = pods(&["a", "b", "other/c"]);
    let message = Messages::v1_36().of_kind("v1", "Pod").unwrap();
    let one = get_as(&server, POD, PROTOBUF).await;
    assert_eq!((one.code, &*one.content_type), (200, PROTOBUF));
    let json = get(&server, POD).await.json;
    let expected = Envelope::wrap("v1", "Pod", &encode(message, &json).unwrap());
    assert_eq!(one.body, expected);

    let page = format!("{PODS}?limit=2");
    let reply = get_as(&server, &page, EITHER).await;
    assert_eq!((reply.code, &*reply.content_type), (200, PROTOBUF));
    let json = get(&server, &page).await.json;
    let (kind, metadata, items) = list(&reply.body);
    assert_eq!(kind, "v1 PodList");
    let expected: Vec<_> = json["items"].as_array().unwrap().iter().collect();
    assert_eq!(items.len(), expected.len());
    for (item, expected) in items.iter().zip(expected) {
        assert_eq!(*item, encode(message, expected).unwrap());
    }
    let text = |number| {
        let fields = WireFields::new(&metadata[0]).map(Result::unwrap);
        let mut fields = fields.filter(|(found, _)| *found == number);
        String::from_utf8(fields.next().unwrap().1.bytes().unwrap().to_vec()).unwrap()
    };
    assert_eq!(text(2), json["metadata"]["resourceVersion"]);
    assert_eq!(text(3), json["metadata"]["continue"]);
    assert!(reply.body.ends_with(&Envelope::END));
}

#[tokio::test(start_paused = true)]
async fn a_long_list_is_sent_in_chunks_with_its_length_first() {
    let names: Vec<String> = (0..1_000).map(|number| format!("p{number:04}")).collect();
    let server = pods(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let reply = get_as(&server, PODS, PROTOBUF).await;
    assert_eq!(list(&reply.body).2.len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn metadata_are_protobuf_for_every_kind() {
    let widgets = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"}, "spec": {"size": 1},
    });
    let server = builder().kind(widgets).seed([pod("a"), widget]).build();
    for (collection, name) in [(PODS, "a"), ("/apis/example.com/v1/widgets", "w")] {
        let accept = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
        let reply = get_as(&server, collection, &accept).await;
        let (kind, _, items) = list(&reply.body);
        assert_eq!(kind, "meta.k8s.io/v1 PartialObjectMetadataList");
        let object = Envelope::wrap("meta.k8s.io/v1", "PartialObjectMetadata", &items[0]);
        assert_eq!(decoded(&object)["metadata"]["name"], name);
    }
    let reply = get_as(&server, "/apis/example.com/v1/widgets", EITHER).await;
    assert_eq!(reply.content_type, "application/json");
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_objects_bookmarks_and_errors_as_protobuf() {
    let server = pods(&["a", "b"]);
    expect![[r#"
        ADDED Pod a@1
        ADDED Pod b@2
        BOOKMARK Pod -@2 end
    "#]]
    .assert_eq(&watch(&server, PROTOBUF).await);
    server.delete("v1", "pods", "default/a").unwrap();
    server.update(labelled("b", "l", "v")).unwrap();
    let uri = format!("{PODS}?watch=1&timeoutSeconds=1&resourceVersion=2");
    let reply = get_as(&server, &uri, EITHER).await;
    expect![[r#"
        DELETED Pod a@3
        MODIFIED Pod b@4"#]]
    .assert_eq(&events(&reply.body).join("\n"));
    server.faults().expire_history();
    let reply = get_as(&server, &uri, EITHER).await;
    expect!["ERROR 410 too old resource version: 2 (4)"].assert_eq(&events(&reply.body).join("\n"));
}

#[tokio::test(start_paused = true)]
async fn an_error_response_is_a_status_in_protobuf() {
    let server = pods(&[]);
    let reply = get_as(&server, POD, EITHER).await;
    assert_eq!((reply.code, &*reply.content_type), (404, PROTOBUF));
    let status = decoded(&reply.body);
    assert_eq!(status["message"], r#"pods "a" not found"#);
    assert_eq!(status["details"]["kind"], "pods");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_fit_is_sent_as_json_and_ends_a_watch() {
    let mut newer = pod("a");
    newer["spec"]["fieldOfANewerVersion"] = json!(1);
    let server = builder().seed([newer, pod("b")]).build();
    for uri in [POD, PODS] {
        let reply = get_as(&server, uri, EITHER).await;
        assert_eq!(
            (reply.code, &*reply.content_type),
            (200, "application/json")
        );
    }
    expect![[r#"
        ERROR 500 an object of kind Pod can't be encoded as protobuf; request JSON
    "#]]
    .assert_eq(&watch(&server, EITHER).await);
}

/// Returns the events of a watch of two pods, with the faults of `plan`.
async fn watch_with(plan: &str) -> String {
    let seeded = builder().seed([pod("a"), pod("b")]);
    watch(&seeded.faults(plan).unwrap().build(), PROTOBUF).await
}

#[tokio::test(start_paused = true)]
async fn faults_change_single_events_of_a_watch() {
    for (fault, expected) in [
        (
            "drop event 1",
            expect![[r#"
            ADDED Pod b@2
            BOOKMARK Pod -@2 end
        "#]],
        ),
        (
            "duplicate event 1",
            expect![[r#"
            ADDED Pod a@1
            ADDED Pod a@1
            ADDED Pod b@2
            BOOKMARK Pod -@2 end
        "#]],
        ),
        (
            "swap event 1",
            expect![[r#"
            ADDED Pod b@2
            ADDED Pod a@1
            BOOKMARK Pod -@2 end
        "#]],
        ),
        (
            "garble event 1",
            expect![[r#"
            unreadable
            ADDED Pod b@2
            BOOKMARK Pod -@2 end
        "#]],
        ),
        (
            "spoil event 1",
            expect![[r#"
            ADDED metadata.annotations: proto: wrong wireType = 0
            ADDED Pod b@2
            BOOKMARK Pod -@2 end
        "#]],
        ),
        (
            "retype event 1",
            expect![[r#"
            MOVED Pod a@1
            ADDED Pod b@2
            BOOKMARK Pod -@2 end
        "#]],
        ),
        (
            "drop end-bookmark",
            expect![[r#"
            ADDED Pod a@1
            ADDED Pod b@2
        "#]],
        ),
        (
            "cut after 1 event",
            expect![[r#"
            ADDED Pod a@1
        "#]],
        ),
    ] {
        expected.assert_eq(&watch_with(&format!("watch pods: {fault}")).await);
    }
}
