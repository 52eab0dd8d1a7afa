//! Replaces what Go accepts in JSON strings, and other parsers reject.

use std::borrow::Cow;

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Length in bytes of an escape such as `\ud800`.
const ESCAPE: usize = 6;

/// Replaces invalid UTF-8 and halves of surrogate pairs by U+FFFD, as Go does.
///
/// The text must be JSON that Go accepts.
pub(crate) fn repaired(text: &[u8]) -> Vec<u8> {
    let text = with_valid_utf8(text);
    let mut repaired = Vec::with_capacity(text.len());
    let mut rest = &*text;
    while let Some((byte, after)) = rest.split_first() {
        // Outside of strings, JSON has no backslash.
        let length = match (byte, surrogate(rest)) {
            (b'\\', Some(high)) if high < 0xdc00 && is_low(&rest[ESCAPE..]) => 2 * ESCAPE,
            (b'\\', Some(_)) => {
                repaired.extend(REPLACEMENT);
                rest = &rest[ESCAPE..];
                continue;
            }
            (b'\\', None) => 2.min(rest.len()),
            _ => rest.len() - after.len(),
        };
        repaired.extend(&rest[..length]);
        rest = &rest[length..];
    }
    repaired
}

fn with_valid_utf8(text: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let mut valid = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        valid.extend(chunk.valid().as_bytes());
        // Go replaces each byte.
        for _ in chunk.invalid() {
            valid.extend(REPLACEMENT);
        }
    }
    Cow::Owned(valid)
}

/// Returns the half of a surrogate pair at the start of a text, if there is one.
fn surrogate(text: &[u8]) -> Option<u16> {
    let digits = text.get(..ESCAPE)?.strip_prefix(b"\\u")?;
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}

fn is_low(text: &[u8]) -> bool {
    surrogate(text).is_some_and(|unit| unit >= 0xdc00)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_those_of_go() {
        for (text, expected) in [
            (&br#"["a\ud800b"]"#[..], "a\u{fffd}b"),
            (br#"["\udc00\ud800"]"#, "\u{fffd}\u{fffd}"),
            (br#"["\ud83d\ude00"]"#, "\u{1f600}"),
            (br#"["\\ud800"]"#, "\\ud800"),
            (b"[\"a\xe2\x82b\"]", "a\u{fffd}\u{fffd}b"),
        ] {
            let [found]: [String; 1] = serde_json::from_slice(&repaired(text)).unwrap();
            assert_eq!(found, expected);
        }
    }
}
