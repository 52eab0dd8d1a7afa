//! Checks UUIDs and BSON object IDs.

/// Returns whether `text` is 24 hexadecimal digits.
pub(super) fn is_bson_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether `text` is a UUID.
///
/// `version` is the digit that must stand for the version, or `None` for any.
/// Each of the four dashes is optional. Only versions 4 and 5 require the variant of RFC 9562.
pub(super) fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text.as_bytes();
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else {
            return false;
        };
        let valid = match index {
            2 => version.is_none_or(|version| group[0] == version),
            3 if matches!(version, Some(b'4' | b'5')) => b"89abAB".contains(&group[0]),
            _ => true,
        };
        if !valid || !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}
