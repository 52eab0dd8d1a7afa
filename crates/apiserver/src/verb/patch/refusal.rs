//! Defines the errors of strategic merge patches, with Kubernetes' messages and status codes.
//!
//! Guarantees:
//! - an error for which Kubernetes' `interpretStrategicMergePatchError` has a status becomes a response with
//!   this status (400 or 422);
//! - any other error becomes a 500 response without a reason, as in Kubernetes.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

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
        let item = GoMap(item);
        Refusal::Other(format!(
            "map: {item} does not contain declared merge key: {key}"
        ))
    }

    pub(super) fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> Refusal {
        let patch = GoMap(patch);
        let directive = match directive {
            Value::String(text) => text.clone(),
            other => format!("%!s({}={})", go_type(other), Go(other)),
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

/// Displays a JSON value as Go's `%v` formats it.
pub(super) struct Go<'a>(pub(super) &'a Value);

/// Displays a JSON object as Go's `%v` formats a map.
pub(super) struct GoMap<'a>(pub(super) &'a Map<String, Value>);

impl fmt::Display for Go<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::String(text) => f.write_str(text),
            Value::Bool(_) | Value::Number(_) => write!(f, "{}", self.0),
            Value::Array(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    let space = if at == 0 { "" } else { " " };
                    write!(f, "{space}{}", Go(item))?;
                }
                f.write_char(']')
            }
            Value::Object(members) => GoMap(members).fmt(f),
        }
    }
}

impl fmt::Display for GoMap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("map[")?;
        for (at, (name, value)) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{name}:{}", Go(value))?;
        }
        f.write_char(']')
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
