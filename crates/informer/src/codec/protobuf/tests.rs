//! Tests that lists, watches and objects in protobuf are read as the same ones in JSON, and that invalid bytes
//! are an error.

use bytes::Bytes;
use expect_test::expect;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube_core::{DynamicObject, Resource};
use kube_informer_protobuf::encode;
use serde_json::json;

use super::{
    super::{Codec, Encoded, Encoding, Frame, FrameKind, SplitError, frame::ListEnd},
    *,
};
use crate::{limits::LIST_ENVELOPE_BYTES, pruning::Pruning};

/// Returns a pod with metadata, lists, maps, times, quantities, ports by number and by name, and a volume whose
/// source is a member of the volume.
fn pod(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("uid-{name}"),
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "web", "tier": "front"},
            "annotations": {"a.b/c": "d", "note": "ä"},
            "managedFields": [{
                "manager": "kubectl",
                "operation": "Apply",
                "time": "2026-01-02T03:04:05Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:nodeName": {}}},
            }],
        },
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "env": [{"name": "A", "value": "b"}],
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}},
                    "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 3},
                },
                {"name": "d", "resources": {}},
            ],
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
            "terminationGracePeriodSeconds": 0,
        },
        "status": {"phase": "Running", "startTime": "2026-01-02T03:04:06Z"},
    })
}

fn schema(api_version: &str, kind: &str) -> Schema {
    Schema::of_kind(api_version, kind).unwrap()
}

fn message_of(kind: &str, object: &Value) -> Vec<u8> {
    encode(schema("v1", kind).0, object).unwrap()
}

/// Returns a message in the envelope that states its kind.
fn enveloped(kind: &str, raw: &[u8]) -> Vec<u8> {
    with_kind(raw, &Expected::new("v1", kind, false))
}

/// Returns the field with these bytes.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    put_bytes(number, bytes, &mut field);
    field
}

/// Returns the body of a list of pods.
fn list(kind: &str, metadata: &[u8], pods: &[Value]) -> Vec<u8> {
    let mut list = field(1, metadata);
    for pod in pods {
        put_bytes(2, &message_of("Pod", pod), &mut list);
    }
    // Go writes two empty fields behind the list.
    [enveloped(kind, &list), field(3, b""), field(4, b"")].concat()
}

fn metadata() -> Vec<u8> {
    let mut remaining = Vec::new();
    kube_informer_protobuf::put_varint(4, 9, &mut remaining);
    [
        field(1, b""),
        field(2, b"42"),
        field(3, b"token"),
        remaining,
    ]
    .concat()
}

/// Returns a watch event with its length.
fn event(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind.as_bytes()), field(2, &field(1, object))].concat();
    let length = u32::try_from(event.len()).unwrap();
    [&length.to_be_bytes()[..], &event].concat()
}

fn split_list(chunks: &[&[u8]]) -> Result<(Vec<Frame>, ListEnd), SplitError> {
    let mut splitter = Encoding::Protobuf.list_splitter(10_000);
    let mut frames = Vec::new();
    for chunk in chunks {
        splitter.feed(Bytes::copy_from_slice(chunk), &mut frames)?;
    }
    Ok((frames, splitter.finish()?))
}

fn split_watch(chunks: &[&[u8]]) -> Result<Vec<Frame>, SplitError> {
    let mut splitter = Encoding::Protobuf.watch_splitter(10_000);
    let mut frames = Vec::new();
    for chunk in chunks {
        splitter.feed(Bytes::copy_from_slice(chunk), &mut frames)?;
    }
    splitter.finish()?;
    Ok(frames)
}

fn pod_of(encoded: Encoded<'_>) -> Pod {
    encoded.decode().unwrap()
}

#[test]
fn a_list_is_split_at_any_byte() {
    let pods = [pod("a"), pod("b")];
    let body = list("PodList", &metadata(), &pods);
    let expected = pods.map(|pod| serde_json::from_value::<Pod>(pod).unwrap());
    for at in 0..=body.len() {
        let (frames, end) = split_list(&[&body[..at], &body[at..]]).unwrap();
        let read: Vec<_> = frames.iter().map(|frame| pod_of(frame.object())).collect();
        assert_eq!(read, expected, "at byte {at}");
        assert!(frames.iter().all(|frame| frame.kind == FrameKind::Item));
        assert_eq!((&*end.api_version, &*end.kind), ("v1", "PodList"));
        assert_eq!(
            (&*end.resource_version, end.remaining_item_count),
            ("42", Some(9))
        );
        assert_eq!(end.continue_token.as_deref(), Some("token"));
    }
    let bytes: Vec<_> = body.chunks(1).collect();
    assert_eq!(split_list(&bytes).unwrap().0.len(), 2);
    let (frames, end) = split_list(&[&list("PodList", &field(3, b""), &[])]).unwrap();
    assert_eq!((frames.len(), end.continue_token), (0, None));
}

#[test]
fn a_list_that_ends_early_or_is_invalid_is_an_error() {
    let body = list("PodList", &metadata(), &[pod("a")]);
    let trailer = 4;
    for at in 0..body.len() - trailer {
        let error = split_list(&[&body[..at]]).unwrap_err();
        let early = "the response to the list ended before the end of the list";
        assert_eq!(error, SplitError::EndedEarly(early), "at byte {at}");
    }
    let refused = |body: &[u8]| split_list(&[body]).unwrap_err().to_string();
    let mut errors = vec![
        refused(br#"{"kind":"PodList"}"#),
        refused(&list("Pod", b"", &[])),
        refused(&list("WidgetList", b"", &[])),
        refused(&list("PodList", &[0x12, 0x05], &[])),
        refused(&list("PodList", &field(2, &[b'1'; 5_000]), &[])),
        refused(&[&Envelope::MAGIC[..], &[0x0f]].concat()),
        refused(&[&Envelope::MAGIC[..], &[0xff; 11]].concat()),
        refused(
            &[
                &Envelope::MAGIC[..],
                &field(1, &vec![0; LIST_ENVELOPE_BYTES + 1]),
            ]
            .concat(),
        ),
        refused(&enveloped("PodList", &[0x12, 0xff, 0x7f])),
    ];
    // The length alone is too large; the item itself never arrives.
    let endless = [
        &Envelope::MAGIC[..],
        &[0x12, 0xff, 0xff, 0xff, 0x7f, 0x12, 0xff, 0xff, 0x7f],
    ];
    errors.push(refused(&endless.concat()));
    let twice = [body.clone(), field(2, b"")].concat();
    errors.push(refused(&twice));
    expect![[r#"
        the response to the list is labelled as protobuf, and does not begin as protobuf
        the response to the list is not a list of a kind that the library knows as protobuf (kind "Pod")
        the response to the list is not a list of a kind that the library knows as protobuf (kind "WidgetList")
        the response to the list is not valid protobuf: unexpected EOF
        the response to the list has a resourceVersion longer than 256 bytes or with control characters
        the response to the list is not valid protobuf: proto: illegal wireType 7
        the response to the list is not valid protobuf: proto: integer overflow
        the response to the list has more than 1048576 bytes besides its items
        an object is larger than 10000 bytes; to allow it, raise Limits::object_bytes
        an object is larger than 10000 bytes; to allow it, raise Limits::object_bytes
        the response to the list has two lists"#]]
    .assert_eq(&errors.join("\n"));
}

#[test]
fn a_watch_is_split_at_any_byte() {
    let object = enveloped("Pod", &message_of("Pod", &pod("a")));
    let status = json!({"code": 410, "reason": "Expired", "message": "too old"});
    let status = enveloped("Status", &message_of("Status", &status));
    let body = [
        event("ADDED", &object),
        event("MODIFIED", &object),
        event("DELETED", &object),
        event("BOOKMARK", &object),
        event("NEW", &object),
        event("ERROR", &status),
    ]
    .concat();
    let whole = split_watch(&[&body]).unwrap();
    for at in 0..=body.len() {
        let frames = split_watch(&[&body[..at], &body[at..]]).unwrap();
        assert_eq!(frames, whole, "at byte {at}");
    }
    let kinds: Vec<_> = whole.iter().map(|frame| frame.kind.clone()).collect();
    let expected = [
        FrameKind::Added,
        FrameKind::Modified,
        FrameKind::Deleted,
        FrameKind::Bookmark,
        FrameKind::Unknown("NEW".to_owned()),
        FrameKind::Error,
    ];
    assert_eq!(kinds, expected);
    let wanted: Pod = serde_json::from_value(pod("a")).unwrap();
    assert_eq!(pod_of(whole[0].object()), wanted);
    let error = crate::transport::Error::of_event(whole[5].object());
    assert_eq!(error.class(), crate::transport::Class::Expired);
}

#[test]
fn an_event_that_ends_early_or_is_invalid_is_an_error() {
    let body = event("ADDED", &enveloped("Pod", b""));
    for at in 1..body.len() {
        let early = "the watch ended in the middle of an event";
        let error = split_watch(&[&body[..at]]).unwrap_err();
        assert_eq!(error, SplitError::EndedEarly(early), "at byte {at}");
    }
    let refused = |body: &[u8]| split_watch(&[body]).unwrap_err().to_string();
    let errors = [
        refused(&[0, 0, 0, 0]),
        refused(br#"{"type":"ADDED","object":{}}"#),
        refused(&[0, 0, 0, 2, 0x0f, 0]),
        refused(&event("ADDED", br#"{"kind":"Pod"}"#)),
        refused(&event("ADDED", &enveloped("Widget", b""))),
    ];
    expect![[r#"
        the watch sent an empty event
        an object is larger than 10000 bytes; to allow it, raise Limits::object_bytes
        the watch sent an event that is not protobuf: proto: illegal wireType 7
        the watch sent an object without an envelope of protobuf
        the watch sent protobuf of the kind "v1 Widget", which the library knows only as JSON"#]]
    .assert_eq(&errors.join("\n"));
}

#[test]
fn an_object_has_the_identity_and_the_kind_of_its_json() {
    let object = pod("a");
    let raw = message_of("Pod", &object);
    let json = object.to_string();
    let expected = Codec::Json.object(json.as_bytes()).identity().unwrap();
    let codec = Codec::Protobuf(schema("v1", "Pod"));
    for bytes in [raw.clone(), enveloped("Pod", &raw)] {
        let encoded = codec.object(&bytes);
        for identity in [
            encoded.identity(),
            encoded.identity_at(0, true),
            encoded.identity_in_place(),
        ] {
            let identity = identity.unwrap();
            let of = |identity: &Identity<'_>| {
                let metadata = &identity.metadata;
                let name = (
                    metadata.name.clone().into_owned(),
                    metadata.uid.clone().into_owned(),
                );
                let revision = metadata.resource_version.clone().into_owned();
                let namespace = metadata.namespace.clone().map(Cow::into_owned);
                (name, revision, namespace, identity.label_map())
            };
            assert_eq!(of(&identity), of(&expected));
        }
    }
    let expected = Expected::new("v1", "Pod", false);
    assert!(matches!(
        codec.object(&raw).named(&expected),
        Named::Nothing
    ));
    assert!(codec.object(&raw).begins_with_metadata().is_some());
    let stated = enveloped("Pod", &raw);
    assert!(matches!(
        codec.object(&stated).named(&expected),
        Named::Expected(_)
    ));
    let other = enveloped("Secret", &raw);
    let other = codec.object(&other).named(&expected);
    assert!(matches!(other, Named::Other(found) if found == "v1 Secret"));
    // The fields behind the metadata are invalid.
    let torn = [&raw[..], &[0x0f]].concat();
    assert!(codec.object(&torn).identity().is_none());
    assert_eq!(
        codec
            .object(&torn)
            .identity_in_place()
            .unwrap()
            .metadata
            .name,
        "a"
    );
    assert!(codec.object(&torn).decode::<Pod>().is_err());
}

#[test]
fn a_dynamic_object_has_the_members_of_its_json() {
    let object = pod("a");
    let stated = enveloped("Pod", &message_of("Pod", &object));
    let codec = Codec::Protobuf(schema("v1", "Pod"));
    let read: DynamicObject = codec.object(&stated).decode().unwrap();
    let mut whole = object;
    whole["apiVersion"] = json!("v1");
    whole["kind"] = json!("Pod");
    assert_eq!(serde_json::to_value(&read).unwrap(), whole);
    assert_eq!(read.meta().name.as_deref(), Some("a"));
    let text = codec.object(&stated).json().into_owned();
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), whole);
    assert_eq!(&*codec.object(&[0x0f]).json(), b"null");
}

#[test]
fn pruning_has_the_effect_that_it_has_on_json() {
    let object = pod("a");
    let json = object.to_string();
    let raw = message_of("Pod", &object);
    let codec = Codec::Protobuf(schema("v1", "Pod"));
    let path = |path: &str| path.parse().unwrap();
    let mut shorter = 0;
    for (pruned, kept) in [
        (&["metadata.managedFields"][..], None),
        (&["metadata.annotations", "spec"], None),
        (&["metadata.annotations['a.b/c']"], None),
        (
            &[
                "spec.containers.env",
                "spec.containers[*].resources.limits['cpu']",
            ],
            None,
        ),
        (
            &[
                "spec.containers.readinessProbe.httpGet.path",
                "spec.volumes.secret",
            ],
            None,
        ),
        (
            &[
                "metadata.managedFields.fieldsV1['f:spec']",
                "status.startTime",
            ],
            None,
        ),
        (&["nonesuch", "spec.nodeName"], None),
        (&[], Some(&["spec.containers.name", "status.phase"][..])),
        (&["spec.containers.name"], Some(&["spec.containers"])),
        (&[], Some(&[])),
    ] {
        let mut pruning = Pruning::default();
        if let Some(kept) = kept {
            pruning.keep(kept.iter().map(|kept| path(kept)));
        }
        let pruned_paths = pruned.iter().map(|pruned| path(pruned));
        pruning
            .prune::<crate::pruning::Pruned<Pod>>(pruned_paths)
            .unwrap();
        let cut_json = Codec::Json
            .object(json.as_bytes())
            .cut(&pruning)
            .into_owned();
        let cut_raw = codec.object(&raw).cut(&pruning).into_owned();
        let from_json: Pod = Codec::Json.object(&cut_json).decode().unwrap();
        assert_eq!(
            pod_of(codec.object(&cut_raw)),
            from_json,
            "{pruned:?} {kept:?}"
        );
        shorter += usize::from(cut_raw.len() < raw.len());
    }
    // Go writes `nodeName` although it is empty.
    assert_eq!(shorter, 10);
}

#[test]
fn an_error_names_the_field_and_quotes_no_value() {
    let codec = Codec::Protobuf(schema("v1", "Secret"));
    let data = [field(1, b"password"), field(2, b"hunter2")].concat();
    let wrong = [field(2, &data), field(5, b"x")].concat();
    let unfit = codec.object(&wrong).decode::<Secret>().unwrap_err();
    assert_eq!(unfit.field, "immutable");
    assert_eq!(unfit.reason, "proto: wrong wireType = 2");
    let torn = codec.object(&[0x12, 0x7f]).decode::<Secret>().unwrap_err();
    assert_eq!((&*torn.field, &*torn.reason), (".", "unexpected EOF"));
    let measured = codec.object(&field(2, &data)).measured::<Secret>().unwrap();
    assert_eq!(measured.value.data.unwrap()["password"].0, b"hunter2");
    assert!(measured.heap_bytes > 0);
}

#[test]
fn the_end_bookmark_of_a_streaming_list_is_recognized() {
    let bookmark = |value: &str| {
        let annotations = json!({"other": "true", "k8s.io/initial-events-end": value});
        let object = json!({"metadata": {"resourceVersion": "5", "annotations": annotations}});
        enveloped("Pod", &message_of("Pod", &object))
    };
    let codec = Codec::Protobuf(schema("v1", "Pod"));
    assert!(codec.object(&bookmark("true")).ends_initial_events());
    assert!(!codec.object(&bookmark("false")).ends_initial_events());
    assert!(!codec.object(&enveloped("Pod", b"")).ends_initial_events());
}
