//! Checks the types of lists and maps in a schema: `x-kubernetes-list-type` and `x-kubernetes-map-type`.
//!
//! Guarantees: the errors and their order are those of `ValidateCustomResourceDefinitionOpenAPISchema` in
//! Kubernetes.

use std::collections::BTreeSet;

use super::member::Form;
use super::requirement::{Requirement, Requirements};
use super::schema::{Items, Schema};
use super::shown::Shown;
use crate::quote::Quoted;
use crate::strategy::report::{Path, Report};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";

pub(super) fn check(
    schema: Schema<'_>,
    requirements: &Requirements<'_>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let map_type = schema.optional_text(MAP_TYPE);
    if map_type.is_some() {
        let why = "must be object if x-kubernetes-map-type is specified";
        check_type(schema, "object", why, path, report);
    }
    let supported = ["atomic", "granular"];
    if let Some(found) = map_type.filter(|found| !supported.contains(found)) {
        report.unsupported(&path.child(MAP_TYPE), Quoted(found), &supported);
    }
    let list_type = schema.optional_text(LIST_TYPE);
    if list_type.is_some() && schema.text("type") != "array" {
        let why = "must be array if x-kubernetes-list-type is specified";
        check_type(schema, "array", why, path, report);
    } else if requirements.include(Requirement::AtomicSet) && list_type == Some("set") {
        check_set(schema, path, report);
    }
    let supported = ["atomic", "set", "map"];
    if let Some(found) = list_type.filter(|found| !supported.contains(found)) {
        report.unsupported(&path.child(LIST_TYPE), Quoted(found), &supported);
    }
    if !schema.list(MAP_KEYS).is_empty() {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => report.required(&path.child(LIST_TYPE), why),
            Some("map") => {}
            Some(found) => report.invalid(&path.child(LIST_TYPE), Quoted(found), why),
        }
    }
    if list_type == Some("map") {
        check_map_list(schema, path, report);
    }
    if requirements.include(Requirement::MapListKeys) {
        map_list_errors(schema, path, report);
    }
}

fn check_type(schema: Schema<'_>, expected: &str, why: &str, path: &Path<'_>, report: &mut Report) {
    match schema.text("type") {
        "" => report.required(&path.child("type"), why),
        found if found != expected => report.invalid(&path.child("type"), Quoted(found), why),
        _ => {}
    }
}

/// Returns whether the items of a set are atomic: scalars, atomic lists or atomic maps.
pub(super) fn is_atomic_item(item: Schema<'_>) -> bool {
    match item.text("type") {
        "array" => matches!(item.optional_text(LIST_TYPE), None | Some("atomic")),
        "object" => item.optional_text(MAP_TYPE) == Some("atomic"),
        _ => true,
    }
}

fn check_set(schema: Schema<'_>, path: &Path<'_>, report: &mut Report) {
    let item = schema.items().and_then(Items::schema);
    let Some(item) = item.filter(|item| !is_atomic_item(*item)) else {
        return;
    };
    let member = if item.text("type") == "array" {
        LIST_TYPE
    } else {
        MAP_TYPE
    };
    // As in Kubernetes, the shown value is the list type, even if the map type is wrong.
    let value = Shown {
        value: item.get(LIST_TYPE),
        form: Form::TextRef,
    };
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let items = path.child("items");
    report.invalid(&items.child(member), value, why);
}

/// Checks the keys and items of a list of the type `map`.
fn check_map_list(schema: Schema<'_>, path: &Path<'_>, report: &mut Report) {
    if schema.list(MAP_KEYS).is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        report.required(&path.child(MAP_KEYS), why);
    }
    let items_path = path.child("items");
    let Some(items) = schema.items() else {
        let why = "must have a schema if x-kubernetes-list-type is map";
        report.required(&items_path, why);
        return;
    };
    let Some(item) = items.schema() else {
        let value = Shown {
            value: Some(items.value),
            form: Form::OrArray,
        };
        let why = "must only have a single schema if x-kubernetes-list-type is map";
        report.invalid(&items_path, value, why);
        return;
    };
    let kind = item.text("type");
    if kind != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        report.invalid(&items_path.child("type"), Quoted(kind), why);
        return;
    }
    let keys = || Shown {
        value: schema.get(MAP_KEYS),
        form: Form::Texts,
    };
    let keys_path = path.child(MAP_KEYS);
    let mut seen = BTreeSet::new();
    for key in schema.texts(MAP_KEYS) {
        match item.property(key) {
            Some(property) if matches!(property.text("type"), "array" | "object") => {
                let properties = items_path.child("properties");
                let property = properties.key(key);
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                report.invalid(&property.child("type"), Quoted(kind), why);
            }
            Some(_) => {}
            None => {
                let why = "entries must all be names of item properties";
                report.invalid(&keys_path, keys(), why);
            }
        }
        if !seen.insert(key) {
            report.invalid(&keys_path, keys(), "must not contain duplicate entries");
        }
    }
}

/// Adds the errors of items and keys that can be absent. Follows `validateMapListKeysMapSet` in Kubernetes.
pub(super) fn map_list_errors(schema: Schema<'_>, path: &Path<'_>, report: &mut Report) {
    let (Some(item), Some(list_type @ ("set" | "map"))) = (
        schema.items().and_then(Items::schema),
        schema.optional_text(LIST_TYPE),
    ) else {
        return;
    };
    let items = path.child("items");
    if item.flag("nullable") {
        let why = format_args!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        report.forbidden(&items.child("nullable"), why);
    }
    if list_type == "set" {
        return;
    }
    let required: BTreeSet<&str> = item.texts("required").collect();
    let properties = items.child("properties");
    for key in schema.texts(MAP_KEYS) {
        let Some(property) = item.property(key) else {
            continue;
        };
        let path = properties.key(key);
        if !required.contains(key) && property.get("default").is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            report.required(&path.child("default"), why);
        }
        if property.flag("nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            report.forbidden(&path.child("nullable"), why);
        }
    }
}
