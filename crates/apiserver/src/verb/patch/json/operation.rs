//! Parses the operations of a JSON patch, with Kubernetes' messages.
//!
//! Guarantees: `op`, `path` and `from` are strings, unless the request has `fieldValidation=Ignore`. As in
//! Kubernetes, only the application of the patch detects missing members and unknown operations.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Failure, OPERATIONS_MAX};
use crate::field_validation::Directive;
use crate::object::json_type;
use crate::status::ApiError;
use crate::verb::patch::{decoding, parse_json};

pub(crate) struct Operation(Members);

/// The texts of an operation's members. The text of a member that is null is `None`.
type Members = BTreeMap<String, Option<Box<RawValue>>>;

/// Parses a JSON patch, which is a JSON array of operations. The body `null` is a patch without operations.
///
/// # Errors
///
/// Returns a 400 error if the body is not a JSON array of objects. Also returns a 400 error if `op`, `path`
/// or `from` is not a string, unless `directive` is `Ignore`. Null is accepted instead of the array, an
/// object or a string. Returns a 413 error if the patch has too many operations.
pub(in crate::verb::patch) fn parse(
    body: &[u8],
    directive: Directive,
) -> Result<Vec<Operation>, ApiError> {
    // Without validation, Kubernetes decodes only into the types of the patch library.
    let validates = directive != Directive::Ignore;
    let rejected = |why: String| {
        if validates {
            decoding(&why)
        } else {
            ApiError::bad_request(why)
        }
    };
    let patch = parse_json(body).map_err(rejected)?;
    check_types(&patch, validates).map_err(rejected)?;
    let sent = serde_json::from_slice::<Option<Vec<Option<Members>>>>(body);
    let sent = sent.map_err(|error| decoding(&error.to_string()))?;
    let operations = sent.unwrap_or_default();
    if operations.len() > OPERATIONS_MAX {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        );
        return Err(ApiError::new(413, "RequestEntityTooLarge", message));
    }
    // An operation that is null has no members.
    let operations = operations.into_iter().map(Option::unwrap_or_default);
    Ok(operations.map(Operation).collect())
}

/// Checks that `patch` is an array of objects. If `validates` is true, also checks that `op`, `path` and
/// `from` are strings.
///
/// Null is accepted instead of the array, an object or a string.
fn check_types(patch: &Value, validates: bool) -> Result<(), String> {
    let wrong = |value: &Value, wanted: &str| {
        format!(
            "json: cannot unmarshal {} into Go {wanted}",
            json_type(value)
        )
    };
    let (list, item) = if validates {
        ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
    } else {
        ("jsonpatch.Patch", "jsonpatch.Operation")
    };
    let operations = match patch {
        Value::Null => return Ok(()),
        Value::Array(operations) => operations,
        other => return Err(wrong(other, &format!("value of type {list}"))),
    };
    for operation in operations {
        let members = match operation {
            Value::Null => continue,
            Value::Object(members) => members,
            other => return Err(wrong(other, &format!("value of type {item}"))),
        };
        let texts = ["op", "path", "from"].into_iter().filter(|_| validates);
        for member in texts {
            match members.get(member) {
                None | Some(Value::Null | Value::String(_)) => {}
                Some(other) => {
                    let wanted = format!("struct field jsonPatchOp.{member} of type string");
                    return Err(wrong(other, &wanted));
                }
            }
        }
    }
    Ok(())
}

impl Operation {
    /// Returns a string member, or `None` if the member is missing or has another type.
    pub(super) fn text(&self, member: &str) -> Option<String> {
        let raw = self.0.get(member)?.as_deref()?;
        serde_json::from_str(raw.get()).ok()
    }

    /// Returns the text of the value, or `None` if the value is missing or null.
    pub(super) fn raw(&self) -> Option<&RawValue> {
        self.0.get("value")?.as_deref()
    }

    /// Returns the value. A missing value is null.
    pub(super) fn value(&self) -> Result<Value, Failure> {
        let Some(raw) = self.raw() else {
            return Ok(Value::Null);
        };
        serde_json::from_str(raw.get()).map_err(|_| Failure::Inapplicable)
    }
}
