//! PATCH: a merge patch, a JSON patch or a strategic merge patch of the stored object.
//!
//! Guarantees:
//! - a strategic merge patch is for built-in kinds; custom ones, whose lists nobody describes, refuse it with 415, as Kubernetes does;
//! - a patch is applied to the object as it is stored in that moment; a revision inside the patch makes it conditional;
//! - what a patch can make the server do is bounded ([`json`]), and so is what it can make of an object: its depth and its bytes.

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

/// The media types a patch of a built-in kind may have.
const ACCEPTED: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json";

/// What Go decodes a JSON object into.
const GO_MAP: &str = "map[string]interface {}";

/// The media types a patch of a custom kind may have.
const ACCEPTED_CUSTOM: &str = "application/json-patch+json, application/merge-patch+json";

/// A patch, read but not applied.
pub(crate) enum PatchBody {
    Json(Vec<PatchOperation>),
    Merge(Value),
    Strategic(Map<String, Value>),
}

impl PatchBody {
    /// Reads a patch of the media type that the request names.
    pub(crate) fn parse(media_type: &str, body: &[u8]) -> Result<PatchBody, ApiError> {
        match media_type {
            "application/json-patch+json" => {
                let operations: Vec<PatchOperation> = read(body, "[]handlers.jsonPatchOp")?;
                json::check(&operations)?;
                Ok(PatchBody::Json(operations))
            }
            "application/merge-patch+json" => {
                // As for a strategic one.
                let patch: Option<Map<String, Value>> = read(body, GO_MAP)?;
                Ok(PatchBody::Merge(Value::Object(patch.unwrap_or_default())))
            }
            "application/strategic-merge-patch+json" => {
                // Go decodes a null into an empty map.
                let patch: Option<Map<String, Value>> = read(body, GO_MAP)?;
                Ok(PatchBody::Strategic(patch.unwrap_or_default()))
            }
            // Kubernetes takes these too.
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                Err(ApiError::unsupported_body(ACCEPTED))
            }
            _ => Err(ApiError::unsupported_patch()),
        }
    }

    /// What stands twice in the text of this patch, and what an operation does not have.
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

    /// What Kubernetes shows when the result of a patch is refused.
    fn shown(&self, patched: &str) -> String {
        match self {
            PatchBody::Strategic(patch) => refusal::GoMap(patch).to_string(),
            PatchBody::Json(_) | PatchBody::Merge(_) => patched.to_owned(),
        }
    }

    /// Changes a document, whose lists are merged as the definition says; on an error it is changed in part.
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

/// How a client's patch is held against the fields of its kind.
pub(crate) struct Rigour<'a> {
    /// What stands twice in the patch.
    pub(crate) duplicates: Complaints,
    pub(crate) directive: Directive,
    pub(crate) warnings: &'a Warnings,
}

/// Patches one object; without `rigour`, fields that its kind does not have are stored too.
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
            // What was patched is no object of the kind any more, which is the patch's fault.
            400 => ApiError::no_such_object(&text, &error),
            _ => error,
        })
    })
}

// === impl Rigour ===

impl Rigour<'_> {
    /// The patched object without what its kind does not have; what was stored with it is no fault of the patch.
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

/// Applies a strategic merge patch.
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

/// Reads a patch; `wanted` is the Go type that it is decoded into.
fn read<T: serde::de::DeserializeOwned>(body: &[u8], wanted: &str) -> Result<T, ApiError> {
    // Of members that stand twice the last counts, also where a type would refuse the second.
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
