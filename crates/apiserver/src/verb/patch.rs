//! Handles PATCH: applies a JSON patch, a merge patch or a strategic merge patch to the stored object.
//!
//! Guarantees:
//! - a strategic merge patch of a custom kind, whose list structure is unknown, is rejected with 415, as in
//!   Kubernetes;
//! - a patch applies to the current stored object. If the patch contains a `resourceVersion`, the object must
//!   have this revision;
//! - the number of operations, the copied bytes and the moved values of a JSON patch are limited, as
//!   described in [`json`];
//! - the depth and size of the patched object are limited.

mod json;
mod merge;
mod refusal;
mod strategic;

use std::sync::Arc;

use serde_json::{Map, Value};

use super::update::change;
use super::write::{How, Subject};
use crate::decode_error::DecodeError;
use crate::field_validation::{Complaints, Directive, Warnings};
use crate::go_json;
use crate::kinds::Kind;
use crate::metadata::merge_owners;
use crate::object::{Object, json_type};
use crate::quote::go_map;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::typed::{self, Decoded, Fault, Structure, ValueType};

use json::Operation;

/// Text in error messages: the media types of patches that the server accepts for custom kinds.
pub(super) const ACCEPTED_CUSTOM: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// The parsed body of a PATCH request, with one variant per type of patch.
pub(crate) enum PatchBody {
    Json(Vec<Operation>),
    Merge(Value),
    Strategic(Map<String, Value>),
    /// The error of a body that is not a valid patch. If the object does not exist, the response is a 404
    /// error instead.
    Undecodable(ApiError),
}

impl PatchBody {
    /// Parses the body of a PATCH request with the given media type.
    ///
    /// # Errors
    ///
    /// Returns a 415 error if the media type is no supported type of patch.
    pub(crate) fn parse(
        media_type: &str,
        body: &[u8],
        directive: Directive,
    ) -> Result<PatchBody, ApiError> {
        let parsed = match media_type {
            "application/json-patch+json" => json::parse(body, directive).map(PatchBody::Json),
            "application/merge-patch+json" => parse_merge(body, directive).map(PatchBody::Merge),
            "application/strategic-merge-patch+json" => {
                let patch = parse_map(body).map_err(ApiError::bad_request);
                patch.map(|patch| PatchBody::Strategic(patch.unwrap_or_default()))
            }
            _ => return Err(ApiError::unsupported_patch()),
        };
        Ok(parsed.unwrap_or_else(PatchBody::Undecodable))
    }

    /// Returns messages about duplicate members in the patch, which was parsed from `text`.
    ///
    /// For a JSON patch, also returns messages about unknown members of its operations.
    pub(crate) fn duplicates(&self, text: &[u8]) -> Complaints {
        let value_type = match self {
            PatchBody::Json(_) => ValueType::Operations,
            PatchBody::Merge(_) | PatchBody::Strategic(_) => ValueType::Anything,
            PatchBody::Undecodable(_) => return Complaints::default(),
        };
        let decoded = typed::read(text, value_type);
        let found = decoded.map_or_else(|_| Complaints::default(), |decoded| decoded.complaints);
        match self {
            PatchBody::Json(_) => found.of_json_patch(),
            _ => found,
        }
    }

    /// Returns the text that a field validation error reports as the invalid value.
    ///
    /// For a strategic merge patch, the text is the patch in Go's `%v` format. For other patches, the text is
    /// `patched`, the patched object as JSON.
    fn shown(&self, patched: &str) -> String {
        match self {
            PatchBody::Strategic(patch) => go_map(patch),
            _ => patched.to_owned(),
        }
    }

    /// Decodes a patched document.
    pub(super) fn decode(&self, patched: Value, value_type: ValueType) -> Decoded {
        match self {
            PatchBody::Strategic(_) => typed::convert(patched, value_type),
            _ => typed::decode(patched, value_type),
        }
    }

    /// Converts a decoded document to an object. `text` is the document before it was decoded.
    ///
    /// # Errors
    ///
    /// Returns a 422 error if the document is no object of the kind.
    pub(super) fn result(
        &self,
        kind: &Kind,
        text: &str,
        value: Value,
        fault: Option<Fault>,
    ) -> Result<Object, ApiError> {
        let fault = match (fault, self) {
            (Some(fault), PatchBody::Strategic(_)) if !kind.custom => {
                let shown = self.shown(text);
                return Err(ApiError::no_such_object(&shown, &fault.converted));
            }
            (fault, _) => fault.map(|fault| fault.message),
        };
        let object = Object::of(kind, value, fault);
        object.map_err(|error| undecodable(text, &error))
    }

    /// Applies the patch to a document. If the method returns an error, the document can be partly changed.
    ///
    /// A strategic merge patch requires a document of a built-in kind, whose type is `value_type`.
    pub(crate) fn apply(
        &self,
        value_type: ValueType,
        document: &mut Value,
    ) -> Result<(), ApiError> {
        match self {
            PatchBody::Merge(patch) => {
                apply_merge(document, patch);
                Ok(())
            }
            PatchBody::Strategic(patch) => apply_strategic(value_type, document, patch),
            PatchBody::Json(operations) => json::apply(operations, document),
            PatchBody::Undecodable(error) => Err(error.clone()),
        }
    }
}

/// Parameters for the report of unknown and duplicate fields in a client's patch.
pub(crate) struct Rigour<'a> {
    pub(crate) duplicates: Complaints,
    pub(crate) directive: Directive,
    pub(crate) warnings: &'a Warnings,
}

/// Applies a patch to one object, and stores the result.
///
/// If `rigour` is set, unknown fields are removed from the patched object. Unknown and duplicate fields are
/// reported as `fieldValidation` requires. If `rigour` is `None`, unknown fields are stored.
pub(crate) fn patch(
    shared: &Shared,
    subject: Subject<'_>,
    patch: &PatchBody,
    how: How<'_>,
    rigour: Option<&Rigour<'_>>,
) -> Result<Arc<Entry>, ApiError> {
    let resource = subject.resource;
    change(shared, subject, how, |stored| {
        let mut document = stored.clone().into_value();
        patch.apply(resource.value_type(), &mut document)?;
        let text = document.to_string();
        let refused = |error: ApiError| {
            let shown = patch.shown(&text);
            ApiError::no_such_object(&shown, &error.to_string())
        };
        let Decoded {
            value,
            mut complaints,
            fault,
        } = match rigour {
            Some(rigour) => rigour.decode(patch, subject, stored, document),
            None => resource.decode_direct(document),
        };
        if let Some(rigour) = rigour
            && fault.is_none()
            && resource.model.is_none()
        {
            let judged = rigour.judge(&std::mem::take(&mut complaints));
            judged.map_err(refused)?;
        }
        let mut patched = patch.result(&resource.kind, &text, value, fault)?;
        let unknown = resource.decode(&mut patched);
        complaints.add_unknown(&unknown.map_err(|error| undecodable(&text, &error))?);
        if let Some(rigour) = rigour {
            rigour.judge(&complaints).map_err(refused)?;
            let when = " after mutating admission happens";
            merge_owners(&mut patched, when, rigour.warnings);
        }
        Ok(patched)
    })
}

// === impl Rigour ===

impl Rigour<'_> {
    /// Decodes the patched object, with complaints about the unknown and duplicate fields of the patch too.
    fn decode(
        &self,
        patch: &PatchBody,
        subject: Subject<'_>,
        stored: &Object,
        patched: Value,
    ) -> Decoded {
        let value_type = subject.resource.value_type();
        let decoded = patch.decode(patched, value_type);
        let old = if decoded.complaints.is_empty() {
            Complaints::default()
        } else {
            typed::decode(stored.clone().into_value(), value_type).complaints
        };
        let complaints = self.duplicates.clone().and_new(decoded.complaints, &old);
        Decoded {
            complaints,
            ..decoded
        }
    }

    /// Reports complaints as `fieldValidation` requires.
    fn judge(&self, complaints: &Complaints) -> Result<(), ApiError> {
        self.directive.judge(complaints, self.warnings)
    }
}

fn undecodable(text: &str, error: &DecodeError) -> ApiError {
    ApiError::no_such_object(text, &error.why())
}

/// Applies a strategic merge patch to a document, or returns a 415 error if the document is not of a built-in kind.
fn apply_strategic(
    value_type: ValueType,
    document: &mut Value,
    patch: &Map<String, Value>,
) -> Result<(), ApiError> {
    let is_described = matches!(value_type.structure(), Structure::Struct(_));
    let Some(members) = document.as_object_mut().filter(|_| is_described) else {
        return Err(ApiError::unsupported_body(ACCEPTED_CUSTOM));
    };
    let mut patch = patch.clone();
    // Kubernetes decodes the result into the type of the stored object.
    for member in ["apiVersion", "kind"] {
        patch.remove(member);
    }
    strategic::merge_map(members, patch, value_type)?;
    Ok(())
}

fn apply_merge(document: &mut Value, patch: &Value) {
    if let (Value::Object(members), Value::Object(patch)) = (&mut *document, patch) {
        merge::merge(members, patch);
        return;
    }
    *document = patch.clone();
    merge::prune(document);
}

/// Parses a merge patch, which must be an object.
///
/// With `fieldValidation=Ignore`, the patch can also be a list. A list replaces the stored object.
fn parse_merge(body: &[u8], directive: Directive) -> Result<Value, ApiError> {
    let no_patch = || ApiError::bad_request("Invalid JSON Patch");
    if directive == Directive::Ignore {
        let patch = serde_json::from_slice(body).map_err(|_| no_patch())?;
        return match patch {
            Value::Object(_) | Value::Array(_) => Ok(patch),
            _ => Err(no_patch()),
        };
    }
    let patch = parse_map(body).map_err(|why| decoding(&why))?;
    let patch = patch.ok_or_else(no_patch)?;
    Ok(Value::Object(patch))
}

/// Parses a patch that must be an object or null, or returns Go's error message.
fn parse_map(body: &[u8]) -> Result<Option<Map<String, Value>>, String> {
    match parse_json(body)? {
        Value::Null => Ok(None),
        Value::Object(patch) => Ok(Some(patch)),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(&other)
        )),
    }
}

/// Parses a JSON text, or returns Go's error message.
fn parse_json(body: &[u8]) -> Result<Value, String> {
    let parsed = serde_json::from_slice(body);
    parsed.map_err(|error| go_json::syntax_error(body).unwrap_or_else(|| error.to_string()))
}

fn decoding(cause: &str) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {cause}"))
}
