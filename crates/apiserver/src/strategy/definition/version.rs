//! Checks the `spec` of a definition and its versions.
//!
//! Guarantees: the errors and their order are those of `validateCustomResourceDefinitionSpec` in Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::conversion::{self, Conversion};
use super::convert::fault;
use super::form::{Parts, Spec, Version};
use super::member::Form;
use super::openapi::{self, Demands};
use super::requirement::{Requirement, Requirements};
use super::schema::Schema;
use super::shown::{JsonText, Shown};
use super::{columns, names, selectable};
use crate::quote::{Quoted, is_printable};
use crate::strategy::report::{Path, Report};

/// Maximum length of a deprecation warning in bytes.
const WARNING_MAX: usize = 256;

/// Adds the errors of a `spec`.
pub(super) fn check_spec(
    spec: &Spec<'_>,
    requirements: &Requirements<'_>,
    path: &Path<'_>,
    report: &mut Report,
) {
    names::check_group_and_scope(spec, path, report);
    check_presence(spec, requirements, path, report);
    let preserves = spec.preserves_unknown_fields();
    let mut is_structural = requirements.include(Requirement::Structural) || !preserves;
    if preserves && spec.schemas().any(has_default) {
        is_structural = true;
        let why = "must be false in order to use defaults in the schema";
        report.invalid(&path.child("preserveUnknownFields"), true, why);
    }
    is_structural = is_structural || spec.schemas().any(has_extension);
    let demands = |has_status| Demands {
        requirements,
        structural: is_structural,
        has_status,
    };
    let list = path.child("versions");
    let statuses = spec.status_of_versions();
    for (at, (version, has_status)) in spec.versions.iter().zip(statuses).enumerate() {
        let path = list.index(at);
        names::check_name(version.name(), &path.child("name"), report);
        check_warning(version, &path.child("deprecationWarning"), report);
        let owner = Owner::Version(version.name());
        check_parts(version.parts, owner, demands(has_status), &path, report);
    }
    check_version_list(spec, path, report);
    let names_path = path.child("names");
    names::check_required(&spec.value["names"], &names_path, report);
    names::check(&spec.value["names"], &names_path, report);
    let demands = demands(spec.has_any_status());
    check_parts(spec.common, Owner::Definition, demands, path, report);
    if let Some(conversion) = Conversion::of(spec.value) {
        let path = path.child("conversion");
        if conversion.strategy() != "None" && preserves {
            let why = "must be None if spec.preserveUnknownFields is true";
            let value = JsonText(conversion.strategy());
            report.invalid(&path.child("strategy"), value, why);
        }
        conversion::check(conversion, requirements, &path, report);
    }
}

/// Checks that the versions have schemas.
fn check_presence(
    spec: &Spec<'_>,
    requirements: &Requirements<'_>,
    path: &Path<'_>,
    report: &mut Report,
) {
    if spec.common.schema().is_some() {
        return;
    }
    let is_required = requirements.include(Requirement::Schema);
    let why = if is_required {
        ""
    } else {
        "because otherwise all fields are pruned"
    };
    let list = path.child("versions");
    for (at, version) in spec.versions.iter().enumerate() {
        let is_pruned = version.is("served") && !spec.preserves_unknown_fields();
        if version.parts.schema().is_none() && (is_required || is_pruned) {
            let (version, schema) = (list.index(at), "schema");
            let schema = version.child(schema);
            report.required(&schema.child("openAPIV3Schema"), why);
        }
    }
}

/// Checks the names of the versions, and that objects are stored in one of them.
fn check_version_list(spec: &Spec<'_>, path: &Path<'_>, report: &mut Report) {
    let list = path.child("versions");
    let names: BTreeSet<&str> = spec.versions.iter().map(Version::name).collect();
    if names.len() < spec.versions.len() {
        let why = "must contain unique version names";
        report.invalid(&list, spec.shown_versions(), why);
    }
    let stored = spec.versions.iter().filter(|version| version.is("storage"));
    if stored.count() != 1 {
        let why = "must have exactly one version marked as storage version";
        report.invalid(&list, spec.shown_versions(), why);
    }
    // In Kubernetes' internal form, the definition also has the name of the first version.
    let first = spec.versions.first().map_or("", Version::name);
    if !first.is_empty() {
        names::check_name(first, &path.child("version"), report);
    }
}

/// Follows `validateDeprecationWarning` in Kubernetes.
fn check_warning(version: &Version<'_>, path: &Path<'_>, report: &mut Report) {
    let Some(warning) = version.value["deprecationWarning"].as_str() else {
        return;
    };
    let value = || JsonText(warning);
    if !version.is("deprecated") {
        report.invalid(path, value(), "can only be set for deprecated versions");
        return;
    }
    if warning.len() > WARNING_MAX {
        let why = format!("must be <= {WARNING_MAX} characters long");
        report.invalid(path, value(), why);
    }
    if warning.is_empty() {
        report.invalid(path, value(), "must not be an empty string");
    }
    let mut letters = warning.char_indices();
    if let Some((at, _)) = letters.find(|(_, letter)| !is_printable(*letter)) {
        let why = format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        );
        report.invalid(path, value(), why);
    }
}

/// What a schema, subresources, columns and selectable fields belong to.
#[derive(Clone, Copy)]
enum Owner<'a> {
    Definition,
    /// The version of this name.
    Version(&'a str),
}

/// Checks the parts that can be common to all versions.
fn check_parts(
    parts: Parts<'_>,
    owner: Owner<'_>,
    demands: Demands<'_>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let schema = match owner {
        Owner::Definition => "validation",
        Owner::Version(_) => "schema",
    };
    openapi::check(parts, demands, &path.child(schema), report);
    let subresources = path.child("subresources");
    columns::check_subresources(parts.subresources, &subresources, report);
    let columns = path.child("additionalPrinterColumns");
    for (at, column) in parts.columns.iter().enumerate() {
        columns::check_column(column, &columns.index(at), report);
    }
    if !parts.selectable.is_empty() {
        check_selectable(parts, owner, demands.requirements, path, report);
    }
}

fn check_selectable(
    parts: Parts<'_>,
    owner: Owner<'_>,
    requirements: &Requirements<'_>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let fields = path.child("selectableFields");
    let (name, has_schema, why) = match owner {
        Owner::Definition => (
            "",
            parts.validation.is_some(),
            "may only be set when validations.schema is included",
        ),
        Owner::Version(name) => (
            name,
            parts.schema().is_some(),
            "may only be set when `version.schema.openAPIV3Schema` is not included",
        ),
    };
    if !has_schema {
        report.invalid(&fields, Quoted(""), why);
        return;
    }
    let fault = parts.schema().and_then(fault);
    if let Some(why) = fault {
        report.invalid(&path.child("schema.openAPIV3Schema"), Quoted(""), why);
    }
    let schema = parts.schema().filter(|_| fault.is_none());
    let limit = if requirements.may_crowd(name) {
        selectable::Limit::Lifted
    } else {
        selectable::Limit::Applies
    };
    selectable::check(parts.selectable, schema, limit, &fields, report);
}

fn has_default(schema: Schema<'_>) -> bool {
    schema.any(&mut |schema| schema.get("default").is_some())
}

/// Returns whether a schema has members that only a structural schema can have.
fn has_extension(schema: Schema<'_>) -> bool {
    schema.any(&mut |schema| {
        let lists = ["x-kubernetes-list-map-keys", "x-kubernetes-validations"];
        schema.flag("x-kubernetes-embedded-resource")
            || schema.flag("x-kubernetes-int-or-string")
            || schema
                .optional_flag("x-kubernetes-preserve-unknown-fields")
                .is_some()
            || schema.optional_text("x-kubernetes-list-type").is_some()
            || lists.iter().any(|list| !schema.list(list).is_empty())
    })
}

/// Follows `ValidateCustomResourceDefinitionStoredVersions` in Kubernetes.
pub(super) fn check_stored(
    spec: &Spec<'_>,
    stored: Option<&Value>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let names = stored.and_then(Value::as_array);
    let names = names.map_or(&[][..], Vec::as_slice);
    let shown = || Shown {
        value: stored,
        form: Form::Texts,
    };
    if names.is_empty() {
        report.invalid(path, shown(), "must have at least one stored version");
        return;
    }
    let names = names.iter().map(|name| name.as_str().unwrap_or_default());
    // As in Kubernetes, the last index of a repeated version counts.
    let mut left: BTreeMap<&str, usize> = names.zip(0..).collect();
    for version in &spec.versions {
        let is_stored = left.remove(version.name()).is_some();
        if version.is("storage") && !is_stored {
            let why = format!("must have the storage version {}", version.name());
            report.invalid(path, shown(), why);
        }
    }
    for (version, at) in left {
        let why = format!(
            "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
        );
        report.invalid(&path.index(at), Quoted(version), why);
    }
}
