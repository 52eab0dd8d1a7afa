//! Compares the text of values with that of Go.

use serde_json::{Value, json};

use super::*;

/// Random values as JSON, and their texts in YAML as JSON strings, written by `sigs.k8s.io/yaml` 1.6.0.
///
/// They include texts that look like numbers, Booleans and times, lines longer than 80 columns, and control characters.
const RANDOM: &str = include_str!("random.tsv");

#[test]
fn texts_are_those_of_go() {
    assert!(RANDOM.lines().count() >= 300);
    for line in RANDOM.lines() {
        let (value, text) = line.split_once('\t').unwrap();
        let value: Value = serde_json::from_str(value).unwrap();
        let text: String = serde_json::from_str(text).unwrap();
        assert_eq!(to_text(&value).unwrap(), text, "{value}");
    }
}

#[test]
fn values_that_go_can_not_write_are_escaped() {
    for (value, text) in [
        ("\u{7f}", "a: \"\\x7F\"\n"),
        ("x\u{85}y", "a: \"x\\Ny\"\n"),
        ("\u{fffe}", "a: \"\\uFFFE\"\n"),
    ] {
        assert_eq!(to_text(&json!({"a": value})).as_deref(), Ok(text));
    }
}

#[test]
fn a_text_has_a_limit() {
    let lines = "x\n".repeat(1 << 20);
    let deep = (0..100).fold(json!(lines), |inner, _| json!([inner]));
    assert_eq!(to_text(&deep), Err(TooLong));
}

#[test]
fn what_is_written_is_read_again() {
    for line in RANDOM.lines() {
        let (value, _) = line.split_once('\t').unwrap();
        let value: Value = serde_json::from_str(value).unwrap();
        let text = to_text(&value).unwrap();
        // Go does not quote the key `<<`, and writes line separators as they are.
        if !text.contains("<<") && !text.contains('\u{2028}') {
            assert_eq!(read(text.as_bytes()).unwrap().value, value, "{text}");
        }
    }
}

#[test]
fn items_are_written_as_part_of_a_list() {
    let items = [
        json!({"a": [1, {}], "b": "x\ny"}),
        json!([]),
        json!([["x"]]),
    ];
    let mut text = "items:\n".to_owned();
    for item in &items {
        append_item(&mut text, item).unwrap();
    }
    assert_eq!(to_text(&json!({"items": items})).unwrap(), text);
}
