//! Writes JSON so that people can read it: short values on one line, long ones on several.

use std::fmt::Write as _;

use serde_json::Value;

use crate::json::Order;

/// Maximum length in bytes of a line that contains a whole object or array. Longer values take several lines.
const LINE: usize = 100;

/// Returns the JSON text of `value`, indented by `indent` spaces and followed by a line break.
///
/// The members of objects are in this order.
pub(crate) fn json(value: &Value, order: &Order, indent: usize) -> String {
    let mut text = " ".repeat(indent);
    put(value, order, indent, &mut text);
    text.push('\n');
    text
}

/// Appends the JSON of `value` to the last line of `text`. Indents each further line by at least `indent`
/// spaces.
fn put(value: &Value, order: &Order, indent: usize, text: &mut String) {
    let flat = flat(value, order);
    let inner = " ".repeat(indent + 2);
    let used = text.len() - text.rfind('\n').map_or(0, |at| at + 1);
    match value {
        Value::Object(members) if used + flat.len() > LINE && !members.is_empty() => {
            text.push('{');
            for (at, name) in order.names(members).into_iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let _ = write!(text, "{comma}\n{inner}{}: ", Value::from(name));
                put(&members[name], order.of_member(name), indent + 2, text);
            }
            let _ = write!(text, "\n{}}}", " ".repeat(indent));
        }
        Value::Array(items) if used + flat.len() > LINE && !items.is_empty() => {
            text.push('[');
            for (at, value) in items.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let _ = write!(text, "{comma}\n{inner}");
                put(value, order.of_item(at), indent + 2, text);
            }
            let _ = write!(text, "\n{}]", " ".repeat(indent));
        }
        _ => text.push_str(&flat),
    }
}

/// Returns the text of `value` on one line, with a space after each comma and colon.
fn flat(value: &Value, order: &Order) -> String {
    match value {
        Value::Object(members) => {
            let members = order.names(members).into_iter().map(|name| {
                let value = flat(&members[name], order.of_member(name));
                format!("{}: {value}", Value::from(name))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(at, item)| flat(item, order.of_item(at)));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::Json;

    #[test]
    fn short_values_are_on_one_line() {
        let value = json!({"b": [1, {"c": "x y"}], "a": {}});
        assert_eq!(
            json(&value, &Order::Sorted, 2),
            "  {\"a\": {}, \"b\": [1, {\"c\": \"x y\"}]}\n"
        );
        let long =
            json!({"items": [{"name": "x".repeat(40)}, {"name": "y".repeat(40)}], "kind": "List"});
        let expected = format!(
            "  {{\n    \"items\": [\n      {{\"name\": \"{}\"}},\n      {{\"name\": \"{}\"}}\n    ],\n    \"kind\": \"List\"\n  }}\n",
            "x".repeat(40),
            "y".repeat(40),
        );
        assert_eq!(json(&long, &Order::Sorted, 2), expected);
    }

    #[test]
    fn members_have_the_order_of_the_text() {
        let text = r#"{"b": [{"d": 1, "c": {}}], "a": 2}"#;
        let value = Json::parse(text.as_bytes()).unwrap();
        assert_eq!(json(&value, &value.order, 0), format!("{text}\n"));
    }
}
