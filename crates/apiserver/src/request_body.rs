//! The body of a request as JSON, whichever format it came in.
//!
//! Guarantees: built-in kinds are read from JSON and from protobuf, custom ones from JSON; anything else is 415 and says what there is.

use http::HeaderMap;
use serde_json::Value;

use crate::field_validation::{self, Complaints, Known};
use crate::kinds::{Kind, Subresource};
use crate::negotiate::content_type;
use crate::protobuf::{self, Expected};
use crate::status::ApiError;

/// What every endpoint takes.
const JSON: &str = "application/json";

/// What Go clients send where they can.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Reads a body of which something is `known`, and what is wrong with its fields; `protobuf` is what it must be there, and `None` where only JSON is taken.
pub(crate) fn read(
    headers: &HeaderMap,
    body: &[u8],
    known: Known,
    protobuf: Option<Expected<'_>>,
) -> Result<(Value, Complaints), ApiError> {
    match (content_type(headers).as_str(), protobuf) {
        ("" | JSON | "*/*", _) => field_validation::read(body, known).map_err(|error| {
            ApiError::bad_request(format!(
                "couldn't get version/kind; json parse error: {error}"
            ))
        }),
        (PROTOBUF, Some(expected)) => {
            let value = protobuf::decode(body, expected)?;
            Ok((value, Complaints::default()))
        }
        (_, Some(_)) => Err(ApiError::unsupported_body(&format!("{JSON}, {PROTOBUF}"))),
        (_, None) => Err(ApiError::unsupported_body(JSON)),
    }
}

/// What an object of a kind is in protobuf: nobody but its owner knows the fields of a custom one.
pub(crate) fn of_kind(kind: &Kind) -> Option<Expected<'_>> {
    (!kind.custom).then_some(Expected {
        group: &kind.group,
        version: &kind.version,
        kind: &kind.kind,
    })
}

/// The kind of a subresource's body in protobuf, such as `Scale`.
pub(crate) fn of_subresource(subresource: &Subresource) -> Expected<'_> {
    Expected {
        group: &subresource.group,
        version: &subresource.version,
        kind: &subresource.kind,
    }
}
