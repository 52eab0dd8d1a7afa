//! Checks that a schema has a structural counterpart for each value validation, and recognizes special schemas.

use super::member::SCHEMA;
use super::schema::{Items, OrBool, Schema};
use crate::strategy::report::{Path, Report};

/// A schema inside `allOf`, `anyOf`, `oneOf` or `not`, or the root, with its path.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: Schema<'a>,
    path: &'a Path<'a>,
}

/// Checks that each field in the value validations of the root schema is also specified outside of them.
///
/// Follows `validateStructuralCompleteness` in Kubernetes, which checks only the value validations of the root.
pub(super) fn check_completeness(schema: Schema<'_>, path: &Path<'_>, report: &mut Report) {
    let root = Place { schema, path };
    check_value(root, root, report);
}

/// Checks the value validations of `nested`, whose structural counterpart is `outer`.
fn check_value(nested: Place<'_>, outer: Place<'_>, report: &mut Report) {
    if let Some(schema) = nested.schema.schema("not") {
        let path = &nested.path.child("not");
        check_nested(Place { schema, path }, outer, report);
    }
    for member in ["allOf", "anyOf", "oneOf"] {
        let list = nested.path.child(member);
        for (at, schema) in nested.schema.schemas(member).enumerate() {
            let path = &list.index(at);
            check_nested(Place { schema, path }, outer, report);
        }
    }
}

fn check_nested(nested: Place<'_>, outer: Place<'_>, report: &mut Report) {
    check_value(nested, outer, report);
    if let Some(schema) = nested.schema.items().and_then(Items::schema) {
        let (path, outer_path) = (&nested.path.child("items"), &outer.path.child("items"));
        match outer.schema.items().and_then(Items::schema) {
            None => missing(outer_path, path, report),
            Some(item) => {
                let outer = Place {
                    schema: item,
                    path: outer_path,
                };
                check_nested(Place { schema, path }, outer, report);
            }
        }
    }
    let properties = nested.path.child("properties");
    let outer_properties = outer.path.child("properties");
    for (name, schema) in nested.schema.map("properties") {
        let (path, outer_path) = (&properties.key(name), &outer_properties.key(name));
        match outer.schema.property(name) {
            None => missing(outer_path, path, report),
            Some(property) => {
                let outer = Place {
                    schema: property,
                    path: outer_path,
                };
                check_nested(Place { schema, path }, outer, report);
            }
        }
    }
}

fn missing(outer: &Path<'_>, nested: &Path<'_>, report: &mut Report) {
    report.required(outer, format_args!("because it is defined in {nested}"));
}

/// Returns whether the schema of `metadata` restricts only `name` and `generateName`.
pub(super) fn names_only(metadata: Schema<'_>) -> bool {
    let mut properties = metadata.map("properties");
    let has_names = properties.all(|(name, _)| matches!(name, "name" | "generateName"));
    has_names
        && is_bare(metadata, &["type", "default", "properties"])
        && metadata.or_bool("additionalProperties").is_none()
}

/// Returns whether a schema in `anyOf` consists only of a type.
pub(super) fn is_type_only(schema: Schema<'_>, kind: &str) -> bool {
    schema.text("type") == kind
        && is_bare(schema, &["type"])
        && !matches!(
            schema.or_bool("additionalProperties"),
            Some(OrBool::Bool(true) | OrBool::Schema(_))
        )
}

/// Returns whether a convertible schema has none but the excepted members, apart from `additionalProperties`.
///
/// As in Kubernetes, an empty list of keys, rules or required properties is a member, but any other empty list
/// is none.
fn is_bare(schema: Schema<'_>, except: &[&str]) -> bool {
    let mut members = SCHEMA
        .iter()
        .filter(|member| !except.contains(&member.json));
    members.all(|member| match member.json {
        // The caller checks the last one. A convertible schema has none of the others, or an empty one.
        "id"
        | "$schema"
        | "$ref"
        | "patternProperties"
        | "dependencies"
        | "additionalItems"
        | "definitions"
        | "additionalProperties" => true,
        "enum" | "allOf" | "anyOf" | "oneOf" => schema.list(member.json).is_empty(),
        "items" => schema.items().and_then(Items::schema).is_none(),
        name => member.form.is_zero(schema.get(name)),
    })
}
