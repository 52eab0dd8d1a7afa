//! Writes JSON as Go's `encoding/json` does.
//!
//! Guarantees:
//! - a floating-point number without a fraction has no decimal point;
//! - `<`, `>`, `&` and line separators are escaped.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// The form of Go's JSON.
struct Go;

/// Appends the JSON of a value to `out`.
pub(crate) fn append(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let written = value.serialize(&mut Serializer::with_formatter(out, Go));
    written.expect("writing JSON into memory can't fail");
}

/// Returns the JSON of a value.
pub(crate) fn to_text(value: &(impl Serialize + ?Sized)) -> String {
    let mut out = Vec::new();
    append(&mut out, value);
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// Returns a number of Go's type `float64` as Go writes it.
pub(crate) fn float_text(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        // Go writes the sign of a positive exponent.
        let text = format!("{float:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{float}")
}

impl Formatter for Go {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float_text(value).as_bytes())
    }

    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // The first byte of a line separator is E2. The loop has no early end, so that it reads many bytes at a time.
        let is_special = |byte| matches!(byte, b'<' | b'>' | b'&' | 0xe2);
        if !fragment
            .bytes()
            .fold(false, |found, byte| found | is_special(byte))
        {
            return writer.write_all(fragment.as_bytes());
        }
        for part in fragment.split_inclusive(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let plain = part.trim_end_matches(['<', '>', '&', '\u{2028}', '\u{2029}']);
            writer.write_all(plain.as_bytes())?;
            for letter in part[plain.len()..].chars() {
                write!(writer, "\\u{:04x}", u32::from(letter))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_have_gos_form() {
        for (number, text) in [
            (1.0, "1"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (2e-12, "2e-12"),
            (1e300, "1e+300"),
        ] {
            let mut out = Vec::new();
            append(&mut out, &json!([number]));
            assert_eq!(String::from_utf8(out).unwrap(), format!("[{text}]"));
        }
    }

    #[test]
    fn a_number_is_written_as_it_was_read() {
        let text = "[-983520.8956604241,0.1,5e-324,1.7976931348623157e+308]";
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut out = Vec::new();
        append(&mut out, &value);
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn html_is_escaped_in_messages() {
        let text = to_text(&json!({"a<b": "c&&d>\n"}));
        assert_eq!(text, r#"{"a\u003cb":"c\u0026\u0026d\u003e\n"}"#);
    }
}
