//! Tests [`ListSplitter`] and [`WatchSplitter`], which split response bodies into objects and events.
//!
//! Some tests pass a body in two chunks, for every possible boundary, and in chunks of one byte.

use bytes::Bytes;
use expect_test::{Expect, expect};

use super::{
    super::{Frame, FrameKind, ListEnd, SplitError},
    ListSplitter, WatchSplitter,
};
use crate::limits::{CONTINUE_TOKEN_BYTES, LIST_ENVELOPE_BYTES, REVISION_BYTES};

fn split_list(chunks: &[&[u8]]) -> Result<(Vec<Frame>, ListEnd), SplitError> {
    let mut splitter = ListSplitter::default();
    let mut items = Vec::new();
    for chunk in chunks {
        splitter.feed(Bytes::copy_from_slice(chunk), &mut items)?;
    }
    Ok((items, splitter.finish()?))
}

fn split_watch(chunks: &[&[u8]]) -> Result<Vec<Frame>, SplitError> {
    let mut splitter = WatchSplitter::default();
    let mut frames = Vec::new();
    for chunk in chunks {
        splitter.feed(Bytes::copy_from_slice(chunk), &mut frames)?;
    }
    splitter.finish()?;
    Ok(frames)
}

fn show(frames: &[Frame]) -> String {
    let line = |frame: &Frame| {
        let text = String::from_utf8_lossy(&frame.bytes);
        format!("{:?} {text}\n", frame.kind)
    };
    frames.iter().map(line).collect()
}

const METADATA_FIRST: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10","continue":"t\"1","remainingItemCount":3},"items":[{"a":"}]\"\\"},{"b":[1,{"c":2}]},null,7]}"#;
const METADATA_LAST: &str = "{ \"apiVersion\" : \"v1\", \"it\\\"ems\": {\"items\":[9]}, \"items\" :\n[ {\"a\":1} ,\n{} ],\n\"kind\":\"WidgetList\",\"metadata\":{\"resourceVersion\":\"11\"} }\n";

#[test]
fn a_list_is_split_the_same_at_any_chunk_boundaries() {
    for body in [METADATA_FIRST, METADATA_LAST] {
        let body = body.as_bytes();
        let whole = split_list(&[body]).unwrap();
        for cut in 0..body.len() {
            assert_eq!(
                split_list(&[&body[..cut], &body[cut..]]).unwrap(),
                whole,
                "cut at {cut}"
            );
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(split_list(&bytes).unwrap(), whole);
    }
}

#[test]
fn the_order_of_a_lists_keys_does_not_matter() {
    let (items, end) = split_list(&[METADATA_FIRST.as_bytes()]).unwrap();
    expect![[r#"
        Item {"a":"}]\"\\"}
        Item {"b":[1,{"c":2}]}
        Item null
        Item 7
    "#]]
    .assert_eq(&show(&items));
    assert_eq!(end.resource_version, "10");
    assert_eq!(end.continue_token.as_deref(), Some("t\"1"));
    assert_eq!(
        (end.kind.as_str(), end.remaining_item_count),
        ("PodList", Some(3))
    );

    let (items, end) = split_list(&[METADATA_LAST.as_bytes()]).unwrap();
    expect![[r#"
        Item {"a":1}
        Item {}
    "#]]
    .assert_eq(&show(&items));
    assert_eq!(
        (end.kind.as_str(), end.resource_version.as_str()),
        ("WidgetList", "11")
    );
}

#[test]
fn items_may_be_null() {
    let (items, _) = split_list(&[br#"{"kind":"PodList","items":null,"metadata":{}}"#]).unwrap();
    assert_eq!(items, []);
}

#[test]
fn items_that_are_neither_an_array_nor_null_are_an_error() {
    for items in [r#""a""#, "{}", "7", "false", "nullify", "{\"a\":[]}"] {
        let body = format!(r#"{{"metadata":{{}},"items":{items}}}"#);
        let error = split_list(&[body.as_bytes()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the response to the list has items that are not an array"
        );
    }
}

#[test]
fn a_body_that_is_not_a_list_is_an_error() {
    let rows: [(&str, Expect); 9] = [
        (
            "",
            expect!["the response to the list ended before the end of the list"],
        ),
        (
            "[]",
            expect!["the response to the list is not a single JSON object"],
        ),
        (
            r#"{"kind":"PodList","items":[{"a":1}"#,
            expect!["the response to the list ended before the end of the list"],
        ),
        (
            r#"{"kind":"Status","status":"Failure"}"#,
            expect![[r#"the response to the list has no items (kind "Status")"#]],
        ),
        (
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[],"metadata":{}}"#,
            expect!["the server responded with a Table instead of a list"],
        ),
        (
            r#"{"apiVersion":"meta.k8s.io/v1beta1","kind":"Table","items":[]}"#,
            expect!["the server responded with a Table instead of a list"],
        ),
        (
            r#"{"items":[]} x"#,
            expect!["the response to the list is not a single JSON object"],
        ),
        (
            r#"{"items":[],"items":[]}"#,
            expect!["the response to the list has the field items twice"],
        ),
        (
            r#"{"metadata":7,"items":[]}"#,
            expect!["the response to the list has invalid metadata"],
        ),
    ];
    for (body, message) in rows {
        message.assert_eq(&split_list(&[body.as_bytes()]).unwrap_err().to_string());
    }
}

#[test]
fn a_kind_named_table_of_another_group_is_a_list() {
    let body = br#"{"kind":"Table","apiVersion":"furniture.example.com/v1","items":[{"legs":4}]}"#;
    assert!(split_list(&[body]).is_ok());
}

/// Passes `begin`, and then `more` repeatedly, to a [`ListSplitter`] until it fails; returns the error.
fn endless_list(begin: &'static str, more: &'static str) -> String {
    let mut splitter = ListSplitter::new(1 << 10);
    let mut frames = Vec::new();
    let begin = Bytes::from_static(begin.as_bytes());
    splitter.feed(begin, &mut frames).unwrap();
    let more = Bytes::from_static(more.as_bytes());
    let mut endless = std::iter::repeat_n(more, LIST_ENVELOPE_BYTES);
    let fed = endless.try_for_each(|more| splitter.feed(more, &mut frames));
    fed.expect_err("the list is rejected").to_string()
}

#[test]
fn a_list_with_endless_parts_is_rejected_with_the_part() {
    let object = "an object is larger than 1024 bytes; to allow it, raise Limits::object_bytes";
    assert_eq!(endless_list(r#"{"items":[{"a":""#, "xx"), object);
    assert_eq!(endless_list(r#"{"items":[{"a":"#, "["), object, "nested");
    let head = "the response to the list has more than 1048576 bytes besides its items";
    assert_eq!(endless_list(r#"{"metadata":{"continue":""#, "xx"), head);
    let again = r#""kind":"PodList","#;
    assert_eq!(endless_list("{", again), head, "repeated parts");
    let field = "the response to the list has an unknown field \"rows\" above the size limit; to allow it, raise Limits::object_bytes";
    assert_eq!(endless_list(r#"{"rows":["#, "{},"), field);
    assert_eq!(endless_list(r#"{"rows":"#, "["), field, "nested");
    let begins_as_table = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":["#;
    let table = "the server responded with a Table instead of a list";
    assert_eq!(endless_list(begins_as_table, "{},"), table);
}

#[test]
fn a_piece_above_its_limit_is_rejected_in_one_chunk_too() {
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(100));
    let event = Bytes::from(format!(r#"{{"type":"ADDED","object":{large}}}"#));
    let list = Bytes::from(format!(r#"{{"items":[{large}]}}"#));
    let mut frames = Vec::new();
    for (limit, is_fit) in [(event.len(), true), (event.len() - 1, false)] {
        let fed = WatchSplitter::new(limit).feed(event.clone(), &mut frames);
        assert_eq!(fed.is_ok(), is_fit);
    }
    for (limit, is_fit) in [(large.len(), true), (large.len() - 1, false)] {
        let fed = ListSplitter::new(limit).feed(list.clone(), &mut frames);
        assert_eq!(fed.is_ok(), is_fit);
    }
}

#[test]
fn an_endless_event_is_rejected() {
    let mut splitter = WatchSplitter::new(1 << 20);
    let mut frames = Vec::new();
    let begin = Bytes::from_static(br#"{"type":"ADDED","object":{"a":""#);
    splitter.feed(begin, &mut frames).unwrap();
    let chunk = Bytes::from(vec![b'x'; 1 << 10]);
    let mut endless = std::iter::repeat_n(chunk, 1 << 11);
    let fed = endless.try_for_each(|chunk| splitter.feed(chunk, &mut frames));
    assert_eq!(
        fed.unwrap_err().to_string(),
        "an object is larger than 1048576 bytes; to allow it, raise Limits::object_bytes"
    );
}

#[test]
fn a_too_long_revision_or_token_is_rejected_without_a_quote() {
    let said = |metadata: String| {
        let list = format!(r#"{{"metadata":{metadata},"items":[]}}"#);
        split_list(&[list.as_bytes()]).map_err(|error| error.to_string())
    };
    let metadata = |revision: usize, token: usize| {
        let (revision, token) = ("7".repeat(revision), "t".repeat(token));
        format!(r#"{{"resourceVersion":"{revision}","continue":"{token}"}}"#)
    };
    let (revision, token) = (REVISION_BYTES, CONTINUE_TOKEN_BYTES);
    said(metadata(revision, token)).unwrap();
    let unfit = "the response to the list has a resourceVersion longer than 256 bytes or with control characters";
    assert_eq!(said(metadata(revision + 1, token)).unwrap_err(), unfit);
    let line = r#"{"resourceVersion":"7\nERROR all is lost"}"#.to_owned();
    assert_eq!(said(line).unwrap_err(), unfit);
    assert_eq!(
        said(metadata(revision, token + 1)).unwrap_err(),
        "the response to the list has a continue token longer than 8192 bytes"
    );
    let long = format!(r#"{{"kind":"{}"}}"#, "K".repeat(1000));
    let error = split_list(&[long.as_bytes()]).unwrap_err().to_string();
    assert!(error.len() < 150, "{error}");
}

const EVENTS: &str = "{\"type\":\"ADDED\",\"object\":{\"a\":\"{\\\"\"}}\n\
    {\"type\":\"MODIFIED\",\"object\":{\"a\":{}}}\r\n\
    {\"type\":\"DELETED\",\"object\":{}}{\"type\":\"BOOKMARK\",\"object\":{\"b\":1}}\n\
    {\n  \"object\": {\"code\": 410},\n  \"type\": \"ERROR\"\n}\n\
    {\"type\":\"ADDED\",\"object\":{\"a\":1},\"more\":{}}\n\
    {\"type\":\"SURPRISE\",\"object\":{\"c\":1}}\n{\"type\":\"ADDED\"}\n";

#[test]
fn events_are_split_the_same_at_any_chunk_boundaries() {
    let body = EVENTS.as_bytes();
    let whole = split_watch(&[body]).unwrap();
    expect![[r#"
        Added {"a":"{\""}
        Modified {"a":{}}
        Deleted {}
        Bookmark {"b":1}
        Error {"code": 410}
        Added {"a":1}
        Unknown("SURPRISE") {"c":1}
        Added null
    "#]]
    .assert_eq(&show(&whole));
    for cut in 0..body.len() {
        assert_eq!(
            split_watch(&[&body[..cut], &body[cut..]]).unwrap(),
            whole,
            "cut at {cut}"
        );
    }
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(split_watch(&bytes).unwrap(), whole);
}

#[test]
fn a_string_in_place_of_an_object_ends_at_its_quote() {
    let body = br#"{"type":"ADDED","object":"a","more":{}}"#;
    assert_eq!(show(&split_watch(&[body]).unwrap()), "Added \"a\"\n");
}

#[test]
fn an_event_of_a_whole_chunk_is_not_copied() {
    let chunk = Bytes::from_static(br#"{"type":"ADDED","object":{"a":1}}"#);
    let mut frames = Vec::new();
    WatchSplitter::default()
        .feed(chunk.clone(), &mut frames)
        .unwrap();
    assert_eq!(frames[0].kind, FrameKind::Added);
    assert!(chunk.as_ptr_range().contains(&frames[0].bytes.as_ptr()));
}

#[test]
fn garbage_in_a_watch_is_an_error() {
    let rows = [
        ("<html>", "the watch sent data that is not a watch event"),
        (
            "{\"type\":\"ADDED\",}\n",
            "the watch sent an event that is not valid JSON",
        ),
        (
            "{\"type\":\"ADD",
            "the watch ended in the middle of an event",
        ),
    ];
    for (body, message) in rows {
        assert_eq!(
            split_watch(&[body.as_bytes()]).unwrap_err().to_string(),
            message
        );
    }
}

#[test]
fn a_truncated_event_is_an_error_two_events_later() {
    let event = r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","labels":{"b":"c"}}}}"#;
    let bookmark = "{\"type\":\"BOOKMARK\",\"object\":{\"b\":1}}\n";
    for length in 1..event.len() {
        let half = format!("{}\n", &event[..length]);
        // The first bookmark may complete the half event as its value.
        let chunks = [half.as_bytes(), bookmark.as_bytes(), bookmark.as_bytes()];
        let error = split_watch(&chunks).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the watch sent an event that is not valid JSON",
            "{half}"
        );
    }
}

#[test]
fn a_multiline_event_may_be_cut_inside_a_number_literal_or_string() {
    let object = r#"{"a":[-1.5e-3,true,null,"\u00e9-\"é"]}"#;
    let event = format!("{{\n\"type\":\"ADDED\",\n\"object\":{object}}}\n");
    for at in 1..event.len() {
        let (first, rest) = event.as_bytes().split_at(at);
        let frames = split_watch(&[first, rest]).unwrap();
        assert_eq!(frames[0].bytes, object.as_bytes(), "in two at {at}");
    }
}

#[test]
fn a_multiline_event_is_split_at_any_chunk_boundaries() {
    let labels: Vec<_> = (0..500).map(|n| format!("    \"l{n}\": \"x\"")).collect();
    let object = format!("{{\n{}\n  }}", labels.join(",\n"));
    let event = format!("{{\n  \"type\": \"ADDED\",\n  \"object\": {object}\n}}\n");
    for size in [1, 7, 64, 4096] {
        let chunks: Vec<&[u8]> = event.as_bytes().chunks(size).collect();
        let frames = split_watch(&chunks).unwrap();
        assert_eq!(frames[0].bytes, object.as_bytes(), "in chunks of {size}");
    }
}
