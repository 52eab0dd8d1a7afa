//! Tests that the bodies of list and watch responses are split into their objects.
//!
//! The bodies are received in chunks that end at any byte. Also tests that an invalid or incomplete body
//! results in an error.

use super::{
    super::super::{Frame, FrameKind, SplitError, frame::ListEnd},
    *,
};
use crate::limits::LIST_ENVELOPE_BYTES;

/// Returns the body of a list response of the kind `kind` with `pods`.
fn list(kind: &str, metadata: &[u8], pods: &[Value]) -> Vec<u8> {
    let mut list = field(1, metadata);
    for pod in pods {
        put_bytes(2, &message_of("Pod", pod), &mut list);
    }
    enveloped(kind, &list)
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

/// Encodes a watch event of the type `kind`, prefixed with its length as four big-endian bytes.
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
fn unknown_fields_of_a_list_are_skipped_whatever_their_type() {
    let mut unknown = field(9, b"?");
    kube_informer_protobuf::put_varint(10, 300, &mut unknown);
    kube_informer_protobuf::put_fixed64(11, 1, &mut unknown);
    // A number of four bytes.
    unknown.extend([0x65, 1, 2, 3, 4]);
    let item = field(2, &message_of("Pod", &pod("a")));
    let parts = [
        &unknown[..],
        &field(1, &metadata()),
        &unknown,
        &item,
        &unknown,
    ];
    let inner = parts.concat();
    let body = [enveloped("PodList", &inner), unknown].concat();
    for at in 0..=body.len() {
        let (frames, end) = split_list(&[&body[..at], &body[at..]]).unwrap();
        assert_eq!(
            (frames.len(), &*end.resource_version),
            (1, "42"),
            "at byte {at}"
        );
    }
}

#[test]
fn a_list_that_ends_early_or_is_invalid_is_an_error() {
    let body = list("PodList", &metadata(), &[pod("a")]);
    for at in 0..body.len() - Envelope::END.len() {
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
