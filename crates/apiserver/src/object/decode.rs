//! Checks that a JSON value has the kind and version of a kind, with the messages of Kubernetes' decoder.

use kube_informer_protobuf::Messages;
use serde_json::{Map, Value};

use crate::decode_error::DecodeError;
use crate::kinds::Kind;
use crate::status::ApiError;

/// Part of Go's error message: the type into which Go decodes `apiVersion` and `kind`.
const TYPE_META: &str = r#"value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Returns Go's name of a value's JSON type, for error messages.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the members of a JSON object. Null has no members.
pub(super) fn members_of(kind: &Kind, value: Value) -> Result<Map<String, Value>, DecodeError> {
    match value {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        other => Err(unrecognized(kind, untyped(&other))),
    }
}

/// Returns Go's message about a JSON value that is neither an object nor null.
pub(crate) fn untyped(value: &Value) -> String {
    no_type_meta(value, TYPE_META)
}

fn no_type_meta(value: &Value, target: &str) -> String {
    let found = json_type(value);
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go {target}"
    )
}

fn unrecognized(kind: &Kind, why: String) -> DecodeError {
    DecodeError::Unrecognized {
        expected: kind.kind.clone(),
        why,
    }
}

/// Checks that the `apiVersion` and `kind` of an object are absent, empty or equal to those of the expected
/// kind.
pub(super) fn check_type(kind: &Kind, members: &Map<String, Value>) -> Result<(), DecodeError> {
    let text = |member: &str| match members.get(member) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => {
            let target = format!("struct field .{member} of type string");
            Err(unrecognized(kind, no_type_meta(other, &target)))
        }
    };
    let (sent, sent_kind) = (text("apiVersion")?, text("kind")?);
    if sent.matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {sent}");
        return Err(unrecognized(kind, why));
    }
    let expected = kind.api_version();
    let sent = match sent {
        "" | "/" => expected.as_str(),
        sent => sent,
    };
    let sent_kind = match sent_kind {
        "" => kind.kind.as_str(),
        sent_kind => sent_kind,
    };
    if (sent, sent_kind) == (expected.as_str(), kind.kind.as_str()) {
        return Ok(());
    }
    let (group, version) = sent.split_once('/').unwrap_or(("", sent));
    let registers = |kind: &str| Messages::v1_36().of_kind(sent, kind).is_some();
    let is_registered =
        registers(sent_kind) || sent_kind.strip_suffix("List").is_some_and(registers);
    if is_registered && (group, sent_kind) == (kind.group.as_str(), kind.kind.as_str()) {
        return Err(DecodeError::Rejected(ApiError::bad_request(format!(
            "the API version in the data ({sent}) does not match the expected API version ({expected})"
        ))));
    }
    let converts = is_registered || (kind.custom && sent == expected);
    Err(DecodeError::Unfit {
        kind: sent_kind.to_owned(),
        version: version.to_owned(),
        expected: kind.kind.clone(),
        why: if converts {
            format!(
                "converting ({version}.{sent_kind}) to ({}.{}): unknown conversion",
                kind.internal_package(),
                kind.kind
            )
        } else {
            format!(
                "no kind {sent_kind:?} is registered for version {sent:?} in scheme \"pkg/runtime/scheme.go:111\""
            )
        },
    })
}

/// Returns the error about a value of a wrong type in an object of the expected kind. `why` is Go's message.
pub(super) fn unfit(kind: &Kind, why: String) -> DecodeError {
    DecodeError::Unfit {
        kind: kind.kind.clone(),
        version: kind.version.clone(),
        expected: kind.kind.clone(),
        why,
    }
}
