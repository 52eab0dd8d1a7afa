//! Defines the errors of strategic merge patches, with Kubernetes' messages and status codes.
//!
//! Guarantees:
//! - an error for which Kubernetes' `interpretStrategicMergePatchError` has a status becomes a response with
//!   this status (400 or 422);
//! - any other error becomes a 500 response without a reason, as in Kubernetes.

use serde_json::{Map, Value};

use crate::quote::{go_map, go_text};
use crate::status::ApiError;

/// The reason why a strategic merge patch is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A directive, such as `retainKeys`, has invalid content. The string is the directive's name in the
    /// message.
    Format(&'static str),
    ListOfLists,
    Other(String),
}

impl Refusal {
    pub(super) fn no_merge_key(item: &Map<String, Value>, key: &str) -> Refusal {
        let item = go_map(item);
        Refusal::Other(format!(
            "map: {item} does not contain declared merge key: {key}"
        ))
    }

    pub(super) fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> Refusal {
        let patch = go_map(patch);
        let directive = match directive {
            Value::String(text) => text.clone(),
            other => format!("%!s({}={})", go_type(other), go_text(other)),
        };
        Refusal::Other(format!("unknown patch type: {directive} in map: {patch}"))
    }

    pub(super) fn expected(what: &Value, found: &Value) -> Refusal {
        let found = match found {
            Value::Null => "%!s(<nil>)",
            found => go_type(found),
        };
        Refusal::Other(format!(
            "expected a {}, but received a {found}",
            go_type(what)
        ))
    }

    pub(super) fn other(why: impl Into<String>) -> Refusal {
        Refusal::Other(why.into())
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> ApiError {
        match refusal {
            Refusal::Format(directive) => {
                ApiError::bad_request(format!("invalid patch format of {directive}"))
            }
            Refusal::ListOfLists => {
                let message = "the server rejected our request due to an error in our request";
                ApiError::new(422, "Invalid", message)
            }
            Refusal::Other(why) => ApiError::unexplained(&why),
        }
    }
}

/// Returns the name of the Go type into which Go decodes a JSON value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Returns whether Go decodes two JSON values into the same type.
pub(super) fn same_type(left: &Value, right: &Value) -> bool {
    go_type(left) == go_type(right)
}
