//! Quotes texts in messages as Go does.

use std::fmt::{self, Write as _};
use std::ops::Range;

use serde_json::{Map, Value};

/// Decimal exponents of the numbers that Go's `%v` shows without an exponent.
const EXPONENTS: Range<i32> = -4..6;

/// A text that is displayed in quotes as by Go's `%q`.
///
/// Control characters differ from Rust's `{:?}`: `\x00` instead of `\0`, and `\a` instead of `\u{7}`.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for letter in self.0.chars() {
            match letter {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\u{7}' => f.write_str("\\a")?,
                '\u{8}' => f.write_str("\\b")?,
                '\u{b}' => f.write_str("\\v")?,
                '\u{c}' => f.write_str("\\f")?,
                _ if is_printable(letter) => write!(f, "{letter}")?,
                '\0'..'\u{80}' => write!(f, "\\x{:02x}", u32::from(letter))?,
                _ => write!(f, "\\u{:04x}", u32::from(letter))?,
            }
        }
        f.write_str("\"")
    }
}

/// Returns bytes in quotes as Go's `%q` does: a byte that is not part of UTF-8 text is escaped, as `\xff`.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let text = Quoted(chunk.valid()).to_string();
        quoted.push_str(&text[1..text.len() - 1]);
        for byte in chunk.invalid() {
            write!(quoted, "\\x{byte:02x}").expect("writing to a String does not fail");
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a JSON value as Go's `%v` shows it.
pub(crate) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.to_string(),
            None => go_float(number.as_f64().unwrap_or(f64::INFINITY)),
        },
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => go_map(members),
    }
}

/// Returns a JSON object as Go's `%v` shows it.
pub(crate) fn go_map(members: &Map<String, Value>) -> String {
    let member = |(name, value)| format!("{name}:{}", go_text(value));
    let members: Vec<String> = members.iter().map(member).collect();
    format!("map[{}]", members.join(" "))
}

/// Returns a floating-point number as Go's `%v` shows it.
pub(crate) fn go_float(float: f64) -> String {
    let scientific = format!("{float:e}");
    let parts = scientific.split_once('e');
    let parts = parts.and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?)));
    match parts {
        Some((digits, exponent)) if float != 0.0 && !EXPONENTS.contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => float.to_string(),
    }
}

/// Returns whether Go prints a character without escaping it.
///
/// The result is false for control characters, for most spaces other than U+0020, and for most format
/// characters of the Basic Multilingual Plane. All other characters count as printable, although Go escapes
/// some of them.
pub(crate) fn is_printable(letter: char) -> bool {
    let is_format = matches!(
        letter,
        '\u{a0}'
            | '\u{ad}'
            | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{3000}'
            | '\u{feff}'
    );
    !letter.is_control() && !is_format
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_as_by_go() {
        for (text, quoted) in [
            ("a", "\"a\""),
            ("a\"\\", "\"a\\\"\\\\\""),
            (
                "\0\u{7}\n\u{1b}\u{85}\u{200b}é",
                "\"\\x00\\a\\n\\x1b\\u0085\\u200bé\"",
            ),
        ] {
            assert_eq!(Quoted(text).to_string(), quoted);
        }
    }
}
