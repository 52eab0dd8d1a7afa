//! Writes JSON so that people can read it: short values on one line, long ones on several.

use std::fmt::Write as _;

use serde_json::Value;

/// Maximum length in bytes of a line that contains a whole object or array. Longer values take several lines.
const LINE: usize = 100;

/// Returns the JSON text of `value`, indented by `indent` spaces and followed by a line break.
pub(crate) fn json(value: &Value, indent: usize) -> String {
    let mut text = " ".repeat(indent);
    put(value, indent, &mut text);
    text.push('\n');
    text
}

/// Appends the JSON of `value` to the last line of `text`. Indents each further line by at least `indent`
/// spaces.
fn put(value: &Value, indent: usize, text: &mut String) {
    let flat = flat(value);
    let inner = " ".repeat(indent + 2);
    let used = text.len() - text.rfind('\n').map_or(0, |at| at + 1);
    match value {
        Value::Object(members) if used + flat.len() > LINE && !members.is_empty() => {
            text.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let _ = write!(text, "{comma}\n{inner}{}: ", Value::from(name.as_str()));
                put(value, indent + 2, text);
            }
            let _ = write!(text, "\n{}}}", " ".repeat(indent));
        }
        Value::Array(items) if used + flat.len() > LINE && !items.is_empty() => {
            text.push('[');
            for (at, value) in items.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let _ = write!(text, "{comma}\n{inner}");
                put(value, indent + 2, text);
            }
            let _ = write!(text, "\n{}]", " ".repeat(indent));
        }
        _ => text.push_str(&flat),
    }
}

/// Returns the text of `value` on one line, with a space after each comma and colon.
fn flat(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), flat(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!(
                "[{}]",
                items.iter().map(flat).collect::<Vec<_>>().join(", ")
            )
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_values_are_on_one_line() {
        let value = json!({"b": [1, {"c": "x y"}], "a": {}});
        assert_eq!(
            json(&value, 2),
            "  {\"a\": {}, \"b\": [1, {\"c\": \"x y\"}]}\n"
        );
        let long =
            json!({"items": [{"name": "x".repeat(40)}, {"name": "y".repeat(40)}], "kind": "List"});
        let expected = format!(
            "  {{\n    \"items\": [\n      {{\"name\": \"{}\"}},\n      {{\"name\": \"{}\"}}\n    ],\n    \"kind\": \"List\"\n  }}\n",
            "x".repeat(40),
            "y".repeat(40),
        );
        assert_eq!(json(&long, 2), expected);
    }
}
