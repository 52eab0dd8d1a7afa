//! Decodes a request body, sent as JSON, YAML or protobuf, to a JSON value.
//!
//! Guarantees: built-in kinds are accepted as JSON, YAML and protobuf, custom kinds as JSON and YAML.
//! A body without a media type, or with the media type `*/*`, is parsed as JSON.
//! Any media type that the kind does not accept is rejected with a 415 that lists the accepted ones.

use http::HeaderMap;

use crate::go_json;
use crate::kinds::{Kind, Subresource};
use crate::negotiate::content_type;
use crate::protobuf::{self, Expected};
use crate::status::ApiError;
use crate::typed::{self, Decoded, ValueType};
use crate::yaml::{self, Unread};

const JSON: &str = "application/json";

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The reason why a request body can't be parsed.
pub(crate) enum Unreadable {
    /// The body is not JSON or not YAML.
    Syntax(String),
    Other(ApiError),
}

/// Decodes a request body into a value of the type `value_type`.
///
/// `protobuf` is the type of the object in a protobuf body; with `None`, such a body is rejected.
///
/// # Errors
///
/// Returns an error if the body can't be parsed or its media type is not accepted.
pub(crate) fn read(
    headers: &HeaderMap,
    body: &[u8],
    value_type: ValueType,
    protobuf: Option<Expected<'_>>,
) -> Result<Decoded, Unreadable> {
    match (content_type(headers).as_str(), protobuf) {
        ("" | JSON | "*/*", _) => read_json(body, value_type),
        (yaml::CONTENT_TYPE, _) => read_yaml(body, value_type),
        (PROTOBUF, Some(expected)) => {
            let value = protobuf::decode(body, expected).map_err(Unreadable::Other)?;
            Ok(typed::decode(value, value_type))
        }
        (_, Some(_)) => Err(Unreadable::Other(ApiError::unsupported_body(&format!(
            "{JSON}, {}, {PROTOBUF}",
            yaml::CONTENT_TYPE
        )))),
        (_, None) => Err(Unreadable::Other(ApiError::unsupported_body(&format!(
            "{JSON}, {}",
            yaml::CONTENT_TYPE
        )))),
    }
}

fn read_json(body: &[u8], value_type: ValueType) -> Result<Decoded, Unreadable> {
    let syntax = |why: String| {
        Unreadable::Syntax(format!(
            "couldn't get version/kind; json parse error: {why}"
        ))
    };
    let decoded = if go_json::is_too_deep(body) {
        None
    } else {
        typed::read(body, value_type).ok()
    };
    if let Some(decoded) = decoded {
        return Ok(decoded);
    }
    match go_json::syntax_error(body) {
        Some(why) => Err(syntax(why)),
        // Go accepts more texts in strings.
        None => typed::read(&go_json::repaired(body), value_type)
            .map_err(|error| syntax(error.to_string())),
    }
}

/// Converts YAML to JSON. Also returns a message about members that occur twice.
///
/// # Errors
///
/// Returns an error if the text is not YAML.
pub(crate) fn yaml_to_json(body: &[u8]) -> Result<(Vec<u8>, Option<String>), Unreadable> {
    let document = yaml::read(body).map_err(|error| match error {
        Unread::TooDeep => Unreadable::Other(ApiError::too_deep()),
        Unread::Malformed(why) => Unreadable::Syntax(why),
    })?;
    let mut json = Vec::new();
    go_json::append(&mut json, &document.value);
    Ok((json, document.repeated_keys))
}

/// Converts YAML to JSON and decodes the JSON, as kube-apiserver does.
fn read_yaml(body: &[u8], value_type: ValueType) -> Result<Decoded, Unreadable> {
    let (json, repeated_keys) = yaml_to_json(body)?;
    let mut decoded = read_json(&json, value_type)?;
    if let Some(why) = repeated_keys {
        decoded.complaints.add_first(why);
    }
    Ok(decoded)
}

/// Returns the object type of a kind's protobuf bodies.
///
/// Returns `None` for a custom kind, because custom kinds do not support protobuf.
pub(crate) fn of_kind(kind: &Kind) -> Option<Expected<'_>> {
    (!kind.custom).then_some(Expected {
        group: &kind.group,
        version: &kind.version,
        kind: &kind.kind,
    })
}

/// Returns the object type of a subresource's protobuf bodies, such as `Scale` for `scale`.
pub(crate) fn of_subresource(subresource: &Subresource) -> Expected<'_> {
    Expected {
        group: &subresource.group,
        version: &subresource.version,
        kind: &subresource.kind,
    }
}
