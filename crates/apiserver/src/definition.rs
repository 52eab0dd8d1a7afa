//! Reads a stored `CustomResourceDefinition`: the kinds that it adds to the server.
//!
//! Guarantees:
//! - an established definition adds one [`Kind`] for each served version, and any other definition adds none;
//! - a definition that can't be read adds no kind, and the reason is logged.
//!
//! The module `verb::definition` accepts names and establishes definitions. This module does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::kinds::{DefinitionState, Kind, PrinterColumn, ScalePaths, Scope, Subresource, version};
use crate::resource::Defined;
use crate::schema::{Model, Schema, Stored};
use crate::selector::SelectableField;
use crate::storage::Entry;

/// Maximum number of served versions of one definition.
///
/// Kubernetes has no such limit. With both limits, a definition of 3 MiB can't occupy gigabytes.
const VERSIONS_MAX: usize = 1_000;

/// Maximum size in bytes of all names of a definition, counted once for each served version.
const NAMES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of printer columns of one version; further columns are left out.
///
/// Kubernetes has no such limit. Each row of a table has a cell for each column.
const COLUMNS_MAX: usize = 100;

/// Number of bytes of a hash in a `storageVersionHash`.
const HASH_BYTES: usize = 8;

/// The members of a `CustomResourceDefinition` that determine the served kinds.
#[derive(Deserialize)]
pub(crate) struct Definition {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    /// Incremented by each change of `spec`.
    #[serde(default)]
    generation: i64,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    scope: String,
    versions: Vec<Version>,
    conversion: Option<Conversion>,
}

#[derive(Deserialize)]
struct Conversion {
    strategy: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    storage: bool,
    deprecated: Option<bool>,
    deprecation_warning: Option<String>,
    schema: Option<Validation>,
    subresources: Option<Subresources>,
    additional_printer_columns: Option<Vec<Value>>,
    selectable_fields: Option<Vec<Selectable>>,
}

#[derive(Deserialize)]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    schema: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selectable {
    json_path: String,
}

impl Selectable {
    /// Returns the path without the leading dot, as field selectors name it.
    fn path(&self) -> &str {
        let path = self.json_path.strip_prefix('.');
        path.unwrap_or(&self.json_path)
    }
}

#[derive(Deserialize)]
struct Subresources {
    status: Option<Box<RawValue>>,
    scale: Option<ScalePaths>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    accepted_names: AcceptedNames,
    conditions: Option<Vec<Condition>>,
    stored_versions: Option<Vec<String>>,
}

#[derive(Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct AcceptedNames {
    plural: String,
    singular: String,
    short_names: Option<Vec<String>>,
    kind: String,
    list_kind: String,
    categories: Option<Vec<String>>,
}

impl AcceptedNames {
    /// Returns the approximate memory of the names.
    fn bytes(&self) -> usize {
        let lists = [&self.short_names, &self.categories];
        let listed = lists.into_iter().flatten().flatten();
        let listed: usize = listed.map(|name| name.len() + size_of::<String>()).sum();
        listed + self.plural.len() + self.singular.len() + self.kind.len() + self.list_kind.len()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    condition: String,
    status: String,
}

impl Definition {
    /// Reads a stored definition. Returns `None`, and logs a warning, if it has an unexpected form.
    pub(crate) fn read(entry: &Entry) -> Option<Definition> {
        let mut text = Vec::new();
        entry.write_item(&mut text);
        match serde_json::from_slice(&text) {
            Ok(definition) => Some(definition),
            Err(cause) => {
                let name = entry.name();
                tracing::warn!(%name, %cause, "a CustomResourceDefinition can't be read, so its kind is not served");
                None
            }
        }
    }

    /// Returns the JSON of the schema of a version, if the stored definition has one.
    ///
    /// The extension `x-kubernetes-selectable-fields` lists the version's selectable fields, as in OpenAPI documents.
    pub(crate) fn schema_of(entry: &Entry, version: &str) -> Option<Value> {
        let versions = Definition::read(entry)?.spec.versions;
        let found = versions.into_iter().find(|found| found.name == version)?;
        let mut schema = found.schema?.schema?;
        let fields = found.selectable_fields.unwrap_or_default().into_iter();
        let fields: Vec<Value> = fields
            .map(|field| json!({"fieldPath": field.path()}))
            .collect();
        if !fields.is_empty()
            && let Some(members) = schema.as_object_mut()
        {
            members.insert("x-kubernetes-selectable-fields".to_owned(), fields.into());
        }
        Some(schema)
    }

    /// Returns the kinds that a stored definition adds to the server; none if it can't be read.
    pub(crate) fn kinds_of(entry: &Entry) -> Vec<Defined> {
        Definition::read(entry).map_or_else(Vec::new, |definition| definition.kinds())
    }

    /// Returns the kinds that the definition adds to the server, one for each served version.
    ///
    /// Returns none for a definition that is not established, that has another name than its resource, or that
    /// is larger than [`VERSIONS_MAX`] and [`NAMES_BYTES_MAX`] allow.
    pub(crate) fn kinds(&self) -> Vec<Defined> {
        let names = &self.status.accepted_names;
        let resource = format!("{}.{}", names.plural, self.spec.group);
        if !self.is_established() || names.plural.is_empty() || self.metadata.name != resource {
            return Vec::new();
        }
        let served = self.spec.versions.iter().filter(|version| version.served);
        let served: Vec<&Version> = served.collect();
        if served.len() > VERSIONS_MAX || served.len() * names.bytes() > NAMES_BYTES_MAX {
            let name = &self.metadata.name;
            tracing::warn!(%name, "a CustomResourceDefinition has too many versions or names, so its kind is not served");
            return Vec::new();
        }
        let stored = self.stored_schemas();
        let defined = served.into_iter().map(|version| {
            let kind = self.kind(version);
            let model = self.model(version, &stored);
            Defined { kind, model }
        });
        defined.collect()
    }

    /// Returns the schemas of the versions in which objects may be stored, by version.
    fn stored_schemas(&self) -> BTreeMap<String, Arc<Schema>> {
        let listed = self.status.stored_versions.iter().flatten();
        let listed: Vec<&String> = listed.collect();
        let versions = self.spec.versions.iter();
        let stored = versions.filter(|version| version.storage || listed.contains(&&version.name));
        let mut schemas: BTreeMap<String, Arc<Schema>> = BTreeMap::new();
        for version in stored {
            if let Some(schema) = self.schema(version) {
                // Versions with equal schemas share one, so that objects need no conversion between them.
                let equal = schemas.values().find(|known| **known == schema);
                let schema = equal.map_or(schema, Arc::clone);
                schemas.insert(version.name.clone(), schema);
            }
        }
        schemas
    }

    /// Returns the rules for the objects of a version. `schemas` has the schemas of the stored versions.
    fn model(
        &self,
        version: &Version,
        schemas: &BTreeMap<String, Arc<Schema>>,
    ) -> Option<Arc<Model>> {
        let json = version.schema.as_ref()?.schema.as_ref()?;
        let own = self.schema(version)?;
        let equal = schemas.values().find(|stored| **stored == own);
        let own = equal.map_or(own, Arc::clone);
        let storage = self.spec.versions.iter().find(|version| version.storage);
        let conversion = self.spec.conversion.as_ref();
        let stored = Stored {
            version: storage
                .map_or(&version.name, |storage| &storage.name)
                .clone(),
            schemas: schemas.clone(),
            by_webhook: conversion.is_some_and(|it| it.strategy == "Webhook"),
        };
        let selectable = version.selectable_fields.iter().flatten();
        let selectable = selectable.map(|field| {
            let path = field.path().to_owned();
            SelectableField { path }
        });
        Some(Arc::new(Model::new(
            own,
            json,
            stored,
            selectable.collect(),
        )))
    }

    /// Returns the schema of a version. Returns `None`, and logs a warning, if it can't be read.
    fn schema(&self, version: &Version) -> Option<Arc<Schema>> {
        let schema = version.schema.as_ref()?.schema.as_ref()?;
        match Schema::read(schema) {
            Ok(schema) => Some(Arc::new(schema)),
            Err(cause) => {
                let (name, version) = (&self.metadata.name, &version.name);
                tracing::warn!(%name, %version, %cause, "a schema of a CustomResourceDefinition can't be read, so it has no effect");
                None
            }
        }
    }

    /// Returns the warning in each response about a version, if it is deprecated.
    fn deprecation(&self, version: &Version) -> Option<String> {
        if version.deprecated != Some(true) {
            return None;
        }
        if let Some(warning) = &version.deprecation_warning {
            return Some(warning.clone());
        }
        let (group, kind) = (&self.spec.group, &self.status.accepted_names.kind);
        let warning = format!("{group}/{} {kind} is deprecated", version.name);
        let others = self.spec.versions.iter().filter(|other| {
            let is_better = version::compare(&other.name, &version.name).is_lt();
            other.served && other.deprecated != Some(true) && is_better
        });
        let best = others.min_by(|one, other| version::compare(&one.name, &other.name));
        Some(match best {
            Some(best) => format!("{warning}; use {group}/{} {kind}", best.name),
            None => warning,
        })
    }

    /// Returns whether the definition is being deleted, so that no object can be created.
    pub(crate) fn is_terminating(&self) -> bool {
        self.status.is_true("Terminating")
    }

    /// Returns whether the change from `old` to `self` lets the watches of the kind continue.
    ///
    /// As in Kubernetes, a change of `spec` or of the accepted names does not.
    pub(crate) fn continues(&self, old: &Definition) -> bool {
        self.metadata.generation == old.metadata.generation
            && self.status.accepted_names == old.status.accepted_names
            && self.is_established() == old.is_established()
    }

    fn is_established(&self) -> bool {
        self.status.is_true("Established")
    }

    fn kind(&self, version: &Version) -> Kind {
        let (spec, names) = (&self.spec, &self.status.accepted_names);
        let scope = if spec.scope == "Namespaced" {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        let mut kind = Kind::custom(
            &spec.group,
            &version.name,
            &names.kind,
            &names.plural,
            scope,
        );
        kind.storage_version_hash = version.storage.then(|| storage_version_hash(&kind));
        kind.deprecation = self.deprecation(version).map(Into::into);
        kind.singular.clone_from(&names.singular);
        kind.list_kind.clone_from(&names.list_kind);
        kind.short_names = names.short_names.clone().unwrap_or_default();
        kind.categories = names.categories.clone().unwrap_or_default();
        kind.definition = Some(if self.is_terminating() {
            DefinitionState::Terminating
        } else {
            DefinitionState::Established
        });
        let columns = version.additional_printer_columns.iter().flatten();
        // Values are not checked. A column of another form is left out.
        let columns = columns.filter_map(|column| PrinterColumn::deserialize(column).ok());
        kind.columns = columns.take(COLUMNS_MAX).collect();
        let subresources = version.subresources.as_ref();
        if subresources.is_none_or(|served| served.status.is_none()) {
            kind.subresources.clear();
        }
        let scale = subresources.and_then(|served| served.scale.clone());
        kind.scale = scale.filter(ScalePaths::are_valid);
        if kind.scale.is_some() {
            kind.subresources.push(Subresource::scale());
        }
        kind
    }
}

/// Returns the `storageVersionHash` of the version in which the objects of a kind are stored
/// (`discovery.StorageVersionHash` in Kubernetes).
fn storage_version_hash(kind: &Kind) -> String {
    let hash = Sha256::digest(format!("{}/{}", kind.api_version(), kind.kind));
    STANDARD.encode(&hash[..HASH_BYTES])
}

/// The names of a stored definition.
#[derive(Default)]
pub(crate) struct Names {
    /// The value of `spec.names`.
    pub(crate) requested: Value,
    /// The value of `status.acceptedNames`.
    pub(crate) accepted: Value,
}

impl Names {
    /// Reads the names of a stored definition, and skips the rest.
    pub(crate) fn read(entry: &Entry) -> Names {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Part {
            names: Value,
            accepted_names: Value,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Parts {
            spec: Part,
            status: Part,
        }
        let mut text = Vec::new();
        entry.write_item(&mut text);
        // A definition with another form has no names.
        let parts: Parts = serde_json::from_slice(&text).unwrap_or_default();
        Names {
            requested: parts.spec.names,
            accepted: parts.status.accepted_names,
        }
    }
}

impl Status {
    fn is_true(&self, condition: &str) -> bool {
        let conditions = self.conditions.iter().flatten();
        let mut found = conditions.filter(|one| one.condition == condition);
        found.next().is_some_and(|one| one.status == "True")
    }
}
