//! Converts a key of a YAML mapping to a key of a JSON object, as `sigs.k8s.io/yaml` does.

use serde_json::Value;

use crate::quote::{Quoted, go_float};

/// Maximum length in bytes of a key in a message.
const SHOWN_BYTES_MAX: usize = 1024;

/// A key of a mapping.
#[derive(Debug, PartialEq)]
pub(super) enum Key {
    Text {
        text: String,
        /// The key in messages.
        shown: String,
    },
    /// The key `<<`.
    Merge,
    /// A key that is an error.
    Invalid,
}

impl Key {
    /// Returns a text as messages show it.
    pub(super) fn shown(text: &str) -> String {
        let mut end = text.len().min(SHOWN_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Quoted(&text[..end]).to_string()
    }
}

/// Returns the key of a JSON object.
///
/// # Errors
///
/// Returns Go's message, without the values that it contains, about a key that JSON can't have.
pub(super) fn key_of(value: Value) -> Result<Key, String> {
    let text = match value {
        Value::String(text) => {
            let shown = Key::shown(&text);
            return Ok(Key::Text { text, shown });
        }
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.to_string(),
            (None, Some(float)) if number.is_f64() => short_float(float),
            _ => return Err("unsupported map key of type: uint64".to_owned()),
        },
        Value::Null => return Err("unsupported map key of type: %!s(<nil>), key: <nil>".to_owned()),
        Value::Array(_) | Value::Object(_) => return Err("yaml: invalid map key".to_owned()),
    };
    let shown = text.clone();
    Ok(Key::Text { text, shown })
}

/// Returns the text of a number that Go's `strconv.FormatFloat(float, 'g', -1, 32)` returns.
fn short_float(float: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Go formats the number as a float32"
    )]
    let digits = format!("{:e}", float as f32);
    go_float(digits.parse().unwrap_or(float))
}
