//! Parses the body of a request as JSON, independent of its format.
//!
//! Guarantees: built-in kinds are accepted as JSON and protobuf, custom kinds as JSON.
//! Any other media type results in a 415 that lists the accepted ones.

use http::HeaderMap;
use serde_json::Value;

use crate::field_validation::{self, Complaints, Known};
use crate::kinds::{Kind, Subresource};
use crate::negotiate::content_type;
use crate::protobuf::{self, Expected};
use crate::status::ApiError;

/// The media type that every endpoint accepts.
const JSON: &str = "application/json";

/// The media type that Go clients send for built-in kinds.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Parses a body and returns complaints about its fields.
///
/// `protobuf` is the expected message, or `None` where only JSON is accepted.
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

/// The protobuf message of a kind; `None` for a custom kind, whose fields the server does not know.
pub(crate) fn of_kind(kind: &Kind) -> Option<Expected<'_>> {
    (!kind.custom).then_some(Expected {
        group: &kind.group,
        version: &kind.version,
        kind: &kind.kind,
    })
}

/// The protobuf message of a subresource's body, such as `Scale`.
pub(crate) fn of_subresource(subresource: &Subresource) -> Expected<'_> {
    Expected {
        group: &subresource.group,
        version: &subresource.version,
        kind: &subresource.kind,
    }
}
