//! Validates label keys and values as the API server does.
//!
//! The length limits are defined in apimachinery's
//! [`validation.go`](https://github.com/kubernetes/apimachinery/blob/master/pkg/util/validation/validation.go).

/// Maximum length in bytes of a label value, and of a label key's name after the slash.
const NAME_MAX: usize = 63;

/// Maximum length in bytes of a label key's prefix before the slash.
const PREFIX_MAX: usize = 253;

/// The reason why the key or value of a label is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLabel {
    /// The name in the key is invalid. A valid name has 1 to 63 characters: letters, digits, `-`, `_` and
    /// `.`. It begins and ends with a letter or a digit.
    #[error(
        "{0:?} is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and \
         begin and end with a letter or a digit"
    )]
    KeyName(String),
    /// The prefix of the key is not a DNS subdomain of 1 to 253 characters.
    #[error(
        "{0:?} is not a label key: its prefix before the '/' must be a DNS subdomain, in lower case and of \
         at most 253 characters"
    )]
    KeyPrefix(String),
    /// The value is invalid. A valid value has at most 63 characters: letters, digits, `-`, `_` and `.`. A
    /// value that is not empty begins and ends with a letter or a digit.
    #[error(
        "{0:?} is not a label value: it must be at most 63 letters, digits, '-', '_' or '.', and \
         begin and end with a letter or a digit"
    )]
    Value(String),
    /// The set of values of an `in` or `notin` requirement is empty.
    #[error("the operators In and NotIn need at least one value")]
    NoValues,
}

/// Returns an error unless `key` is a valid label key, with or without a prefix.
pub(super) fn check_key(key: &str) -> Result<(), InvalidLabel> {
    let name = match key.split_once('/') {
        Some((prefix, _)) if !is_subdomain(prefix) => {
            return Err(InvalidLabel::KeyPrefix(key.to_owned()));
        }
        Some((_, name)) => name,
        None => key,
    };
    if is_name(name) {
        Ok(())
    } else {
        Err(InvalidLabel::KeyName(key.to_owned()))
    }
}

pub(super) fn check_value(value: &str) -> Result<(), InvalidLabel> {
    if value.is_empty() || is_name(value) {
        Ok(())
    } else {
        Err(InvalidLabel::Value(value.to_owned()))
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_MAX
        && has_ends(name, u8::is_ascii_alphanumeric)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_subdomain(prefix: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    prefix.len() <= PREFIX_MAX
        && prefix.split('.').all(|part| {
            has_ends(part, is_letter) && part.bytes().all(|byte| is_letter(&byte) || byte == b'-')
        })
}

/// Returns whether the first and the last byte of `text` exist and satisfy `is_end`.
fn has_ends(text: &str, is_end: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&is_end) && bytes.last().is_some_and(&is_end)
}
