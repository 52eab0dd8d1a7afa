//! Decides what Go makes of an encoded word of RFC 2047, such as `=?utf-8?q?caf=C3=A9?=`.

use super::base64::is_base64;

/// What a word is to Go's parser of email addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Not a valid encoded word, so it stands for itself.
    Plain,
    Encoded {
        is_empty: bool,
    },
    /// A valid encoded word in a character set that Go does not decode.
    UnknownCharset,
}

/// Classifies `word`. An encoded word can have any length, and an empty text.
pub(super) fn classify(word: &str) -> Word {
    let inner = word
        .strip_prefix("=?")
        .and_then(|word| word.strip_suffix("?="));
    let mut parts = inner.unwrap_or_default().splitn(4, '?');
    let (Some(charset), Some(encoding), Some(text), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Word::Plain;
    };
    let is_empty = match encoding {
        "b" | "B" => {
            let text = without_line_breaks(text);
            is_base64(&text).then_some(text.is_empty())
        }
        "q" | "Q" => is_q_encoded(text.as_bytes()).then_some(text.is_empty()),
        _ => None,
    };
    match is_empty {
        Some(is_empty) if is_known(charset) => Word::Encoded { is_empty },
        Some(_) if !charset.is_empty() => Word::UnknownCharset,
        _ => Word::Plain,
    }
}

/// Returns whether Go decodes `charset`.
///
/// Go's comparison ignores the case of all of Unicode, where U+017F is another lower case of `S`.
fn is_known(charset: &str) -> bool {
    let lower = |letter: char| match letter {
        '\u{17f}' => 's',
        _ => letter.to_ascii_lowercase(),
    };
    let known = ["utf-8", "iso-8859-1", "us-ascii"];
    known
        .iter()
        .any(|known| known.chars().eq(charset.chars().map(lower)))
}

/// Returns the bytes of `text` that Go's base64 decoder does not ignore.
fn without_line_breaks(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !is_line_break(*byte)).collect()
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Returns whether `text` is in the "Q" encoding.
///
/// Characters other than printable ASCII must be escaped, except tabs and line breaks.
fn is_q_encoded(text: &[u8]) -> bool {
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return true,
            [b'=', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest
            }
            [b'=', ..] => return false,
            [b' '..=b'~' | b'\t' | b'\r' | b'\n', rest @ ..] => rest,
            _ => return false,
        };
    }
}
