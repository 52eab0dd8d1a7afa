//! Represents the `spec` of a definition in the form that Kubernetes validates.
//!
//! Kubernetes converts a definition to an internal form before the validation. In this form, a schema,
//! subresources, printer columns or selectable fields that all versions have in common belong to the definition,
//! and the versions have none. The paths in error messages follow this form: the schema of a definition with one
//! version is at `spec.validation`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::member::VERSION;
use super::schema::Schema;
use super::shown::ShownVersions;
use crate::object::Object;

/// The value of an absent member.
const ABSENT: &Value = &Value::Null;

/// The JSON names of the members of a version that belong to the definition if all versions have them in common.
const SHARED: [&str; 4] = [
    "schema",
    "subresources",
    "additionalPrinterColumns",
    "selectableFields",
];

/// The `spec` of a definition.
pub(super) struct Spec<'a> {
    pub(super) value: &'a Value,
    pub(super) versions: Vec<Version<'a>>,
    /// What all versions have in common.
    pub(super) common: Parts<'a>,
    /// JSON names of the members in `common`.
    moved: Vec<&'static str>,
}

/// One version of a definition, without the members that all versions have in common.
pub(super) struct Version<'a> {
    pub(super) value: &'a Value,
    pub(super) parts: Parts<'a>,
}

/// The members of a version that can belong to the definition.
#[derive(Clone, Copy, Default)]
pub(super) struct Parts<'a> {
    /// An object with a schema.
    pub(super) validation: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: &'a [Value],
    pub(super) selectable: &'a [Value],
}

impl<'a> Parts<'a> {
    fn of(version: &'a Value, has: impl Fn(&str) -> bool) -> Parts<'a> {
        let get = |member: &str| version.get(member).filter(|_| has(member));
        let list = |member: &str| {
            let list = get(member).and_then(Value::as_array);
            list.map_or(&[][..], Vec::as_slice)
        };
        let object = |member: &str| get(member).filter(|value| value.is_object());
        let [schema, subresources, columns, selectable] = SHARED;
        Parts {
            validation: object(schema),
            subresources: object(subresources),
            columns: list(columns),
            selectable: list(selectable),
        }
    }

    pub(super) fn schema(self) -> Option<Schema<'a>> {
        Schema(self.validation?).schema("openAPIV3Schema")
    }

    pub(super) fn has_status(self) -> bool {
        self.subresources
            .is_some_and(|subresources| subresources["status"].is_object())
    }
}

impl<'a> Version<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.value["name"].as_str().unwrap_or_default()
    }

    pub(super) fn is(&self, member: &str) -> bool {
        self.value[member] == true
    }
}

impl<'a> Spec<'a> {
    pub(super) fn of(definition: &'a Object) -> Spec<'a> {
        let value = definition.get("spec").unwrap_or(ABSENT);
        let versions = value["versions"].as_array();
        let versions = versions.map_or(&[][..], Vec::as_slice);
        let mut moved = Vec::new();
        if let Some((first, others)) = versions.split_first() {
            let members = VERSION
                .iter()
                .filter(|member| SHARED.contains(&member.json));
            let common = members.filter(|member| {
                let first = first.get(member.json);
                let mut others = others.iter().map(|other| other.get(member.json));
                others.all(|other| member.form.equal(first, other))
            });
            moved.extend(common.map(|member| member.json));
        }
        let common = versions.first();
        let common = common.map(|first| Parts::of(first, |member| moved.contains(&member)));
        let version = |value| Version {
            value,
            parts: Parts::of(value, |member| !moved.contains(&member)),
        };
        Spec {
            value,
            versions: versions.iter().map(version).collect(),
            common: common.unwrap_or_default(),
            moved,
        }
    }

    pub(super) fn text(&self, member: &str) -> &'a str {
        self.value[member].as_str().unwrap_or_default()
    }

    pub(super) fn preserves_unknown_fields(&self) -> bool {
        self.value["preserveUnknownFields"] == true
    }

    pub(super) fn shown_versions(&self) -> ShownVersions<'_> {
        let versions = self.value["versions"].as_array();
        ShownVersions {
            versions: versions.map(Vec::as_slice),
            hidden: &self.moved,
        }
    }

    /// Returns all schemas: the common one, and those of the versions.
    pub(super) fn schemas(&self) -> impl Iterator<Item = Schema<'a>> {
        let versions = self.versions.iter().map(|version| version.parts);
        let parts = std::iter::once(self.common).chain(versions);
        parts.filter_map(Parts::schema)
    }

    /// Returns, for each version, whether its objects have the subresource `status`.
    ///
    /// As in Kubernetes, versions of the same name have the subresources of the first one.
    pub(super) fn status_of_versions(&self) -> Vec<bool> {
        let is_common = self
            .versions
            .iter()
            .all(|version| version.parts.subresources.is_none());
        let mut by_name = BTreeMap::new();
        let statuses = self.versions.iter().map(|version| {
            let own = version.parts.has_status();
            let first = *by_name.entry(version.name()).or_insert(own);
            if is_common {
                self.common.has_status()
            } else {
                first
            }
        });
        statuses.collect()
    }

    /// Returns whether the objects of at least one version have the subresource `status`.
    pub(super) fn has_any_status(&self) -> bool {
        let mut versions = self.versions.iter();
        self.common.has_status() || versions.any(|version| version.parts.has_status())
    }
}
