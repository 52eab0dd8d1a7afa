//! Fuzz target for the decoding of one object.
//!
//! A decoded object must have the same name, namespace and UID as the result of a JSON parser. An error
//! message must not contain values of the object, except for its name and namespace.

use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{ApiResource, DynamicObject, GroupVersionKind, Resource};
use kube_informer::fuzzing::{Decoded, decode};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::planted::Bug;

/// Minimum length in bytes of the object values that must not occur in an error message.
///
/// A shorter value can be part of a message by chance.
const TELLING_BYTES: usize = 6;

pub(super) fn run(data: &[u8], _bug: Option<Bug>) -> String {
    let bytes = Bytes::copy_from_slice(data);
    let widget = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let widget = ApiResource::from_gvk(&widget);
    let ways = [false, true].map(|is_item| {
        let known = judge::<ConfigMap>(&bytes, &(), is_item);
        let dynamic = judge::<DynamicObject>(&bytes, &widget, is_item);
        format!("{known}/{dynamic}")
    });
    ways.join(" ")
}

fn judge<K>(bytes: &Bytes, dyntype: &K::DynamicType, is_item: bool) -> &'static str
where
    K: Resource + DeserializeOwned + 'static,
    K::DynamicType: 'static,
{
    match decode::<K>(dyntype, bytes, is_item) {
        Decoded::OtherKind(found) => {
            assert!(
                !found.contains(char::is_control),
                "{found:?} is not one line"
            );
            "of another kind"
        }
        Decoded::Unreadable(error) => {
            quotes_nothing(bytes, &error.to_string());
            "unreadable"
        }
        Decoded::Object(object) => {
            if let Some(error) = object.broken() {
                assert!(!object.name().is_empty());
                quotes_nothing(bytes, &error.to_string());
                return "broken";
            }
            let is_json = serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
            assert!(is_json, "invalid JSON was decoded");
            // Unused members may contain invalid texts and numbers.
            if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
                let text = |member: &str| value["metadata"][member].as_str().unwrap_or_default();
                assert_eq!(object.name(), text("name"));
                assert_eq!(object.namespace().unwrap_or_default(), text("namespace"));
                assert_eq!(object.uid(), text("uid"));
            }
            "an object"
        }
    }
}

/// Checks that an error message contains no values of the object except its name and namespace.
fn quotes_nothing(bytes: &Bytes, error: &str) {
    let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let mut names = Vec::new();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in ["name", "namespace"] {
            names.extend(
                metadata
                    .remove(name)
                    .and_then(|name| name.as_str().map(str::to_owned)),
            );
        }
    }
    let mut values = Vec::new();
    texts(&value, &mut values);
    let own = |value: &&str| names.iter().any(|name| name.contains(*value));
    let telling = values.iter().filter(|value| value.len() >= TELLING_BYTES);
    for value in telling.copied().filter(|value| !own(value)) {
        let is_a_word = ORDINARY.contains(value) || bytes_as_key(bytes, value);
        assert!(
            is_a_word || !error.contains(value),
            "{error:?} quotes {value:?}"
        );
    }
}

/// Words of error messages that do not depend on the decoded object.
const ORDINARY: &str = "metadata.name: invalid JSON, a value of another type than expected, or a missing field, (line column) the JSON ends early no name of can't be decoded";

fn bytes_as_key(bytes: &Bytes, text: &str) -> bool {
    let key = format!("{text:?}:");
    bytes
        .windows(key.len())
        .any(|window| window == key.as_bytes())
}

fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(members) => members.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}
