//! Checks that a JSON value has the type of a kind, with the messages of Kubernetes' decoder.
//!
//! Guarantees: a value of a wrong kind or version is rejected, and so is a member of `metadata` with a wrong
//! JSON type. Members outside `metadata` are not checked.

use std::collections::BTreeMap;

use kube_informer_protobuf::Messages;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::decode_error::DecodeError;
use crate::kinds::Kind;
use crate::status::ApiError;

/// The members of `metadata` whose values must be strings, and their types in Go.
const TEXTS: [(&str, &str); 8] = [
    ("creationTimestamp", "string"),
    ("deletionTimestamp", "string"),
    ("generateName", "string"),
    ("name", "string"),
    ("namespace", "string"),
    ("resourceVersion", "string"),
    ("selfLink", "string"),
    ("uid", "types.UID"),
];

/// The members of an owner reference, and their types in Go.
const OWNER: [(&str, &str); 6] = [
    ("apiVersion", "string"),
    ("blockOwnerDeletion", "bool"),
    ("controller", "bool"),
    ("kind", "string"),
    ("name", "string"),
    ("uid", "types.UID"),
];

/// Part of Go's error message: the type into which Go decodes `apiVersion` and `kind`.
const TYPE_META: &str = r#"value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// An error about a value with a wrong type: Go's text for the value, the field, and the expected Go type.
type Wrong = (String, String, &'static str);

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

/// Checks the JSON types in `metadata`.
///
/// `body` is used only for error messages: if it is JSON, a message spells a number as in `body`, such as
/// `1e3`.
pub(super) fn check_metadata(
    kind: &Kind,
    metadata: &Value,
    body: &[u8],
) -> Result<(), DecodeError> {
    let why = if kind.custom {
        // Kubernetes decodes the metadata of a custom object on its own.
        own_metadata_fault(metadata)
    } else {
        metadata_fault(&kind.kind, metadata, body)
    };
    why.map_or(Ok(()), |why| {
        Err(DecodeError::Unfit {
            kind: kind.kind.clone(),
            version: kind.version.clone(),
            expected: kind.kind.clone(),
            why,
        })
    })
}

/// Returns Go's message about the first wrong JSON type in metadata that is decoded without its object.
pub(crate) fn own_metadata_fault(metadata: &Value) -> Option<String> {
    match metadata {
        Value::Null => None,
        Value::Object(_) => {
            let why = metadata_fault("", metadata, &[])?;
            Some(why.replacen(".metadata.", ".", 1))
        }
        other => Some(format!(
            "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
            json_type(other)
        )),
    }
}

/// Returns Go's message about the first wrong JSON type in the `metadata` of an object.
///
/// `body` is used as by [`check_metadata`].
fn metadata_fault(kind: &str, metadata: &Value, body: &[u8]) -> Option<String> {
    let wrong = match metadata {
        Value::Object(members) => wrong_map(members)
            .or_else(|| wrong_integer(members, body))
            .or_else(|| wrong_list(members))
            .or_else(|| wrong_text(members)),
        other => Some((
            json_type(other).to_owned(),
            format!("{kind}.metadata"),
            "v1.ObjectMeta",
        )),
    };
    let (value, field, expected) = wrong?;
    Some(format!(
        "json: cannot unmarshal {value} into Go struct field {field} of type {expected}"
    ))
}

fn wrong(value: &Value, member: &str, expected: &'static str) -> Wrong {
    let field = format!("ObjectMeta.metadata.{member}");
    (json_type(value).to_owned(), field, expected)
}

fn set<'a>(metadata: &'a Map<String, Value>, member: &str) -> Option<&'a Value> {
    metadata.get(member).filter(|value| !value.is_null())
}

fn wrong_map(metadata: &Map<String, Value>) -> Option<Wrong> {
    ["annotations", "labels"].into_iter().find_map(|member| {
        let value = set(metadata, member)?;
        let Value::Object(map) = value else {
            return Some(wrong(value, member, "map[string]string"));
        };
        let mut values = map.values();
        let value = values.find(|value| !value.is_string())?;
        Some(wrong(value, member, "string"))
    })
}

fn wrong_integer(metadata: &Map<String, Value>, body: &[u8]) -> Option<Wrong> {
    let members = ["deletionGracePeriodSeconds", "generation"];
    members.into_iter().find_map(|member| {
        let value = set(metadata, member).filter(|value| value.as_i64().is_none())?;
        let (mut shown, field, expected) = wrong(value, member, "int64");
        if let Value::Number(number) = value {
            let sent = sent_number(body, member).unwrap_or_else(|| number.to_string());
            shown = format!("number {sent}");
        }
        Some((shown, field, expected))
    })
}

fn wrong_list(metadata: &Map<String, Value>) -> Option<Wrong> {
    if let Some(value) = set(metadata, "finalizers") {
        let Value::Array(items) = value else {
            return Some(wrong(value, "finalizers", "[]string"));
        };
        if let Some(item) = items.iter().find(|item| !item.is_string()) {
            return Some(wrong(item, "finalizers", "string"));
        }
    }
    let value = set(metadata, "ownerReferences")?;
    let Value::Array(owners) = value else {
        return Some(wrong(value, "ownerReferences", "[]v1.OwnerReference"));
    };
    owners.iter().find_map(|owner| {
        if !owner.is_object() {
            return Some(wrong(owner, "ownerReferences", "v1.OwnerReference"));
        }
        OWNER.into_iter().find_map(|(member, expected)| {
            let value = owner.get(member).filter(|value| !value.is_null())?;
            let fits = match expected {
                "bool" => value.is_boolean(),
                _ => value.is_string(),
            };
            let field = format!("OwnerReference.metadata.ownerReferences.{member}");
            (!fits).then(|| (json_type(value).to_owned(), field, expected))
        })
    })
}

fn wrong_text(metadata: &Map<String, Value>) -> Option<Wrong> {
    TEXTS.into_iter().find_map(|(member, expected)| {
        let value = set(metadata, member).filter(|value| !value.is_string())?;
        Some(wrong(value, member, expected))
    })
}

/// Returns the number `metadata.<member>` of the JSON `body`, spelled as in the body.
fn sent_number(body: &[u8], member: &str) -> Option<String> {
    let body: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
    let metadata = body.get("metadata")?.get();
    let metadata: BTreeMap<String, &RawValue> = serde_json::from_str(metadata).ok()?;
    Some(metadata.get(member)?.get().to_owned())
}
