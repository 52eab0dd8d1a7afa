//! Applies a JSON patch (RFC 6902), within limits, like Kubernetes' library `gopkg.in/evanphx/json-patch.v4`.
//!
//! The library accepts more than the RFC:
//! - a missing `value` is null, and so is a missing member that `test` or `copy` reads;
//! - `replace` adds a missing member to an object;
//! - a negative index counts from the end of a list;
//! - the text before the first slash of a path is ignored.
//!
//! Guarantees:
//! - a patch has at most [`OPERATIONS_MAX`] operations, which copy at most [`COPIED_BYTES_MAX`] bytes and
//!   visit or move at most [`STEPS_MAX`] values;
//! - a patch of any object is therefore applied or rejected within seconds;
//! - the document is never nested deeper than [`DEPTH_MAX`] levels, so recursive functions do not overflow
//!   the stack.
//!
//! Two differences from Kubernetes remain:
//! - a `test` of a list that contains null compares the lists, where Kubernetes fails with a 500 error;
//! - a `test` of a value that the same patch has added compares with the text that Go's `encoding/json`
//!   writes. For example, a `test` for `1.0` fails after an `add` of `1.0`, which Go writes as `1`.
//!   Kubernetes compares the two texts in the patch.

mod operation;
mod text;

use serde_json::Value;

use crate::object::{DEPTH_MAX, height};
use crate::status::ApiError;

pub(super) use operation::{Operation, parse};

/// Maximum number of operations in a patch (`maxJSONPatchOperations` in Kubernetes' `patch.go`).
const OPERATIONS_MAX: usize = 10_000;

/// Maximum bytes copied by all `copy` operations of a patch, as in Kubernetes (`JSONPatchMaxCopyBytes`).
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Maximum number of values visited or moved by a patch; Kubernetes has no such limit.
const STEPS_MAX: usize = 100_000_000;

/// Why an operation fails.
enum Failure {
    /// The operation does not apply to the document, or exceeds [`COPIED_BYTES_MAX`].
    Inapplicable,
    TooDeep,
    TooManySteps,
}

/// The work of a patch so far, which [`COPIED_BYTES_MAX`] and [`STEPS_MAX`] limit.
#[derive(Default)]
struct Cost {
    copied_bytes: usize,
    steps: usize,
}

/// A place that an operation names: an object or list of the document, and a key.
struct Place<'d> {
    container: &'d mut Value,
    key: String,
    /// Nesting depth of the values in the container.
    depth: usize,
}

/// Applies a patch to `document`, which may be partly changed after an error.
pub(super) fn apply(operations: &[Operation], document: &mut Value) -> Result<(), ApiError> {
    let mut cost = Cost::default();
    for operation in operations {
        step(operation, document, &mut cost)?;
    }
    Ok(())
}

fn step(operation: &Operation, document: &mut Value, cost: &mut Cost) -> Result<(), Failure> {
    let path = operation.text("path").ok_or(Failure::Inapplicable)?;
    match operation.text("op").as_deref() {
        Some("add") => Place::of(document, &path)?.add_checked(operation.value()?, cost),
        Some("remove") => Place::of(document, &path)?.remove(cost).map(drop),
        Some("replace") if path.is_empty() => {
            let value = operation.value()?;
            if !value.is_object() && !value.is_array() {
                return Err(Failure::Inapplicable);
            }
            *document = value;
            Ok(())
        }
        Some("replace") => Place::of(document, &path)?.replace(operation.value()?),
        Some("move") => {
            let from = operation.text("from").ok_or(Failure::Inapplicable)?;
            let place = Place::of(document, &from)?;
            let depth = place.depth;
            let value = place.remove(cost)?;
            let place = Place::of(document, &path)?;
            if place.depth <= depth {
                return place.add(value, cost);
            }
            cost.add(values(&value))?;
            place.add_checked(value, cost)
        }
        Some("copy") => {
            let from = operation.text("from").ok_or(Failure::Inapplicable)?;
            let value = Place::of(document, &from)?.read()?.cloned();
            let value = value.unwrap_or_default();
            cost.copied_bytes += value.to_string().len();
            if cost.copied_bytes > COPIED_BYTES_MAX {
                return Err(Failure::Inapplicable);
            }
            Place::of(document, &path)?.add_checked(value, cost)
        }
        Some("test") if path.is_empty() => {
            let equal = operation
                .raw()
                .is_some_and(|raw| text::equal(document, raw));
            equal.then_some(()).ok_or(Failure::Inapplicable)
        }
        Some("test") => {
            let place = Place::of(document, &path)?;
            let equal = match (place.read()?, operation.raw()) {
                (None | Some(Value::Null), raw) => raw.is_none(),
                (Some(value), Some(raw)) => text::equal(value, raw),
                (Some(_), None) => false,
            };
            equal.then_some(()).ok_or(Failure::Inapplicable)
        }
        _ => Err(Failure::Inapplicable),
    }
}

// === impl Failure ===

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> ApiError {
        match failure {
            Failure::Inapplicable => ApiError::inapplicable(),
            Failure::TooDeep => ApiError::too_deep(),
            Failure::TooManySteps => {
                let message = "Unable to complete the JSON patch: it moves too many values";
                ApiError::new(413, "RequestEntityTooLarge", message)
            }
        }
    }
}

// === impl Cost ===

impl Cost {
    /// Counts visited or moved values. Returns an error if the total exceeds [`STEPS_MAX`].
    fn add(&mut self, steps: usize) -> Result<(), Failure> {
        self.steps += steps;
        if self.steps > STEPS_MAX {
            return Err(Failure::TooManySteps);
        }
        Ok(())
    }
}

// === impl Place ===

impl<'d> Place<'d> {
    /// Returns the place that `path` names. For `/a/b`, this is the key `b` in the object or list at `/a`.
    fn of(document: &'d mut Value, path: &str) -> Result<Place<'d>, Failure> {
        let (_, pointer) = path.split_once('/').ok_or(Failure::Inapplicable)?;
        let mut container = document;
        let mut depth = 1;
        let mut rest = pointer;
        while let Some((segment, after)) = rest.split_once('/') {
            let key = decoded(segment);
            let inner = match container {
                Value::Object(members) => members.get_mut(&key),
                Value::Array(items) => existing(&key, items.len()).map(|at| &mut items[at]),
                _ => None,
            };
            container = inner.ok_or(Failure::Inapplicable)?;
            depth += 1;
            rest = after;
        }
        if !container.is_object() && !container.is_array() {
            return Err(Failure::Inapplicable);
        }
        Ok(Place {
            container,
            key: decoded(rest),
            depth,
        })
    }

    /// Returns the value at this place, or `None` for a missing member of an object.
    fn read(&self) -> Result<Option<&Value>, Failure> {
        match &*self.container {
            Value::Array(items) => {
                let at = existing(&self.key, items.len()).ok_or(Failure::Inapplicable)?;
                Ok(items.get(at))
            }
            container => Ok(container.get(&self.key)),
        }
    }

    /// Adds a value that may be nested too deeply for this place.
    fn add_checked(self, value: Value, cost: &mut Cost) -> Result<(), Failure> {
        self.admit(&value)?;
        self.add(value, cost)
    }

    fn add(self, value: Value, cost: &mut Cost) -> Result<(), Failure> {
        match self.container {
            Value::Object(members) => drop(members.insert(self.key, value)),
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                cost.add(items.len())?;
                let at = index(&self.key, items.len() + 1).ok_or(Failure::Inapplicable)?;
                if at > items.len() {
                    return Err(Failure::Inapplicable);
                }
                items.insert(at, value);
            }
            _ => return Err(Failure::Inapplicable),
        }
        Ok(())
    }

    fn replace(self, value: Value) -> Result<(), Failure> {
        self.read()?;
        self.admit(&value)?;
        match self.container {
            Value::Object(members) => drop(members.insert(self.key, value)),
            Value::Array(items) => {
                let at = existing(&self.key, items.len()).ok_or(Failure::Inapplicable)?;
                items[at] = value;
            }
            _ => return Err(Failure::Inapplicable),
        }
        Ok(())
    }

    fn remove(self, cost: &mut Cost) -> Result<Value, Failure> {
        match self.container {
            Value::Object(members) => members.remove(&self.key).ok_or(Failure::Inapplicable),
            Value::Array(items) => {
                cost.add(items.len())?;
                let at = existing(&self.key, items.len()).ok_or(Failure::Inapplicable)?;
                Ok(items.remove(at))
            }
            _ => Err(Failure::Inapplicable),
        }
    }

    /// Checks that the document does not become too deep with `value` at this place.
    fn admit(&self, value: &Value) -> Result<(), Failure> {
        if self.depth + height(value) > DEPTH_MAX {
            return Err(Failure::TooDeep);
        }
        Ok(())
    }
}

/// Returns the index of an existing item that `key` names in a list of the given length.
fn existing(key: &str, length: usize) -> Option<usize> {
    index(key, length).filter(|at| *at < length)
}

/// Parses an index as Go's `strconv.Atoi` does; a negative index is relative to `length`.
fn index(key: &str, length: usize) -> Option<usize> {
    let at: isize = key.parse().ok()?;
    if at < 0 {
        return length.checked_sub(at.unsigned_abs());
    }
    usize::try_from(at).ok()
}

/// Returns a segment of a path with `~1` replaced by a slash and `~0` by a tilde.
fn decoded(segment: &str) -> String {
    // The order matters: `~01` is a tilde and a 1.
    segment.replace("~1", "/").replace("~0", "~")
}

/// Returns the number of JSON values in `value`, including `value` itself.
fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
