//! Tests the reader and the writer of saved stores.
//!
//! The reader must return the written objects or an error for any file, including a damaged one. The writer
//! must respect its limits.

use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectMeta;
use proptest::prelude::*;

use super::*;
use crate::codec::Codec;
use crate::object::{Form, FormOptions};

fn pod(name: &str, revision: &str) -> Object<Pod> {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("default".to_owned()),
        resource_version: Some(revision.to_owned()),
        ..ObjectMeta::default()
    };
    let pod = Pod {
        metadata,
        ..Pod::default()
    };
    Object::new(pod).unwrap()
}

/// Returns a decoder for a cache that stores decoded objects.
fn decoded() -> Decoder<Pod> {
    Decoder::new(&(), None)
}

fn header() -> Header {
    let source = |collection: &str| SavedSource {
        collection: collection.to_owned(),
        revision: "7".to_owned(),
    };
    Header {
        format: FORMAT,
        saved: 1,
        version: "1".to_owned(),
        kind: "v1 Pod".to_owned(),
        pruned: String::new(),
        server: "s".to_owned(),
        sources: vec![source("one"), source("two")],
    }
}

fn written() -> Vec<u8> {
    written_within(Limits::DEFAULT).unwrap()
}

fn written_within(limits: Limits) -> Result<Vec<u8>, WriteError> {
    let mut writer = Writer::new(Vec::new(), &header(), limits)?;
    writer.object(SourceId::new(0), &pod("a", "3"))?;
    writer.object(SourceId::new(1), &pod("b", "x-5"))?;
    let (objects, bytes, text) = writer.finish()?;
    assert_eq!((objects, bytes), (2, text.len() as u64));
    Ok(text)
}

/// Reads a saved store with the default limits, and returns its objects as text.
fn read(text: &[u8]) -> Result<String, ColdReason> {
    read_within(text, Limits::DEFAULT)
}

fn read_within(text: &[u8], limits: Limits) -> Result<String, ColdReason> {
    let (header, reader) = Reader::new(text, limits)?;
    let lists = reader.objects(header.sources.len(), &decoded(), &|| true)?;
    Ok(format!("{lists:?}"))
}

#[test]
fn what_was_written_is_read() {
    assert_eq!(
        read(&written()).unwrap(),
        "[[default/a@3], [default/b@x-5]]"
    );
}

#[test]
fn reading_stops_when_its_caller_is_gone() {
    let text = written();
    let (header, reader) = Reader::new(&*text, Limits::DEFAULT).unwrap();
    let given_up = reader.objects(header.sources.len(), &decoded(), &|| false);
    assert!(matches!(given_up, Err(ColdReason::Unreadable(_))));
}

/// A simulated disk with this number of free bytes. A write to the full disk fails with `StorageFull`.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.0);
        self.0 -= fits;
        if fits == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_is_full_anywhere_fails_the_write() {
    for room in 0..written().len() {
        let mut writer = Writer::new(Full(room), &header(), Limits::DEFAULT).unwrap();
        writer.object(SourceId::new(0), &pod("a", "3")).unwrap();
        writer.object(SourceId::new(1), &pod("b", "x-5")).unwrap();
        let finished = writer.finish().map(|(objects, ..)| objects);
        assert!(
            matches!(&finished, Err(WriteError::Io(error)) if error.kind() == io::ErrorKind::StorageFull),
            "{room}: {finished:?}"
        );
    }
}

#[test]
fn a_file_that_was_changed_in_any_byte_is_not_loaded() {
    let whole = written();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            let read = read(&changed);
            assert!(read.is_err(), "bit {bit} of byte {at}: {read:?}");
        }
    }
}

#[test]
fn a_file_that_was_cut_anywhere_is_not_loaded() {
    let whole = written();
    for end in 0..whole.len() {
        let read = read(&whole[..end]);
        assert!(
            matches!(read, Err(ColdReason::Damaged(_))),
            "{end}: {read:?}"
        );
    }
}

#[test]
fn lines_that_are_missing_twice_or_behind_the_end_are_noticed() {
    let whole = String::from_utf8(written()).unwrap();
    let lines: Vec<_> = whole.split_inclusive('\n').collect();
    let (identity, a, b, end) = (lines[0], lines[1], lines[2], lines[3]);
    for lines in [
        vec![identity, a, end],
        vec![identity, b, a, end],
        vec![identity, a, a, b, end],
        vec![identity, a, b, end, end],
        vec![identity, identity, a, b, end],
        vec![a, b, end],
    ] {
        let read = read(lines.concat().as_bytes());
        assert!(matches!(read, Err(ColdReason::Damaged(_))), "{read:?}");
    }
}

#[test]
fn another_format_is_said_to_be_that_whatever_else_it_has() {
    for format in [0, 2] {
        let text = format!("{{\"format\":{format},\"objects\":\"elsewhere\"}}\n");
        assert_eq!(read(text.as_bytes()), Err(ColdReason::OtherFormat(format)));
    }
}

#[test]
fn a_reason_repeats_nothing_of_an_object() {
    let identity = serde_json::to_string(&header()).unwrap();
    let text = format!(
        "{identity}\n{{\"source\":0,\"name\":\"a\",\"revision\":\"1\",\"object\":{{\"metadata\":\"hunter2\"}}}}\n"
    );
    let reason = read(text.as_bytes()).unwrap_err();
    assert_eq!(
        reason.to_string(),
        "the saved store is damaged: line 2 has unexpected content"
    );
}

#[test]
fn an_object_without_a_name_one_body_or_a_source_is_damage() {
    let identity = serde_json::to_string(&header()).unwrap();
    for record in [
        r#"{"source":0,"name":"","revision":"1","object":{"metadata":{}}}"#,
        r#"{"source":0,"name":"a","revision":"1"}"#,
        r#"{"source":0,"name":"a","revision":"1","object":{"metadata":{}},"broken":{"uid":"","labels":{},"field":"","reason":""}}"#,
        r#"{"source":2,"name":"a","revision":"1","object":{"metadata":{}}}"#,
    ] {
        let text = format!("{identity}\n{record}\n");
        let reason = read(text.as_bytes()).unwrap_err();
        assert!(reason.to_string().contains("line 2"), "{reason}");
    }
}

/// An input that never ends and contains no newline.
struct Endless;

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b'[');
        Ok(buffer.len())
    }
}

#[test]
fn a_line_without_an_end_is_given_up() {
    let reason = Reader::new(io::BufReader::new(Endless), Limits::DEFAULT)
        .map(drop)
        .unwrap_err();
    assert!(
        reason.to_string().contains("longer than any object"),
        "{reason}"
    );
    let deep = [
        b"{\"format\":1,\"x\":".to_vec(),
        vec![b'['; 100_000],
        b"\n".to_vec(),
    ];
    assert!(matches!(read(&deep.concat()), Err(ColdReason::Damaged(_))));
}

/// Returns the lowest limits that allow the output of [`written`].
fn exact() -> Limits {
    let text = written();
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    Limits {
        line_bytes: lines.map(<[u8]>::len).max().unwrap() as u64,
        file_bytes: text.len() as u64,
        objects: 2,
    }
}

#[test]
fn what_is_within_the_limits_is_written_and_what_is_above_one_of_them_is_not() {
    written_within(exact()).unwrap();
    let Limits {
        line_bytes,
        file_bytes,
        objects,
    } = exact();
    for limits in [
        Limits {
            line_bytes: line_bytes - 1,
            ..exact()
        },
        Limits {
            file_bytes: file_bytes - 1,
            ..exact()
        },
        Limits {
            objects: objects - 1,
            ..exact()
        },
    ] {
        let refused = written_within(limits);
        assert!(matches!(refused, Err(WriteError::TooLarge)), "{limits:?}");
    }
}

#[test]
fn what_is_within_the_limits_is_read_and_what_is_above_one_of_them_is_damage() {
    let text = written();
    read_within(&text, exact()).unwrap();
    let longest = exact().line_bytes - 1;
    let reason = read_within(
        &text,
        Limits {
            line_bytes: longest,
            ..exact()
        },
    )
    .unwrap_err();
    assert!(
        reason.to_string().ends_with("is longer than any object"),
        "{reason}"
    );
    let reason = read_within(
        &text,
        Limits {
            objects: 1,
            ..exact()
        },
    )
    .unwrap_err();
    assert!(
        reason.to_string().ends_with("it has more than 1 objects"),
        "{reason}"
    );
}

#[test]
fn what_a_file_says_of_itself_is_one_short_line() {
    assert_eq!(said("a\nb\u{1b}c"), "a b c");
    assert_eq!(said(&"ä".repeat(1000)), "ä".repeat(SAID_BYTES / 2) + "…");
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(text in prop::collection::vec(any::<u8>(), 0..200), at in 0_usize..400) {
        let mut bytes = written();
        let at = at.min(bytes.len());
        bytes.splice(at..at, text.iter().copied());
        prop_assert!(text.is_empty() || read(&bytes).is_err());
        let _ = read(&text);
    }
}

#[test]
fn an_object_of_too_many_arrays_and_maps_is_refused_before_it_is_read() {
    let refused = |parts: usize| {
        let many = vec!["{}"; parts - 2].join(",");
        let record =
            format!(r#"{{"source":0,"name":"a","revision":"3","object":{{"x":[{many}]}}}}"#);
        let mut text = written();
        text.truncate(text.iter().position(|&byte| byte == b'\n').unwrap() + 1);
        text.extend_from_slice(record.as_bytes());
        read(&[&*text, b"\n{\"end\":{\"objects\":1,\"checksum\":\"\"}}\n"].concat()).unwrap_err()
    };
    assert_eq!(refused(PARTS + 1), damaged("line 2 has unexpected content"));
    assert_eq!(
        refused(PARTS),
        damaged("its checksum is wrong"),
        "it was read"
    );
}

#[test]
fn a_revision_that_no_server_would_have_given_is_refused() {
    let text = String::from_utf8(written()).unwrap();
    for revision in [r"3\nERROR all is lost".to_owned(), "3".repeat(300)] {
        let text = text.replacen(
            r#""revision":"3""#,
            &format!(r#""revision":"{revision}""#),
            1,
        );
        let refused = read(text.as_bytes()).unwrap_err();
        assert_eq!(refused, damaged("line 2 has unexpected content"));
    }
}

/// Returns a decoder for a compressed cache, whose dictionary is built from `objects` objects.
fn packing(objects: usize) -> Decoder<Pod> {
    let options = FormOptions::packed(Some(objects));
    let form = Form::new(options, crate::decode::open::<Pod>, Box::new(|_| {}));
    Decoder::new(&(), None).keeping(form)
}

fn packed(decoder: &Decoder<Pod>, name: &str, revision: &str, json: &str) -> Object<Pod> {
    let name = ObjectName::namespaced("default", name);
    let encoded = Codec::Json.object(json.as_bytes());
    decoder
        .restored(name, revision, encoded, json.len())
        .unwrap()
}

#[test]
fn json_is_saved_as_it_is_in_one_line_and_what_is_none_as_broken() {
    let decoder = packing(8);
    let mut writer = Writer::new(Vec::new(), &header(), Limits::DEFAULT).unwrap();
    for (name, behind) in [
        ("lines", ",\n \"spec\":\r\n{\"nodeName\":\"a\\nb\"}"),
        ("more", r#","spec":{"future":[1,{"x":null}]}"#),
        ("unfit", r#","spec":"hunter2""#),
        ("no-json", r#","spec":{hunter2}"#),
    ] {
        let meta = format!(r#"{{"name":"{name}","namespace":"default","uid":"u-{name}"}}"#);
        let json = format!(r#"{{"metadata":{meta}{behind}}}"#);
        let object = packed(&decoder, name, "3", &json);
        writer.object(SourceId::new(0), &object).unwrap();
    }
    let (objects, _, text) = writer.finish().unwrap();
    let lines: Vec<_> = std::str::from_utf8(&text).unwrap().lines().collect();
    assert_eq!((objects, lines.len()), (4, 6));
    assert!(
        lines[1].ends_with("},  \"spec\":\r {\"nodeName\":\"a\\nb\"}}}"),
        "{}",
        lines[1]
    );
    assert!(lines[2].contains(r#""spec":{"future":[1,{"x":null}]}"#));
    assert!(lines[3].contains("hunter2"), "it is not known to be broken");
    assert!(
        lines[4].contains(r#""broken":{"uid":"u-no-json""#),
        "{}",
        lines[4]
    );

    let (header, reader) = Reader::new(&*text, Limits::DEFAULT).unwrap();
    let lists = reader
        .objects(header.sources.len(), &packing(8), &|| true)
        .unwrap();
    let shown = |object: &Object<Pod>| match object.get() {
        Ok(pod) => format!(
            "{} {:?}",
            object.uid(),
            pod.spec.as_ref().unwrap().node_name
        ),
        Err(error) => format!("{} {}", object.uid(), error.field()),
    };
    let shown: Vec<_> = lists[0].iter().map(shown).collect();
    let expected = [
        r#"u-lines Some("a\nb")"#,
        "u-more None",
        "u-unfit spec",
        "u-no-json spec",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn what_is_restored_before_the_first_dictionary_is_packed_with_it() {
    for (objects, dictionary_of) in [(400, 16), (40, 16)] {
        let mut writer = Writer::new(Vec::new(), &header(), Limits::DEFAULT).unwrap();
        let saving = packing(usize::MAX);
        let padding = "what all of them say ".repeat(20);
        for number in 0..objects {
            let name = format!("p{number}");
            let meta = format!(r#"{{"name":"{name}","annotations":{{"a":"{padding}"}}}}"#);
            let object = packed(&saving, &name, "3", &format!(r#"{{"metadata":{meta}}}"#));
            writer.object(SourceId::new(number % 2), &object).unwrap();
        }
        let (_, _, text) = writer.finish().unwrap();
        let (header, reader) = Reader::new(&*text, Limits::DEFAULT).unwrap();
        let lists = reader.objects(header.sources.len(), &packing(dictionary_of), &|| true);
        for object in lists.unwrap().iter().flatten() {
            let bytes = object.packed_bytes().unwrap();
            assert!(
                bytes < padding.len() / 2,
                "{object:?} of {objects}: {bytes}"
            );
            assert!(object.get().is_ok());
        }
    }
}
