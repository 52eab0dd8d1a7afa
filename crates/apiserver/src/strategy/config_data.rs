//! Validates the data of `ConfigMap`s and secrets: keys, total size, and changes of immutable data.

use serde_json::{Map, Value};

use crate::object::Object;
use crate::quote::Quoted;
use crate::status::FieldError;

/// Maximum total size in bytes of the values of one object (Kubernetes' `MaxSecretSize`).
pub(super) const SIZE_MAX: usize = 1024 * 1024;

/// Maximum length in bytes of a key (`DNS1123SubdomainMaxLength`).
const KEY_MAX: usize = 253;

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// Returns a member that is a JSON object with at least one member.
pub(super) fn map<'a>(object: &'a Object, member: &str) -> Option<&'a Map<String, Value>> {
    let map = object.get(member).and_then(Value::as_object);
    map.filter(|map| !map.is_empty())
}

/// Returns an error for each invalid key of the map `member`.
pub(super) fn check_keys(object: &Object, member: &str) -> Vec<FieldError> {
    let keys = map(object, member).into_iter().flatten();
    let faults = keys.flat_map(|(key, _)| key_faults(key).into_iter().map(move |why| (key, why)));
    faults
        .map(|(key, why)| FieldError::invalid(format!("{member}[{key}]"), Quoted(key), &why))
        .collect()
}

/// Returns Kubernetes' messages about a key (`IsConfigMapKey`).
pub(super) fn key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if key.len() > KEY_MAX {
        faults.push(format!("must be no more than {KEY_MAX} characters"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(allowed) {
        faults.push("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')".to_owned());
    }
    match key {
        "." | ".." => faults.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => faults.push("must not start with '..'".to_owned()),
        _ => {}
    }
    faults
}

/// Returns the size in bytes of the decoded base64 strings of the map `member`.
pub(super) fn decoded_size(object: &Object, member: &str) -> usize {
    let values = map(object, member).into_iter().flatten();
    let texts = values.filter_map(|(_, value)| value.as_str());
    let sizes = texts.map(|text| {
        text.trim_end_matches('=').len() / 4 * 3 + text.trim_end_matches('=').len() % 4 * 3 / 4
    });
    sizes.sum()
}

/// Checks an update of an object from `old` to `new`.
///
/// If `old` is immutable, returns an error for each of `members` that changes, and an error if `new` is not
/// immutable.
pub(super) fn check_immutable(
    old: &Object,
    new: &Object,
    members: &[&'static str],
) -> Vec<FieldError> {
    let is_immutable = |object: &Object| object.get("immutable") == Some(&Value::Bool(true));
    if !is_immutable(old) {
        return Vec::new();
    }
    let lifted = (!is_immutable(new)).then_some("immutable");
    let changed = members
        .iter()
        .copied()
        .filter(|member| map(old, member) != map(new, member));
    let fields = lifted.into_iter().chain(changed);
    fields
        .map(|field| FieldError::forbidden(field, IMMUTABLE))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_names_of_files() {
        for (key, faults) in [
            ("a.b-C_1", 0),
            ("", 1),
            ("a b", 1),
            ("ä", 1),
            (".", 1),
            ("..", 1),
            ("..a", 1),
            (".a", 0),
            (&"x".repeat(KEY_MAX), 0),
            (&" ".repeat(KEY_MAX + 1), 2),
        ] {
            assert_eq!(key_faults(key).len(), faults, "{key}");
        }
    }

    #[test]
    fn the_size_of_base64_is_that_of_the_bytes() {
        for (text, size) in [
            ("", 0),
            ("YQ==", 1),
            ("YWI=", 2),
            ("YWJj", 3),
            ("YWJjZA==", 4),
        ] {
            let members = json!({"metadata": {}, "data": {"a": text}});
            let object = Object::stored(members.as_object().cloned().unwrap());
            assert_eq!(decoded_size(&object, "data"), size, "{text}");
        }
    }
}
