//! Applies a JSON patch (RFC 6902) within limits.
//!
//! Guarantees:
//! - a patch has at most [`OPERATIONS_MAX`] operations, which copy at most [`COPIED_BYTES_MAX`] bytes and
//!   visit or move at most [`STEPS_MAX`] values;
//! - a patch of any object is therefore applied or rejected within seconds;
//! - the document is never nested deeper than [`DEPTH_MAX`] levels, so recursive functions do not overflow
//!   the stack.

use json_patch::PatchOperation;
use json_patch::jsonptr::Pointer;
use serde_json::Value;

use crate::object::{DEPTH_MAX, height};
use crate::status::ApiError;

/// Maximum number of operations in a patch (`maxJSONPatchOperations` in Kubernetes' `patch.go`).
const OPERATIONS_MAX: usize = 10_000;

/// Maximum bytes copied by all `copy` operations of a patch, as in Kubernetes (`JSONPatchMaxCopyBytes`).
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Maximum number of values visited or moved by a patch; Kubernetes has no such limit.
const STEPS_MAX: usize = 100_000_000;

/// Bytes copied, and values visited or moved, by a patch so far.
#[derive(Default)]
struct Cost {
    copied_bytes: usize,
    steps: usize,
}

/// Rejects a patch with more than [`OPERATIONS_MAX`] operations.
pub(super) fn check(operations: &[PatchOperation]) -> Result<(), ApiError> {
    if operations.len() <= OPERATIONS_MAX {
        return Ok(());
    }
    Err(too_large(&format!(
        "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
        operations.len()
    )))
}

/// Applies a patch to `document`, which may be partly changed after an error.
pub(super) fn apply(operations: &[PatchOperation], document: &mut Value) -> Result<(), ApiError> {
    let mut cost = Cost::default();
    for operation in operations {
        cost.add(operation, document)?;
        if asserts_absence(operation, document) {
            continue;
        }
        json_patch::patch(document, std::slice::from_ref(operation))
            .map_err(|_| ApiError::inapplicable())?;
    }
    Ok(())
}

impl Cost {
    /// Adds the cost of the next operation, or returns an error if a limit is exceeded.
    fn add(&mut self, operation: &PatchOperation, document: &Value) -> Result<(), ApiError> {
        let at = |from: &Pointer| document.pointer(from.as_str());
        let (path, brought) = match operation {
            PatchOperation::Add(add) => (&*add.path, Some(&add.value)),
            PatchOperation::Replace(replace) => (&*replace.path, Some(&replace.value)),
            PatchOperation::Copy(copy) => {
                let value = at(&copy.from);
                self.copied_bytes += value.map_or(0, |value| value.to_string().len());
                (&*copy.path, value)
            }
            PatchOperation::Move(moved) => {
                self.steps += siblings(&moved.from, document);
                let digs = moved.path.tokens().count() > moved.from.tokens().count();
                (&*moved.path, at(&moved.from).filter(|_| digs))
            }
            PatchOperation::Remove(remove) => (&*remove.path, None),
            PatchOperation::Test(_) => return Ok(()),
        };
        self.steps += siblings(path, document);
        if let Some(brought) = brought {
            if matches!(operation, PatchOperation::Move(_)) {
                self.steps += values(brought);
            }
            if path.tokens().count() + height(brought) > DEPTH_MAX {
                return Err(ApiError::too_deep());
            }
        }
        if self.copied_bytes > COPIED_BYTES_MAX {
            return Err(too_large(
                "Unable to complete the JSON patch: the copied values exceed the size limit",
            ));
        }
        if self.steps > STEPS_MAX {
            return Err(too_large(
                "Unable to complete the JSON patch: it moves too many values",
            ));
        }
        Ok(())
    }
}

/// Returns the length of the list that contains the value at `path`, or 0 if no list contains it.
fn siblings(path: &Pointer, document: &Value) -> usize {
    let parent = path
        .parent()
        .and_then(|parent| document.pointer(parent.as_str()));
    parent.and_then(Value::as_array).map_or(0, Vec::len)
}

/// Returns the number of JSON values in `value`, including `value` itself.
fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}

/// Returns whether the operation is a `test` for `null` of an absent member, which kube-rs sends.
///
/// Kubernetes accepts such a test, but the crate `json_patch` rejects it.
fn asserts_absence(operation: &PatchOperation, document: &Value) -> bool {
    let PatchOperation::Test(test) = operation else {
        return false;
    };
    let path: &Pointer = &test.path;
    let Some((parent, member)) = path.split_back() else {
        return false;
    };
    let parent = document.pointer(parent.as_str()).and_then(Value::as_object);
    test.value.is_null() && parent.is_some_and(|parent| !parent.contains_key(&*member.decoded()))
}

fn too_large(message: &str) -> ApiError {
    ApiError::new(413, "RequestEntityTooLarge", message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(document: &mut Value, patch: Value) -> Result<(), ApiError> {
        let operations: Vec<PatchOperation> = serde_json::from_value(patch).unwrap();
        apply(&operations, document)
    }

    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!([]), |inner, _| json!([inner]))
    }

    #[test]
    fn an_operation_beyond_the_nesting_limit_is_rejected() {
        let deepest = nested(DEPTH_MAX - 1);
        let mut document = json!({"a": {}, "b": deepest});
        let into = "/a/x";
        for dig in [
            json!({"op": "add", "path": into, "value": deepest}),
            json!({"op": "copy", "from": "/b", "path": into}),
            json!({"op": "move", "from": "/b", "path": into}),
        ] {
            let refused = patched(&mut document, json!([dig])).unwrap_err();
            assert_eq!(refused, ApiError::too_deep(), "{dig}");
        }
        let replace = json!({"op": "replace", "path": "/a", "value": nested(DEPTH_MAX)});
        assert!(patched(&mut document, json!([replace])).is_err());
        let allowed = json!([
            {"op": "move", "from": "/b", "path": "/c"},
            {"op": "replace", "path": "/a", "value": deepest},
        ]);
        patched(&mut document, allowed).unwrap();
        assert_eq!(height(&document), DEPTH_MAX);
    }

    #[test]
    fn ten_thousand_insertions_into_a_long_list_are_rejected() {
        let long = || json!({"list": vec![0; 100_000], "deep": {"er": {}}});
        let at_front = json!({"op": "add", "path": "/list/0", "value": 1});
        let there = json!({"op": "move", "from": "/list", "path": "/deep/er"});
        let back = json!({"op": "move", "from": "/deep/er", "path": "/list"});
        let few = json!(vec![&at_front; 100]);
        patched(&mut long(), few).unwrap();
        for pair in [[&at_front, &at_front], [&there, &back]] {
            let many = json!(vec![pair; 2_000].concat());
            let refused = patched(&mut long(), many).unwrap_err();
            assert_eq!(refused.code(), 413, "{refused}");
        }
    }
}
