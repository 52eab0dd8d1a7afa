//! Reads a stored `CustomResourceDefinition`: the kinds that it adds to the server.
//!
//! Guarantees:
//! - an established definition adds one [`Kind`] for each served version, and any other definition adds none;
//! - a definition that can't be read adds no kind, and the reason is logged.
//!
//! The module `verb::definition` accepts names and establishes definitions. This module does not.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::kinds::{Kind, ScalePaths, Scope, Subresource};
use crate::storage::Entry;

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
    /// Incremented by each change of `spec`.
    #[serde(default)]
    generation: i64,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    scope: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
    subresources: Option<Subresources>,
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

#[derive(Deserialize)]
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

    /// Returns the kinds that a stored definition adds to the server; none if it can't be read.
    pub(crate) fn kinds_of(entry: &Entry) -> Vec<Kind> {
        Definition::read(entry).map_or_else(Vec::new, |definition| definition.kinds())
    }

    /// Returns the kinds that the definition adds to the server, one for each served version.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        if !self.is_established() {
            return Vec::new();
        }
        let served = self.spec.versions.iter().filter(|version| version.served);
        served.map(|version| self.kind(version)).collect()
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
        kind.singular.clone_from(&names.singular);
        kind.list_kind.clone_from(&names.list_kind);
        kind.short_names = names.short_names.clone().unwrap_or_default();
        kind.categories = names.categories.clone().unwrap_or_default();
        kind.is_terminating = self.status.is_true("Terminating");
        let subresources = version.subresources.as_ref();
        if subresources.is_none_or(|served| served.status.is_none()) {
            kind.subresources.clear();
        }
        kind.scale = subresources.and_then(|served| served.scale.clone());
        if kind.scale.is_some() {
            kind.subresources.push(Subresource::custom_scale());
        }
        kind
    }
}

impl Status {
    fn is_true(&self, condition: &str) -> bool {
        let conditions = self.conditions.iter().flatten();
        let mut found = conditions.filter(|one| one.condition == condition);
        found.next().is_some_and(|one| one.status == "True")
    }
}
