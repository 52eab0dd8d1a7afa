//! Finds the syntax error that Go's `encoding/json` reports for a text, and writes JSON as it does.
//!
//! Guarantees: the rules and the messages are those of the scanner in `encoding/json/scanner.go`. The scanner
//! does not check the encoding of strings, and accepts 10,000 levels of nesting.

mod repair;
mod write;

use crate::quote::Quoted;

pub(crate) use repair::repaired;
pub(crate) use write::{append, float_text, to_text};

/// Returns whether a text nests deeper than Go accepts, unless it has another error before.
pub(crate) fn is_too_deep(text: &[u8]) -> bool {
    let opens = text.iter().filter(|byte| matches!(byte, b'[' | b'{'));
    opens.count() > DEPTH_MAX && syntax_error(text).is_some_and(|why| why.ends_with(TOO_DEEP))
}

/// Maximum nesting depth (`maxNestingDepth` in Go's `scanner.go`).
const DEPTH_MAX: usize = 10_000;

/// End of the message about a text that is too deep.
const TOO_DEEP: &str = "exceeded max depth";

/// Message for a text that ends too early.
const END: &str = "unexpected end of JSON input";

/// Reads a text byte by byte.
struct Scanner<'a> {
    rest: &'a [u8],
    /// The open objects (`{`) and lists (`[`).
    open: Vec<u8>,
}

/// What the scanner expects next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    /// A value, or the end of an empty list.
    ValueOrEnd,
    Key,
    /// A key, or the end of an empty object.
    KeyOrEnd,
    AfterValue,
}

/// Returns Go's message about the first syntax error of `text`, or `None` if Go accepts the text.
pub(crate) fn syntax_error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner {
        rest: text,
        open: Vec::new(),
    };
    scanner.scan().err()
}

impl Scanner<'_> {
    fn scan(&mut self) -> Result<(), String> {
        let mut expected = Expected::Value;
        loop {
            self.skip_spaces();
            expected = match expected {
                Expected::AfterValue if self.open.is_empty() => {
                    return match self.rest.first() {
                        None => Ok(()),
                        Some(byte) => Err(invalid(*byte, "after top-level value")),
                    };
                }
                Expected::AfterValue => self.after_value()?,
                Expected::Key | Expected::KeyOrEnd => self.key(expected)?,
                Expected::Value | Expected::ValueOrEnd => self.value(expected)?,
            };
        }
    }

    fn skip_spaces(&mut self) {
        let end = self.rest.iter();
        let end = end.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
        self.rest = &self.rest[end.count()..];
    }

    /// Returns the next byte of a token. At the end of the text, returns a space, as Go's scanner does.
    fn next_of_token(&mut self) -> u8 {
        self.next().unwrap_or(b' ')
    }

    fn next(&mut self) -> Result<u8, String> {
        let (byte, rest) = self.rest.split_first().ok_or(END)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn value(&mut self, expected: Expected) -> Result<Expected, String> {
        match self.next()? {
            b']' if expected == Expected::ValueOrEnd => {
                self.open.pop();
            }
            byte @ (b'{' | b'[') => {
                self.open.push(byte);
                if self.open.len() > DEPTH_MAX {
                    return Err(invalid(byte, TOO_DEEP));
                }
                return Ok(if byte == b'{' {
                    Expected::KeyOrEnd
                } else {
                    Expected::ValueOrEnd
                });
            }
            b'"' => self.string()?,
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            byte @ (b'-' | b'0'..=b'9') => self.number(byte)?,
            byte => return Err(invalid(byte, "looking for beginning of value")),
        }
        Ok(Expected::AfterValue)
    }

    fn key(&mut self, expected: Expected) -> Result<Expected, String> {
        match self.next()? {
            b'}' if expected == Expected::KeyOrEnd => {
                self.open.pop();
                return Ok(Expected::AfterValue);
            }
            b'"' => self.string()?,
            byte => return Err(invalid(byte, "looking for beginning of object key string")),
        }
        self.skip_spaces();
        match self.next()? {
            b':' => Ok(Expected::Value),
            byte => Err(invalid(byte, "after object key")),
        }
    }

    fn after_value(&mut self) -> Result<Expected, String> {
        let in_object = self.open.last() == Some(&b'{');
        match (self.next()?, in_object) {
            (b',', true) => Ok(Expected::Key),
            (b',', false) => Ok(Expected::Value),
            (b'}', true) | (b']', false) => {
                self.open.pop();
                Ok(Expected::AfterValue)
            }
            (byte, true) => Err(invalid(byte, "after object key:value pair")),
            (byte, false) => Err(invalid(byte, "after array element")),
        }
    }

    /// Reads a string after its opening quote.
    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next_of_token() {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next_of_token();
                            if !byte.is_ascii_hexdigit() {
                                let place = "in \\u hexadecimal character escape";
                                return Err(invalid(byte, place));
                            }
                        }
                    }
                    byte => return Err(invalid(byte, "in string escape code")),
                },
                byte @ 0..0x20 => return Err(invalid(byte, "in string literal")),
                _ => {}
            }
        }
    }

    /// Reads a literal after its first byte.
    fn literal(&mut self, word: &str) -> Result<(), String> {
        for wanted in word.chars().skip(1) {
            let byte = self.next_of_token();
            if char::from(byte) != wanted {
                let place = format!("in literal {word} (expecting '{wanted}')");
                return Err(invalid(byte, &place));
            }
        }
        Ok(())
    }

    /// Reads a number after its first byte.
    fn number(&mut self, first: u8) -> Result<(), String> {
        let first = match first {
            b'-' => self.digit("in numeric literal")?,
            first => first,
        };
        if first != b'0' {
            self.digits();
        }
        if self.rest.first() == Some(&b'.') {
            self.next()?;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.rest.first() {
            self.next()?;
            if let Some(b'+' | b'-') = self.rest.first() {
                self.next()?;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn digit(&mut self, place: &str) -> Result<u8, String> {
        match self.next_of_token() {
            byte @ b'0'..=b'9' => Ok(byte),
            byte => Err(invalid(byte, place)),
        }
    }

    fn digits(&mut self) {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit());
        self.rest = &self.rest[digits.count()..];
    }
}

/// Returns Go's message about an unexpected byte.
///
/// As in Go, the message shows the character whose code point is the value of the byte.
fn invalid(byte: u8, place: &str) -> String {
    let shown = match char::from(byte) {
        '\'' => "\\'".to_owned(),
        '"' => "\"".to_owned(),
        other => {
            let quoted = Quoted(other.encode_utf8(&mut [0; 4])).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        }
    };
    format!("invalid character '{shown}' {place}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts, and the messages of `json.Unmarshal` of Go 1.26 about them.
    const TEXTS: &[(&str, &str)] = &[
        ("", END),
        (" ", END),
        ("{", END),
        ("{\"a\"", END),
        ("[1,", END),
        ("-", "invalid character ' ' in numeric literal"),
        (
            "tr",
            "invalid character ' ' in literal true (expecting 'u')",
        ),
        ("\"a", END),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("[,", "invalid character ',' looking for beginning of value"),
        (
            "[1,]",
            "invalid character ']' looking for beginning of value",
        ),
        (
            "{1",
            "invalid character '1' looking for beginning of object key string",
        ),
        (
            "{\"a\":1,}",
            "invalid character '}' looking for beginning of object key string",
        ),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        (
            "{\"a\":1 \"b\"",
            "invalid character '\"' after object key:value pair",
        ),
        (
            "{\"a\":1]",
            "invalid character ']' after object key:value pair",
        ),
        ("[1 2]", "invalid character '2' after array element"),
        ("1 2", "invalid character '2' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-a", "invalid character 'a' in numeric literal"),
        (
            "1.a",
            "invalid character 'a' after decimal point in numeric literal",
        ),
        (
            "1ea",
            "invalid character 'a' in exponent of numeric literal",
        ),
        (
            "nul1",
            "invalid character '1' in literal null (expecting 'l')",
        ),
        (
            "'",
            "invalid character '\\'' looking for beginning of value",
        ),
        ("\"\\x", "invalid character 'x' in string escape code"),
        (
            "\"\\u12g",
            "invalid character 'g' in \\u hexadecimal character escape",
        ),
        ("\"\n", "invalid character '\\n' in string literal"),
        ("\"\0", "invalid character '\\x00' in string literal"),
        (
            "\u{feff}1",
            "invalid character 'ï' looking for beginning of value",
        ),
    ];

    #[test]
    fn messages_are_those_of_go() {
        for (text, message) in TEXTS {
            let found = syntax_error(text.as_bytes());
            assert_eq!(found.as_deref(), Some(*message), "{text}");
        }
    }

    #[test]
    fn nesting_is_limited_as_by_go() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(syntax_error(nested(DEPTH_MAX).as_bytes()), None);
        let message = "invalid character '[' exceeded max depth";
        let found = syntax_error(nested(DEPTH_MAX + 1).as_bytes());
        assert_eq!(found.as_deref(), Some(message));
    }

    proptest! {
        #[test]
        fn the_scanner_accepts_what_serde_json_accepts(
            text in r#"([\[\]{}:," \\]|"[a\\"u0]{0,3}"|-|0|12|\.|e|\+|true|nul|null|'){0,8}"#
        ) {
            let accepted = serde_json::from_str::<serde_json::Value>(&text);
            // Go's scanner does not look at the value of a number or an escape.
            let unscanned = ["out of range", "surrogate", "unicode"];
            let only_scanned = accepted.as_ref().is_err_and(|error| {
                unscanned.iter().any(|text| error.to_string().contains(text))
            });
            prop_assume!(!only_scanned);
            prop_assert_eq!(syntax_error(text.as_bytes()).is_none(), accepted.is_ok(), "{}", text);
        }
    }
}
