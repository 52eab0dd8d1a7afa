//! Finds what prevents the conversion of a schema to a structural schema.
//!
//! Guarantees: the message is that of `NewStructural` in Kubernetes for the same schema. Where Kubernetes visits
//! properties in random order, this module visits them in the order of their names.

use super::schema::{Items, OrBool, Schema};

/// Returns why a schema can't be converted, or `None` if it can be.
pub(super) fn fault(schema: Schema<'_>) -> Option<&'static str> {
    unsupported(schema)
        .or_else(|| schema.schema("not").and_then(fault))
        .or_else(|| {
            ["allOf", "anyOf", "oneOf"]
                .into_iter()
                .flat_map(|member| schema.schemas(member))
                .find_map(fault)
        })
        .or_else(|| forbids_unknown_fields(schema))
        .or_else(|| item_list(schema))
        .or_else(|| schema.items().and_then(Items::schema).and_then(fault))
        .or_else(|| {
            let mut properties = schema.map("properties");
            properties.find_map(|(_, property)| fault(property))
        })
        .or_else(|| {
            let additional = schema.or_bool("additionalProperties");
            additional.and_then(OrBool::schema).and_then(fault)
        })
}

/// Returns whether a schema could be converted if all schemas below it can be.
pub(super) fn is_convertible_alone(schema: Schema<'_>) -> bool {
    let faults = [unsupported, forbids_unknown_fields, item_list];
    faults.iter().all(|fault| fault(schema).is_none())
}

fn forbids_unknown_fields(schema: Schema<'_>) -> Option<&'static str> {
    let preserves = schema.optional_flag("x-kubernetes-preserve-unknown-fields");
    let why = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
    (preserves == Some(false)).then_some(why)
}

fn item_list(schema: Schema<'_>) -> Option<&'static str> {
    let has_list = schema.items()?.schemas().next().is_some();
    let why = "OpenAPIV3Schema 'items' must be a schema, but is an array";
    has_list.then_some(why)
}

fn unsupported(schema: Schema<'_>) -> Option<&'static str> {
    let is_set = |member| !schema.text(member).is_empty();
    let members = [
        (is_set("id"), "OpenAPIV3Schema 'id' is not supported"),
        (
            is_set("$schema"),
            "OpenAPIV3Schema 'schema' is not supported",
        ),
        (is_set("$ref"), "OpenAPIV3Schema '$ref' is not supported"),
        (
            schema.has_entries("patternProperties"),
            "OpenAPIV3Schema 'patternProperties' is not supported",
        ),
        (
            schema.has_entries("dependencies"),
            "OpenAPIV3Schema 'dependencies' is not supported",
        ),
        (
            schema.or_bool("additionalItems").is_some(),
            "OpenAPIV3Schema 'additionalItems' is not supported",
        ),
        (
            schema.has_entries("definitions"),
            "OpenAPIV3Schema 'definitions' is not supported",
        ),
    ];
    let found = members.into_iter().find(|(is_set, _)| *is_set);
    found.map(|(_, why)| why)
}
