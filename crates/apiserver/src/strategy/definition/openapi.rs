//! Checks the schemas in a definition, structural or not.
//!
//! Guarantees: the errors and their order are those of `validateCustomResourceDefinitionValidation` and
//! `ValidateCustomResourceDefinitionOpenAPISchema` in Kubernetes. Where Kubernetes visits the entries of a map in
//! random order, this module visits them in the order of their names.
//!
//! The rules of `x-kubernetes-validations` are compiled by `compiled`, not here.

use super::convert::{fault, is_convertible_alone};
use super::form::Parts;
use super::member::{Form, SCHEMA};
use super::requirement::{Requirement, Requirements};
use super::schema::{Items, OrBool, Schema};
use super::shown::Shown;
use super::{expressions, lists, structural};
use crate::quote::Quoted;
use crate::schema::default_errors;
use crate::strategy::report::{Path, Report};

/// The types of OpenAPI.
pub(super) const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Go names of the members that the root of a schema may have if `status` is a subresource.
const ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// What applies to a whole schema.
#[derive(Clone, Copy)]
pub(super) struct Demands<'a> {
    pub(super) requirements: &'a Requirements<'a>,
    pub(super) structural: bool,
    /// Whether the objects have the subresource `status`.
    pub(super) has_status: bool,
}

/// What applies to one schema below the root.
#[derive(Clone, Copy)]
struct Place {
    is_root: bool,
    /// Whether the schema describes `apiVersion`, `kind` or `metadata` of an object, or a part of them.
    in_metadata: bool,
    /// Why the schema must not have a default, if it must not.
    no_default: Option<&'static str>,
}

/// Adds the errors of the schema in `parts`, if there is one.
pub(super) fn check(parts: Parts<'_>, demands: Demands<'_>, path: &Path<'_>, report: &mut Report) {
    let Some(schema) = parts.schema() else {
        return;
    };
    let before = report.found();
    if demands.has_status {
        check_root(schema, path, report);
    }
    let schema_path = path.child("openAPIV3Schema");
    if schema.flag("nullable") {
        let why = "nullable cannot be true at the root";
        report.forbidden(&schema_path.child("nullable"), why);
    }
    let fault = if demands.structural {
        fault(schema)
    } else {
        None
    };
    if demands.structural && fault.is_none() {
        let before = report.found();
        structural::check(schema, &schema_path, report);
        if report.found() == before {
            let is_pruned = demands.requirements.include(Requirement::PrunedDefaults);
            let path = schema_path.to_string();
            default_errors(schema.0, &path, is_pruned, &mut |error| {
                report.add_error(error);
                !report.is_full()
            });
        }
    }
    let place = Place {
        is_root: true,
        in_metadata: false,
        no_default: None,
    };
    check_schema(schema, place, demands.requirements, &schema_path, report);
    if let Some(why) = fault
        && report.found() == before
    {
        report.invalid(&schema_path, Quoted(""), why);
    }
}

/// Checks the members of the root, because a part of the schema is used alone for the subresource `status`.
fn check_root(schema: Schema<'_>, path: &Path<'_>, report: &mut Report) {
    for member in &SCHEMA {
        if member.form.is_zero(schema.get(member.json)) {
            continue;
        }
        if member.go == "Type" && schema.text("type") != "object" {
            let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            let value = Quoted(schema.text("type"));
            report.invalid(&path.child("openAPIV3Schema.type"), value, why);
            return;
        }
        if !ROOT.contains(&member.go) {
            let why = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ROOT.join(" ")
            );
            let value = Shown {
                value: Some(schema.0),
                form: Form::Object(&SCHEMA),
            };
            report.invalid(&path.child("openAPIV3Schema"), value, why);
            return;
        }
    }
}

/// Adds the errors of a schema and of the schemas below it.
///
/// Returns whether the schema can be converted to a structural schema.
fn check_schema(
    schema: Schema<'_>,
    place: Place,
    requirements: &Requirements<'_>,
    path: &Path<'_>,
    report: &mut Report,
) -> bool {
    check_members(schema, place, requirements, path, report);
    let below = check_below(schema, place, requirements, path, report);
    let is_convertible = below && is_convertible_alone(schema);
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema.optional_flag(preserve) == Some(false) {
        report.invalid(&path.child(preserve), false, "must be true or undefined");
    }
    lists::check(schema, requirements, path, report);
    expressions::check(schema, is_convertible, path, report);
    is_convertible
}

/// Checks the members of one schema. Follows `specStandardValidatorV3` in Kubernetes.
fn check_members(
    schema: Schema<'_>,
    place: Place,
    requirements: &Requirements<'_>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let kind = schema.text("type");
    let type_path = path.child("type");
    if requirements.include(Requirement::PropertyType) && !kind.is_empty() && !TYPES.contains(&kind)
    {
        report.unsupported(&type_path, Quoted(kind), &TYPES);
    }
    if let Some(reason) = place.no_default.filter(|_| schema.get("default").is_some()) {
        let why = format_args!("must not be set {reason}");
        report.forbidden(&path.child("default"), why);
    }
    for (member, is_set) in [
        ("id", !schema.text("id").is_empty()),
        (
            "additionalItems",
            schema.or_bool("additionalItems").is_some(),
        ),
        ("patternProperties", schema.has_entries("patternProperties")),
        ("definitions", schema.has_entries("definitions")),
        (
            "dependencies",
            schema
                .get("dependencies")
                .is_some_and(serde_json::Value::is_object),
        ),
        ("$ref", schema.optional_text("$ref").is_some()),
    ] {
        if is_set {
            let why = format_args!("{member} is not supported");
            report.forbidden(&path.child(member), why);
        }
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        report.forbidden(&type_path, why);
    }
    let mut items = schema.items().into_iter().flat_map(Items::schemas);
    if items.next().is_some() {
        let why = "items must be a schema object and not an array";
        report.forbidden(&path.child("items"), why);
    }
    let embedded = "x-kubernetes-embedded-resource";
    if place.in_metadata && schema.flag(embedded) {
        let why = "must not be used inside of resource meta";
        report.forbidden(&path.child(embedded), why);
    }
    if schema.flag("uniqueItems") {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        report.forbidden(&path.child("uniqueItems"), why);
    }
}

/// Adds the errors of the schemas below a schema. Returns whether all of them can be converted.
fn check_below(
    schema: Schema<'_>,
    place: Place,
    requirements: &Requirements<'_>,
    path: &Path<'_>,
    report: &mut Report,
) -> bool {
    let below = Place {
        is_root: false,
        ..place
    };
    let mut all = check_additional(schema, below, requirements, path, report);
    let mut check = |schema, place, path: &Path<'_>| {
        all &= check_schema(schema, place, requirements, path, report);
    };
    let properties = path.child("properties");
    for (name, property) in schema.map("properties") {
        let place = place.of_property(schema, name);
        check(property, place, &properties.key(name));
    }
    if let Some(not) = schema.schema("not") {
        check(not, below, &path.child("not"));
    }
    for member in ["allOf", "oneOf", "anyOf"] {
        let list = path.child(member);
        for (at, nested) in schema.schemas(member).enumerate() {
            check(nested, below, &list.index(at));
        }
    }
    let definitions = path.child("definitions");
    for (name, nested) in schema.map("definitions") {
        check(nested, below, &definitions.key(name));
    }
    if let Some(items) = schema.items() {
        let list = path.child("items");
        if let Some(item) = items.schema() {
            check(item, below, &list);
        }
        for (at, item) in items.schemas().enumerate() {
            check(item, below, &list.index(at));
        }
    }
    let dependencies = path.child("dependencies");
    for (name, nested) in schema.map("dependencies") {
        // A dependency can also be a list of properties.
        if nested.0.is_object() {
            check(nested, below, &dependencies.key(name));
        }
    }
    all
}

/// Adds the errors of `additionalProperties`. Returns whether its schema can be converted.
fn check_additional(
    schema: Schema<'_>,
    below: Place,
    requirements: &Requirements<'_>,
    path: &Path<'_>,
    report: &mut Report,
) -> bool {
    let Some(additional) = schema.or_bool("additionalProperties") else {
        return true;
    };
    let path = path.child("additionalProperties");
    if schema.has_entries("properties") && !matches!(additional, OrBool::Bool(true)) {
        let why = "additionalProperties and properties are mutual exclusive";
        report.forbidden(&path, why);
    }
    let mut place = below;
    if place.in_metadata {
        place.no_default = Some("inside additionalProperties applying to object metadata");
    }
    additional
        .schema()
        .is_none_or(|schema| check_schema(schema, place, requirements, &path, report))
}

impl Place {
    /// Returns what applies to the property `name` of `schema`, which is at this place.
    fn of_property(self, schema: Schema<'_>, name: &str) -> Place {
        let mut place = Place {
            is_root: false,
            ..self
        };
        let in_top_level = match name {
            "metadata" => "in top-level metadata",
            "kind" => "in top-level kind",
            "apiVersion" => "in top-level apiVersion",
            _ => return place,
        };
        if self.is_root || schema.flag("x-kubernetes-embedded-resource") {
            place.in_metadata = true;
        }
        if self.is_root {
            place.no_default = Some(in_top_level);
        }
        place
    }
}
