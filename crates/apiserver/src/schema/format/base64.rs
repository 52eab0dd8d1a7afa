//! Checks base64.

/// Returns whether `text` is base64 of the standard alphabet with padding.
///
/// The bits that the last character has beyond the last byte can have any value, as in Go.
pub(super) fn is_base64(text: &[u8]) -> bool {
    let padding = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"="));
    let data = padding.unwrap_or(text);
    let in_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    text.len().is_multiple_of(4) && data.iter().all(in_alphabet)
}
