//! Tests the values and the errors of YAML texts.

use super::*;
use crate::object::height;

/// Texts, their values in JSON, and the message about repeated keys or the error, of `sigs.k8s.io/yaml` 1.6.0.
const EXAMPLES: &str = include_str!("examples.tsv");

fn from_json<'a, T: serde::Deserialize<'a>>(text: &'a str) -> T {
    serde_json::from_str(text).unwrap()
}

#[test]
fn values_and_errors_are_those_of_go() {
    for line in EXAMPLES.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [text, json, message] = parts[..] else {
            panic!("{line}");
        };
        let (text, message): (String, String) = (from_json(text), from_json(message));
        let expected = if json == "error" {
            Err(Unread::Malformed(message))
        } else {
            Ok(Document {
                value: from_json(json),
                repeated_keys: Some(message).filter(|message| !message.is_empty()),
            })
        };
        assert_eq!(read(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn only_a_block_that_ends_the_text_can_lack_its_line_feed() {
    let value = |text: &str| read(text.as_bytes()).unwrap().value;
    for (text, expected) in [
        ("a: |\n  x\nb: |\n  x", r#"{"a":"x\n","b":"x"}"#),
        ("a: |\n  b: c\nb: c", r#"{"a":"b: c\n","b":"c"}"#),
        ("a: >\n  x\n  y\nb:\n- |\n  y", r#"{"a":"x y\n","b":["y"]}"#),
        ("a: |\n  x\n---\nb: |\n  x", r#"{"a":"x\n"}"#),
        ("a: |\n  x\n", r#"{"a":"x\n"}"#),
        ("a: |+\n  x\n\n", r#"{"a":"x\n\n"}"#),
    ] {
        assert_eq!(value(text), from_json::<Value>(expected), "{text:?}");
    }
}

#[test]
fn depth_is_limited_also_by_aliases() {
    let nested =
        |levels: usize, inner: &str| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
    let depth_of = |text: String| read(text.as_bytes()).map(|read| height(&read.value));
    assert_eq!(depth_of(nested(DEPTH_MAX, "")), Ok(DEPTH_MAX));
    assert_eq!(depth_of(nested(DEPTH_MAX + 1, "")), Err(Unread::TooDeep));
    assert_eq!(depth_of(nested(100_000, "")), Err(Unread::TooDeep));
    let aliased = |levels| {
        let (one, other) = (nested(60, ""), nested(levels, "*a"));
        depth_of(format!("- &a {one}\n- {other}"))
    };
    assert_eq!(aliased(DEPTH_MAX - 61), Ok(DEPTH_MAX));
    assert_eq!(aliased(DEPTH_MAX - 60), Err(Unread::TooDeep));
    let block = "- ".repeat(100_000);
    assert_eq!(depth_of(block), Err(Unread::TooDeep));
}

#[test]
fn repetition_by_aliases_is_limited() {
    let mut lines = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
    for nth in 1..10 {
        let before = format!("*a{}, ", nth - 1).repeat(10);
        lines.push(format!("a{nth}: &a{nth} [{before}]"));
    }
    let laughs = lines.join("\n");
    assert_eq!(read(laughs.as_bytes()), Err(excessive_aliasing()));
    let long = format!("- &a {}\n{}", "x".repeat(100_000), "- *a\n".repeat(100));
    assert_eq!(read(long.as_bytes()), Err(excessive_aliasing()));
    let anchors = format!(
        "{}{}{}",
        "&a [".repeat(100),
        "x".repeat(100_000),
        "]".repeat(100)
    );
    assert_eq!(read(anchors.as_bytes()), Err(excessive_aliasing()));
    let few = "a: &a [1, 2]\nb: *a\nc: *a\n";
    assert!(read(few.as_bytes()).is_ok());
}

#[test]
fn the_number_of_values_is_limited() {
    let many = format!("[{}]", "1,".repeat(VALUES_MAX));
    let why = "yaml: document contains more than 1000000 values".to_owned();
    assert_eq!(read(many.as_bytes()), Err(Unread::Malformed(why)));
}

#[test]
fn texts_that_are_not_utf_8_are_rejected() {
    let why = "yaml: invalid leading UTF-8 octet".to_owned();
    assert_eq!(read(b"a: \xff"), Err(Unread::Malformed(why)));
}
