//! Determines which requirements do not apply to an update, because the stored definition does not meet them.
//!
//! Guarantees: as in Kubernetes, a requirement that was introduced after a definition was stored does not prevent
//! updates of this definition.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ca_bundle;
use super::conversion::{Conversion, has_accepted_version};
use super::convert::fault;
use super::form::Spec;
use super::lists::{is_atomic_item, map_list_errors};
use super::openapi::TYPES;
use super::requirement::{Requirement, Requirements};
use super::schema::{Items, Schema};
use super::structural;
use super::{is_true, selectable};
use crate::object::Object;
use crate::schema::has_unpruned_defaults;
use crate::strategy::report::{Path, Report};

/// Returns the requirements for the update of `old` to `new`.
///
/// `definition` is the stored definition that `old` belongs to.
pub(super) fn requirements<'a>(
    definition: &Object,
    old: &Spec<'a>,
    new: &Spec<'a>,
) -> Requirements<'a> {
    let is_established = is_true(definition, "Established");
    let conversion = Conversion::of(old.value);
    let any = |mut accepts: &mut dyn FnMut(Schema<'_>) -> bool| {
        old.schemas().any(|schema| schema.any(&mut accepts))
    };
    let lacks_schema = old.common.schema().is_none()
        && old
            .versions
            .iter()
            .any(|version| version.parts.schema().is_none());
    let lifted = [
        (Requirement::Schema, lacks_schema),
        (Requirement::PropertyType, any(&mut has_unknown_type)),
        (Requirement::Structural, old.schemas().any(is_unstructured)),
        (Requirement::AtomicSet, any(&mut has_nested_set)),
        (
            Requirement::PrunedDefaults,
            old.schemas().any(has_unknown_defaults),
        ),
        (Requirement::MapListKeys, any(&mut has_loose_keys)),
        (
            Requirement::ReviewVersion,
            conversion
                .as_ref()
                .is_some_and(|old| !has_accepted_version(old.review_versions())),
        ),
        (
            Requirement::CaBundle,
            !is_established
                || conversion
                    .and_then(Conversion::ca_bundle)
                    .is_some_and(|bundle| ca_bundle::fault(&bundle).is_some()),
        ),
        (Requirement::Immutable, !is_established),
    ];
    let lifted = lifted.into_iter().filter(|(_, is_lifted)| *is_lifted);
    Requirements {
        lifted: lifted.map(|(requirement, _)| requirement).collect(),
        crowded: crowded(old, new),
    }
}

fn has_unknown_type(schema: Schema<'_>) -> bool {
    let kind = schema.text("type");
    !kind.is_empty() && !TYPES.contains(&kind)
}

fn is_unstructured(schema: Schema<'_>) -> bool {
    let mut report = Report::default();
    fault(schema).is_some() || {
        structural::check(schema, &Path::root("schema"), &mut report);
        report.found() > 0
    }
}

fn has_nested_set(schema: Schema<'_>) -> bool {
    let item = schema.items().and_then(Items::schema);
    let is_set = schema.optional_text("x-kubernetes-list-type") == Some("set");
    is_set && item.is_some_and(|item| !is_atomic_item(item))
}

fn has_unknown_defaults(schema: Schema<'_>) -> bool {
    !is_unstructured(schema) && has_unpruned_defaults(schema.0)
}

fn has_loose_keys(schema: Schema<'_>) -> bool {
    let mut report = Report::default();
    map_list_errors(schema, &Path::root("schema"), &mut report);
    report.found() > 0
}

fn crowded<'a>(old: &Spec<'a>, new: &Spec<'a>) -> BTreeSet<&'a str> {
    let fields = |fields: &'a [Value]| fields.iter().map(|field| field["jsonPath"].as_str());
    let may_crowd = |old: &'a [Value], new: &'a [Value]| {
        old.len() > selectable::FIELDS_MAX
            && fields(old)
                .map(Option::unwrap_or_default)
                .eq(fields(new).map(Option::unwrap_or_default))
    };
    let mut crowded = BTreeSet::new();
    if may_crowd(old.common.selectable, new.common.selectable) {
        crowded.insert("");
    }
    let old_versions = old.versions.iter();
    // As in Kubernetes, the last version of a name counts.
    let old_versions: BTreeMap<&str, &'a [Value]> = old_versions
        .map(|version| (version.name(), version.parts.selectable))
        .collect();
    for version in &new.versions {
        let old = old_versions.get(version.name());
        if old.is_some_and(|old| may_crowd(old, version.parts.selectable)) {
            crowded.insert(version.name());
        }
    }
    crowded
}
