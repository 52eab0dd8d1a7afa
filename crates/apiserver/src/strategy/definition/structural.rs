//! Checks that a schema is structural.
//!
//! A structural schema has the types of all fields outside of `allOf`, `anyOf`, `oneOf` and `not`, so that the
//! server knows the structure of an object.
//!
//! Guarantees: the errors are those of `ValidateStructural` in Kubernetes, sorted by their texts as there.
//! The schema must be convertible: `convert::fault` returns `None` for it.

use super::nested;
use super::schema::{Items, OrBool, Schema};
use super::structure;
use crate::strategy::report::{Path, Report};

/// The place of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Adds the errors of a schema to `report`.
pub(super) fn check(schema: Schema<'_>, path: &Path<'_>, report: &mut Report) {
    let mut errors = Report::default();
    check_invariants(schema, Level::Root, path, &mut errors);
    structure::check_completeness(schema, path, &mut errors);
    report.add_sorted(errors);
}

fn check_invariants(schema: Schema<'_>, level: Level, path: &Path<'_>, report: &mut Report) {
    let item = schema.items().and_then(Items::schema);
    if schema.text("type") == "array" && item.is_none() {
        report.required(&path.child("items"), "must be specified");
    }
    if let Some(item) = item {
        check_invariants(item, Level::Item, &path.child("items"), report);
    }
    for (name, property) in schema.map("properties") {
        let properties = path.child("properties");
        check_invariants(property, Level::Field, &properties.key(name), report);
    }
    let additional = schema.or_bool("additionalProperties");
    let additional_path = path.child("additionalProperties");
    if additional.is_some() && level == Level::Root {
        report.forbidden(&additional_path, "must not be used at the root");
    }
    if let Some(additional) = additional.and_then(OrBool::schema) {
        check_invariants(additional, Level::Field, &additional_path, report);
    }
    check_extensions(schema, path, report);
    nested::check_value(schema, nested::Exempt::of(schema), path, report);
    check_type(schema, level, path, report);
    if schema.flag("x-kubernetes-embedded-resource") && additional.is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        report.forbidden(&additional_path, why);
    }
    if level == Level::Root && !matches!(schema.text("type"), "" | "object") {
        let value = super::Quoted(schema.text("type"));
        report.invalid(&path.child("type"), value, "must be object at the root");
    }
    check_metadata(schema, level, path, report);
}

fn check_extensions(schema: Schema<'_>, path: &Path<'_>, report: &mut Report) {
    if schema.flag("x-kubernetes-int-or-string") {
        for member in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            if schema.flag(member) {
                let why = "must be false if x-kubernetes-int-or-string is true";
                report.invalid(&path.child(member), true, why);
            }
        }
    }
}

fn check_type(schema: Schema<'_>, level: Level, path: &Path<'_>, report: &mut Report) {
    let path = path.child("type");
    let is_free = schema.flag("x-kubernetes-int-or-string")
        || schema.flag("x-kubernetes-preserve-unknown-fields");
    match schema.text("type") {
        "object" => {}
        kind if schema.flag("x-kubernetes-embedded-resource") => {
            let why = "must be object if x-kubernetes-embedded-resource is true";
            if kind.is_empty() {
                report.required(&path, why);
            } else {
                report.invalid(&path, super::Quoted(kind), why);
            }
        }
        "" if !is_free => report.required(
            &path,
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        ),
        _ => {}
    }
}

/// Checks the properties `kind`, `apiVersion` and `metadata` of an object.
fn check_metadata(schema: Schema<'_>, level: Level, path: &Path<'_>, report: &mut Report) {
    let is_embedded = schema.flag("x-kubernetes-embedded-resource");
    let is_object = level == Level::Root || is_embedded;
    let properties = path.child("properties");
    for (name, kind, why) in [
        ("kind", "string", "must be string"),
        ("apiVersion", "string", "must be string"),
        ("metadata", "object", "must be object"),
    ] {
        let Some(property) = schema.property(name).filter(|_| is_object) else {
            continue;
        };
        let found = property.text("type");
        if found != kind {
            let property = properties.key(name);
            report.invalid(&property.child("type"), super::Quoted(found), why);
        }
    }
    let metadata = schema.property("metadata");
    if level == Level::Root && metadata.is_some_and(|it| !structure::names_only(it)) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        report.forbidden(&properties.key("metadata"), why);
    }
    let preserves = schema.flag("x-kubernetes-preserve-unknown-fields");
    if is_embedded && !preserves && !schema.has_entries("properties") {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        report.required(&properties, why);
    }
}
