//! Applies a JSON merge patch (RFC 7386) as Kubernetes' library `gopkg.in/evanphx/json-patch.v4` does.
//!
//! The library removes more nulls than the RFC: it also removes null members of objects inside a list. If a
//! list replaces an object, the library does not look into the list, and these nulls remain.

use serde_json::{Map, Value};

/// Merges `patch` into `document`; null removes a member.
pub(super) fn merge(document: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match (document.get_mut(name), value) {
            (_, Value::Null) => drop(document.remove(name)),
            (Some(Value::Object(inner)), Value::Object(patch)) => merge(inner, patch),
            // The library does not look into a list or a scalar that replaces an object.
            (Some(old @ Value::Object(_)), value) => *old = value.clone(),
            (_, value) => {
                let mut value = value.clone();
                prune(&mut value);
                document.insert(name.clone(), value);
            }
        }
    }
}

/// Removes the members that are null from all objects in `value`. Nulls in lists remain.
pub(super) fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_are_removed_except_from_lists_that_replace_objects() {
        let mut document = json!({"a": {"b": 1, "c": 2}, "d": [1], "e": {"f": 1}, "g": 1});
        let patch = json!({
            "a": {"b": null, "c": 3, "x": null},
            "d": [{"y": null}, null],
            "e": [{"y": null}, null],
            "g": {"h": {"i": null}},
            "j": {"k": null, "l": [{"m": null}]},
        });
        merge(
            document.as_object_mut().unwrap(),
            patch.as_object().unwrap(),
        );
        let expected = json!({
            "a": {"c": 3},
            "d": [{}, null],
            "e": [{"y": null}, null],
            "g": {"h": {}},
            "j": {"l": [{}]},
        });
        assert_eq!(document, expected);
    }
}
