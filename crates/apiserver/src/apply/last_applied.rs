//! Takes objects over from client-side apply, whose last configuration is in an annotation.

use serde_json::{Map as Members, Value, json};

use super::compare::compare;
use super::field_set::fields_of;
use super::planted::{self, Bug};
use super::set::Set;
use super::updater::Versions;
use super::validate::{Duplicates, validate};
use crate::go_json::to_text;

/// Name of the annotation of client-side apply.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Maximum total length in bytes of the names and values of annotations.
const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// The only manager for which the annotation has an effect.
pub(super) const KUBECTL: &str = "kubectl";

/// Returns the fields that the last client-side apply has set, and that have not changed since.
///
/// Returns `None` if the object has no annotation, or one that does not fit the object.
pub(super) fn unchanged_fields(
    live: &Value,
    versions: &dyn Versions,
    api_version: &str,
) -> Option<Set> {
    if planted::has(Bug::LastApplied) {
        return None;
    }
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    let is_of_kind = last.get("kind").is_some() && last.get("kind") == live.get("kind");
    if !is_of_kind || last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    let of_type = versions.type_of(api_version)?;
    validate(live, of_type, Duplicates::Rejected).ok()?;
    validate(&last, of_type, Duplicates::Rejected).ok()?;
    let compared = compare(&last, live, of_type).ok()?;
    let mut fields = fields_of(&last, of_type);
    fields.subtract(&compared.modified);
    fields.subtract(&compared.added);
    fields.subtract(&compared.removed);
    Some(fields)
}

/// Sets the annotation of an object to an applied configuration, if the object has the annotation.
pub(super) fn update(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = annotations_mut(&mut applied) {
        annotations.remove(ANNOTATION);
    }
    // Go's encoder ends a text with a line feed.
    let text = format!("{}\n", to_text(&applied));
    if let Some(annotations) = annotations_mut(object) {
        annotations.insert(ANNOTATION.to_owned(), json!(text));
        let length =
            |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
        if annotations.iter().map(length).sum::<usize>() > ANNOTATIONS_BYTES_MAX {
            annotations.remove(ANNOTATION);
        }
    }
}

/// Returns the annotation of an object if it is not empty.
fn annotation(object: &Value) -> Option<&str> {
    let annotation = object
        .get("metadata")?
        .get("annotations")?
        .get(ANNOTATION)?;
    annotation.as_str().filter(|text| !text.is_empty())
}

fn annotations_mut(object: &mut Value) -> Option<&mut Members<String, Value>> {
    let metadata = object.get_mut("metadata")?;
    metadata.get_mut("annotations")?.as_object_mut()
}
