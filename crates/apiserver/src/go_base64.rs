//! Decodes base64 with the rules and error messages of Go's `encoding/base64`.

use std::borrow::Cow;

use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine as _, alphabet};

/// Go's `StdEncoding`, which ignores the bits after the last byte.
const STANDARD: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Decodes a text in the standard alphabet with padding. As in Go, line breaks have no effect.
///
/// # Errors
///
/// Returns Go's message. If the text has line breaks, they do not count in the position.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let text: Cow<'_, str> = if text.contains(['\r', '\n']) {
        text.replace(['\r', '\n'], "").into()
    } else {
        text.into()
    };
    STANDARD
        .decode(&*text)
        .map_err(|error| match text.find('=') {
            // A second `=` is missing at the end, or something follows it.
            Some(at) if at % 4 == 2 && at + 1 == text.len() => at_byte(text.len()),
            Some(at) if at % 4 == 2 && text[at + 1..].starts_with('=') => at_byte(at + 2),
            _ => message(&text, &error),
        })
}

/// Encodes bytes as Go does in JSON.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Returns Go's message about a text that is not base64.
pub(crate) fn message(text: &str, error: &DecodeError) -> String {
    let at = match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => *at,
        // The position is the start of the incomplete group of four characters.
        DecodeError::InvalidLength(length) => length - length % 4,
        DecodeError::InvalidPadding => text.find('=').unwrap_or(text.len() - text.len() % 4),
    };
    at_byte(at)
}

fn at_byte(at: usize) -> String {
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results are those of `base64.StdEncoding` in Go 1.26.
    #[test]
    fn texts_are_decoded_as_by_go() {
        assert_eq!(decode("aGVs\nbG8=").unwrap(), b"hello");
        assert_eq!(decode("aGl=").unwrap(), b"hi", "unused bits are ignored");
        for (text, at) in [
            ("YWJj=", 4),
            ("YWJjZ", 4),
            ("1x", 0),
            ("aG=", 3),
            ("aGl", 0),
            ("aG==x", 4),
            ("=", 0),
            ("aG=x", 2),
            ("aGVs+w=", 7),
            ("ab=c", 2),
            ("not base64", 3),
        ] {
            assert_eq!(decode(text).unwrap_err(), at_byte(at), "{text}");
        }
    }
}
