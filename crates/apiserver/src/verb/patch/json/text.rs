//! Compares a value of an object with a value in a JSON patch, as the operation `test` does in Kubernetes.
//!
//! Guarantees: as in Kubernetes' patch library, two numbers or two strings are equal only if their JSON texts
//! are equal. The text of the patch's value is the one in the request. The text of the object's value is the
//! one that Go's `encoding/json` writes, which escapes `<`, `>` and `&`. For example, `10.0` in a patch does
//! not equal the number 10 in an object.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::go_json::to_text;

/// Returns whether the JSON text `sent` equals `value`.
///
/// Two objects are equal if they have equal members, in any order. Two lists are equal if they have equal
/// items in the same order.
pub(super) fn equal(value: &Value, sent: &RawValue) -> bool {
    let text = sent.get();
    match value {
        Value::Null => text == "null",
        Value::Bool(value) => text == if *value { "true" } else { "false" },
        Value::Number(number) => text == to_text(number),
        // The text is at least as long as the string, so a long string is not escaped for each short text.
        Value::String(value) => text.len() >= value.len() + 2 && text == to_text(value),
        Value::Array(items) => {
            let Ok(sent) = serde_json::from_str::<Vec<&RawValue>>(text) else {
                return false;
            };
            let mut pairs = items.iter().zip(&sent);
            items.len() == sent.len() && pairs.all(|(item, sent)| equal(item, sent))
        }
        Value::Object(members) => {
            let Ok(sent) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else {
                return false;
            };
            let is_sent = |(name, value): (&String, &Value)| {
                sent.get(name).is_some_and(|sent| equal(value, sent))
            };
            members.len() == sent.len() && members.iter().all(is_sent)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn scalars_are_written_as_by_go() {
        for (value, text) in [
            (json!(10), "10"),
            (json!(-3), "-3"),
            (json!(10.0), "10"),
            (json!(0.5), "0.5"),
            (json!(0.000_001), "0.000001"),
            (json!(1e-7), "1e-7"),
            (json!(1.5e21), "1.5e+21"),
            (json!(1e20), "100000000000000000000"),
            (json!(true), "true"),
            (json!(null), "null"),
            (
                json!("a\"\\/\u{7f}\u{8}\u{1}é<&>\u{2028}"),
                "\"a\\\"\\\\/\u{7f}\\b\\u0001é\\u003c\\u0026\\u003e\\u2028\"",
            ),
        ] {
            assert!(equal(&value, &raw(text)), "{value} {text}");
        }
    }

    #[test]
    fn another_text_of_an_equal_scalar_is_another_value() {
        for (value, text) in [
            (json!(10), "10.0"),
            (json!(10), "1e1"),
            (json!("1"), "\"\\u0031\""),
            (json!("<"), "\"<\""),
            (json!(null), "{}"),
            (json!({}), "null"),
        ] {
            assert!(!equal(&value, &raw(text)), "{value} {text}");
        }
    }

    #[test]
    fn objects_and_lists_are_compared_by_their_content() {
        let value = json!({"a": [1, {"b": null}], "c": "d"});
        for (text, expected) in [
            ("{\"c\": \"d\", \"\\u0061\": [1, {\"b\": null}]}", true),
            ("{\"a\": [1, {\"b\": null}], \"c\": \"d\", \"e\": 1}", false),
            ("{\"a\": [1, {}], \"c\": \"d\"}", false),
            ("{\"a\": [1], \"c\": \"d\"}", false),
            ("{\"a\": [1, {\"b\": null}]}", false),
            ("[]", false),
        ] {
            assert_eq!(equal(&value, &raw(text)), expected, "{text}");
        }
    }
}
