//! Defines the strategy of `CustomResourceDefinition`s: sets defaults, and validates definitions.
//!
//! Guarantees:
//! - the errors and their order are those of Kubernetes, except for what is listed below, and that the errors of
//!   rules are reported only if a definition has no others;
//! - a member of a wrong JSON type counts as absent. Kubernetes rejects such a definition before the validation;
//! - recursion is as deep as a definition's JSON, at most 127 levels;
//! - the limits in `report` and `shown` bound the errors of one definition.
//!
//! The server sends no warnings about unknown formats.
//!
//! The `verb::definition` module accepts the names of definitions, and deletes the objects of deleted ones. This
//! module does not.

mod member;
mod shown;
mod schema;
mod url;
mod form;
mod names;
mod approval;
mod convert;
mod structure;
mod nested;
mod structural;
mod field_path;
mod expressions;
mod requirement;
mod lists;
mod openapi;
mod columns;
mod selectable;
mod ca_bundle;
mod conversion;
mod version;
mod compiled;
mod ratchet;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::report::{Path, Report};
use super::{Hooks, Part};
use crate::object::Object;
use crate::quote::Quoted;
use crate::schema::Schema;
use crate::status::FieldError;

use form::Spec;

use requirement::{Requirement, Requirements};

pub(crate) use approval::set_approval;

pub(super) use ca_bundle::key_pair_fault;

pub(super) const HOOKS: Hooks = Hooks {
    decode: complete,
    prepare_status,
    validate,
    prepare_update: keep,
    validate_update: check_change,
    warn: Some(warn),
    ..Hooks::NONE
};

/// Default port of the service of a conversion webhook.
const SERVICE_PORT: u16 = 443;

/// Sets the defaults of `SetDefaults_CustomResourceDefinitionSpec` in Kubernetes.
pub(crate) fn complete(definition: &mut Object) {
    let mut spec = definition.part("spec");
    let kind = spec["names"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let is_empty = |value: &Value| value.is_null() || *value == "";
    if spec["names"].is_object() {
        if is_empty(&spec["names"]["singular"]) && !kind.is_empty() {
            spec["names"]["singular"] = json!(names::lower(&kind));
        }
        if is_empty(&spec["names"]["listKind"]) && !kind.is_empty() {
            spec["names"]["listKind"] = json!(format!("{kind}List"));
        }
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let service = spec.pointer_mut("/conversion/webhook/clientConfig/service");
    if let Some(service) =
        service.filter(|service| service.is_object() && service["port"].is_null())
    {
        service["port"] = json!(SERVICE_PORT);
    }
    definition.set("spec", Some(spec));
}

/// Sets `status.storedVersions` of a new definition to its storage version.
pub(crate) fn prepare_status(status: &mut Value, definition: &Object, _now: &str) {
    let stored = storage_version(definition);
    status["storedVersions"] = stored.map_or(Value::Null, |version| json!([version]));
}

/// Adds the storage version to the versions in which objects are stored.
fn keep(new: &mut Object, _old: &Object, part: Part) {
    if !matches!(part, Part::Main | Part::All) {
        return;
    }
    let Some(version) = storage_version(new).map(str::to_owned) else {
        return;
    };
    let mut status = new.part("status");
    let mut stored = status["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if !stored.iter().any(|known| *known == *version) {
        stored.push(json!(version));
        status["storedVersions"] = json!(stored);
        new.set("status", Some(status));
    }
}

/// Warns about a conversion webhook, if objects can be in several versions.
fn warn(definition: &Object, _old: Option<&Object>, texts: &mut Vec<String>) {
    let spec = definition.get("spec");
    let calls = spec.is_some_and(|spec| spec["conversion"]["strategy"] == "Webhook");
    if calls && versions(definition).len() > 1 {
        let text = "spec.conversion.strategy: the embedded server calls no webhook; a request fails if it has to convert an object to another version";
        texts.push(text.to_owned());
    }
}

fn versions(definition: &Object) -> &[Value] {
    let spec = definition.get("spec");
    let versions = spec.and_then(|spec| spec["versions"].as_array());
    versions.map_or(&[], Vec::as_slice)
}

fn storage_version(definition: &Object) -> Option<&str> {
    let mut stored = versions(definition).iter();
    let stored = stored.find(|version| version["storage"] == true)?;
    Some(stored["name"].as_str().unwrap_or_default())
}

fn validate(definition: &Object) -> Vec<FieldError> {
    let mut report = Report::default();
    let spec = Spec::of(definition);
    let metadata = Path::root("metadata");
    let plural = spec.value["names"]["plural"].as_str().unwrap_or_default();
    let name = definition.text("name");
    if !name.is_empty() && name != format!("{plural}.{}", spec.text("group")) {
        let why = "must be spec.names.plural+\".\"+spec.group";
        report.invalid(&metadata.child("name"), Quoted(name), why);
    }
    let requirements = Requirements::of_create();
    version::check_spec(&spec, &requirements, &Path::root("spec"), &mut report);
    check_forms(&spec, &mut report);
    compiled::check(&spec, &BTreeSet::new(), &mut report);
    check_status(definition, &mut report);
    check_stored(definition, &spec, &mut report);
    approval::check(definition, None, &mut report);
    check_preserved(&spec, &mut report);
    report.into_errors()
}

fn check_change(old: &Object, new: &Object, part: Part) -> Vec<FieldError> {
    let mut report = Report::default();
    if matches!(part, Part::Status) {
        check_status(new, &mut report);
        return report.into_errors();
    }
    let (before, after) = (Spec::of(old), Spec::of(new));
    let requirements = ratchet::requirements(old, &before, &after);
    let path = Path::root("spec");
    version::check_spec(&after, &requirements, &path, &mut report);
    let of_kind = requirements.include(Requirement::Immutable);
    names::check_immutable(&before, &after, of_kind, &path, &mut report);
    check_forms(&after, &mut report);
    // Unchanged rules met the limit of the whole schema when they were stored, so they are not compiled again.
    if before.value["versions"] != after.value["versions"] {
        let unchanged = compiled::unchanged(&before, &after);
        compiled::check(&after, &unchanged, &mut report);
    }
    check_status(new, &mut report);
    check_stored(new, &after, &mut report);
    approval::check(new, Some(old), &mut report);
    if !before.preserves_unknown_fields() {
        check_preserved(&after, &mut report);
    }
    report.into_errors()
}

/// Checks that the schemas have the JSON types that the server can read.
///
/// kube-apiserver rejects such a definition with a 400 when it decodes the request. Adds nothing to other errors,
/// because a schema with such an error may have another form.
fn check_forms(spec: &Spec<'_>, report: &mut Report) {
    if report.found() > 0 {
        return;
    }
    let spec_path = Path::root("spec");
    let path = spec_path.child("versions");
    let versions = spec.value["versions"].as_array().into_iter().flatten();
    for (at, version) in versions.enumerate() {
        let schema = &version["schema"]["openAPIV3Schema"];
        if let Some(Err(why)) = schema.is_object().then(|| Schema::read(schema)) {
            let field = path.index(at);
            let (schema, openapi) = (field.child("schema"), "openAPIV3Schema");
            report.invalid(&schema.child(openapi), "object", why);
        }
    }
}

/// Checks the names in the status of a definition.
fn check_status(definition: &Object, report: &mut Report) {
    if let Some(status) = definition.get("status") {
        let path = Path::root("status");
        names::check(
            &status["acceptedNames"],
            &path.child("acceptedNames"),
            report,
        );
    }
}

fn check_stored(definition: &Object, spec: &Spec<'_>, report: &mut Report) {
    let path = Path::root("status");
    let status = definition.get("status");
    let stored = status.and_then(|status| status.get("storedVersions"));
    version::check_stored(spec, stored, &path.child("storedVersions"), report);
}

/// Checks that a definition does not start to keep unknown fields of its objects.
fn check_preserved(spec: &Spec<'_>, report: &mut Report) {
    if spec.preserves_unknown_fields() {
        let path = Path::root("spec");
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        report.invalid(&path.child("preserveUnknownFields"), true, why);
    }
}

/// Returns a condition of a definition, such as `Established`, or `None` if there is none.
pub(crate) fn condition<'a>(definition: &'a Object, kind: &str) -> Option<&'a Value> {
    let conditions = definition.get("status")?["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Returns whether a condition of a definition, such as `Established`, is true.
pub(crate) fn is_true(definition: &Object, kind: &str) -> bool {
    condition(definition, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Sets a condition of a definition. The transition time changes only with the status.
pub(crate) fn set_condition(
    definition: &mut Object,
    kind: &str,
    (status, reason, message): (&str, &str, &str),
    now: &str,
) {
    let old = condition(definition, kind);
    let since = old.filter(|old| old["status"] == *status);
    let since = since.map_or_else(|| json!(now), |old| old["lastTransitionTime"].clone());
    let new = json!({
        "lastTransitionTime": since,
        "message": message,
        "reason": reason,
        "status": status,
        "type": kind,
    });
    let mut whole = definition.part("status");
    let mut conditions = whole["conditions"].as_array().cloned().unwrap_or_default();
    match conditions
        .iter_mut()
        .find(|condition| condition["type"] == kind)
    {
        Some(condition) => *condition = new,
        None => conditions.push(new),
    }
    whole["conditions"] = json!(conditions);
    definition.set("status", Some(whole));
}

#[cfg(test)]
mod tests;
