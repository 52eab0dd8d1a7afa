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
mod refusal;
mod strategic;

use std::sync::Arc;

use json_patch::PatchOperation;
use serde_json::{Map, Value};

use super::update::change;
use super::write::{How, Subject};
use crate::field_validation::{self, Complaints, Directive, Known, Warnings};
use crate::kinds::schema::Definition;
use crate::object::Object;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;

/// Patch media types that the server accepts for built-in kinds, for error messages.
const ACCEPTED: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json";

/// Name of the Go type of a decoded JSON object, for error messages.
const GO_MAP: &str = "map[string]interface {}";

/// Patch media types that the server accepts for custom kinds, for error messages.
const ACCEPTED_CUSTOM: &str = "application/json-patch+json, application/merge-patch+json";

/// The parsed body of a PATCH request, with one variant per type of patch.
pub(crate) enum PatchBody {
    Json(Vec<PatchOperation>),
    Merge(Value),
    Strategic(Map<String, Value>),
}

impl PatchBody {
    /// Parses the body of a PATCH request with the given media type.
    pub(crate) fn parse(media_type: &str, body: &[u8]) -> Result<PatchBody, ApiError> {
        match media_type {
            "application/json-patch+json" => {
                let operations: Vec<PatchOperation> = read(body, "[]handlers.jsonPatchOp")?;
                json::check(&operations)?;
                Ok(PatchBody::Json(operations))
            }
            "application/merge-patch+json" => {
                // Go decodes a null into an empty map.
                let patch: Option<Map<String, Value>> = read(body, GO_MAP)?;
                Ok(PatchBody::Merge(Value::Object(patch.unwrap_or_default())))
            }
            "application/strategic-merge-patch+json" => {
                // Go decodes a null into an empty map.
                let patch: Option<Map<String, Value>> = read(body, GO_MAP)?;
                Ok(PatchBody::Strategic(patch.unwrap_or_default()))
            }
            // Kubernetes accepts apply patches. This server does not.
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                Err(ApiError::unsupported_body(ACCEPTED))
            }
            _ => Err(ApiError::unsupported_patch()),
        }
    }

    /// Returns messages about duplicate members in the patch, which was parsed from `text`.
    ///
    /// For a JSON patch, also returns messages about unknown members of its operations.
    pub(crate) fn duplicates(&self, text: &[u8]) -> Complaints {
        let known = match self {
            PatchBody::Json(_) => Known::Operations,
            PatchBody::Merge(_) | PatchBody::Strategic(_) => Known::Anything,
        };
        let found = field_validation::read(text, known);
        let found = found.map(|(_, found)| found).unwrap_or_default();
        match self {
            PatchBody::Json(_) => found.about("json patch"),
            PatchBody::Merge(_) | PatchBody::Strategic(_) => found,
        }
    }

    /// Returns the text that a field validation error reports as the invalid value.
    ///
    /// For a strategic merge patch, the text is the patch in Go's `%v` format. For other patches, the text is
    /// `patched`, the patched object as JSON.
    fn shown(&self, patched: &str) -> String {
        match self {
            PatchBody::Strategic(patch) => refusal::GoMap(patch).to_string(),
            PatchBody::Json(_) | PatchBody::Merge(_) => patched.to_owned(),
        }
    }

    /// Applies the patch to a document, which can be partly changed after an error.
    ///
    /// A strategic merge patch requires the document's schema, which `definition` returns.
    pub(crate) fn apply(
        &self,
        definition: impl FnOnce() -> Option<&'static Definition>,
        document: &mut Value,
    ) -> Result<(), ApiError> {
        match self {
            PatchBody::Merge(patch) => {
                json_patch::merge(document, patch);
                Ok(())
            }
            PatchBody::Strategic(patch) => apply_strategic(definition(), document, patch),
            PatchBody::Json(operations) => json::apply(operations, document),
        }
    }
}

/// Parameters for the report of unknown and duplicate fields in a client's patch.
pub(crate) struct Rigour<'a> {
    /// Complaints about duplicate members in the patch.
    pub(crate) duplicates: Complaints,
    pub(crate) directive: Directive,
    pub(crate) warnings: &'a Warnings,
}

/// Applies a patch to one object, and stores the result.
///
/// If `rigour` is `None`, unknown fields are stored.
pub(crate) fn patch(
    shared: &Shared,
    subject: Subject<'_>,
    patch: &PatchBody,
    how: How,
    rigour: Option<&Rigour<'_>>,
) -> Result<Arc<Entry>, ApiError> {
    let resource = subject.resource;
    change(shared, subject, how, |stored| {
        let mut document = stored.clone().into_value();
        patch.apply(|| resource.definition(), &mut document)?;
        let text = document.to_string();
        if let Some(rigour) = rigour {
            document = rigour.judge(subject, stored, document).map_err(|error| {
                let shown = patch.shown(&text);
                ApiError::no_such_object(&shown, &error)
            })?;
        }
        Object::of(&resource.kind, document).map_err(|error| match error.code() {
            // The patched object is invalid because of the patch.
            400 => ApiError::no_such_object(&text, &error),
            _ => error,
        })
    })
}

// === impl Rigour ===

impl Rigour<'_> {
    /// Removes unknown fields, and reports unknown and duplicate fields as `fieldValidation` requires.
    fn judge(
        &self,
        subject: Subject<'_>,
        stored: &Object,
        patched: Value,
    ) -> Result<Value, ApiError> {
        let known = subject.resource.known();
        let (pruned, found) = field_validation::prune(patched, known);
        let old = if found.is_empty() {
            Complaints::default()
        } else {
            field_validation::prune(stored.clone().into_value(), known).1
        };
        let complaints = self.duplicates.clone().and_new(found, &old);
        self.directive.judge(complaints, self.warnings)?;
        Ok(pruned)
    }
}

/// Applies a strategic merge patch to a document, or returns a 415 error if `definition` is `None`.
fn apply_strategic(
    definition: Option<&'static Definition>,
    document: &mut Value,
    patch: &Map<String, Value>,
) -> Result<(), ApiError> {
    let (Some(definition), Some(members)) = (definition, document.as_object_mut()) else {
        return Err(ApiError::unsupported_body(ACCEPTED_CUSTOM));
    };
    strategic::merge_map(members, patch.clone(), strategic::Known::Struct(definition))?;
    Ok(())
}

fn decoding(cause: &str) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {cause}"))
}

/// Parses a patch as JSON; error messages contain `wanted`, the name of the expected Go type.
fn read<T: serde::de::DeserializeOwned>(body: &[u8], wanted: &str) -> Result<T, ApiError> {
    // The body is parsed into `Value` first, because the last of duplicate members wins and `T` may reject
    // duplicates.
    let value = serde_json::from_slice::<Value>(body).and_then(serde_json::from_value);
    value.map_err(|error| {
        let found = match body.trim_ascii_start().first() {
            _ if !error.is_data() => return decoding(&error.to_string()),
            Some(b'[') => "array",
            Some(b'{') => "object",
            Some(b'"') => "string",
            Some(b't' | b'f') => "bool",
            _ => "number",
        };
        let cause = format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        decoding(&cause)
    })
}
