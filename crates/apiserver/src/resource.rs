//! Defines the resources of a server, and finds them by URL or by `apiVersion` and `kind`.
//!
//! A resource is one version of a served kind, together with the rules for the kind's objects.
//!
//! Guarantees:
//! - all versions with the same group and plural name share one [`CollectionId`]. An object that is written
//!   in one version can be read in every version;
//! - a [`Resource`] never changes after the server is built.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::json;

use crate::field_validation::Known;
use crate::kinds::schema::{Definition, Schema};
use crate::kinds::{Kind, Kinds, Scope};
use crate::strategy::Strategy;

/// Id of a collection. A server numbers its collections from 0.
///
/// A collection contains the objects of all API versions that have the same group and plural name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectionId(pub(crate) usize);

/// One version of a served kind, with the rules (`strategy`) for the kind's objects.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) kind: Kind,
    /// Index of this resource among all resources of the server.
    pub(crate) ordinal: usize,
    pub(crate) collection: CollectionId,
    /// JSON of `apiVersion` and `kind` without braces, such as `"apiVersion":"v1","kind":"Pod"`.
    ///
    /// The JSON of an object starts with these members, except in a list of a built-in kind.
    pub(crate) type_meta: String,
    pub(crate) strategy: Strategy,
    known: OnceLock<Known>,
    definition: OnceLock<Option<&'static Definition>>,
}

/// All resources of a server, with an index for lookups by URL.
pub(crate) struct Registry {
    resources: Vec<Arc<Resource>>,
    /// Maps `group/version/plural` to an index in `resources`.
    by_path: BTreeMap<String, usize>,
    collections: usize,
    kinds: Kinds,
    pub(crate) namespaces: Option<Arc<Resource>>,
    pub(crate) pods: Option<Arc<Resource>>,
}

// === impl Resource ===

impl Resource {
    pub(crate) fn is_namespaced(&self) -> bool {
        self.kind.scope == Scope::Namespaced
    }

    pub(crate) fn serves(&self, verb: &str) -> bool {
        self.kind.verbs.iter().any(|served| served == verb)
    }

    /// Returns the key of an object in the store: `namespace/name`, or `name` if cluster-scoped.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            Some(namespace) if self.is_namespaced() => format!("{namespace}/{name}"),
            _ => name.to_owned(),
        }
    }

    /// Returns the fields that field validation accepts in a request body for this resource.
    pub(crate) fn known(&self) -> Known {
        *self.known.get_or_init(|| Known::of(&self.kind))
    }

    /// Returns the type definition for strategic merge patches, or `None` for a custom kind.
    pub(crate) fn definition(&self) -> Option<&'static Definition> {
        *self.definition.get_or_init(|| {
            if self.kind.custom {
                return None;
            }
            Schema::builtin().of_kind(&self.kind.api_version(), &self.kind.kind)
        })
    }

    fn new(kind: &Kind, ordinal: usize, collection: CollectionId) -> Resource {
        Resource {
            kind: kind.clone(),
            ordinal,
            collection,
            type_meta: format!(
                "\"apiVersion\":{},\"kind\":{}",
                json!(kind.api_version()),
                json!(kind.kind)
            ),
            strategy: Strategy::of(kind),
            known: OnceLock::new(),
            definition: OnceLock::new(),
        }
    }
}

// === impl Registry ===

impl Registry {
    pub(crate) fn new(kinds: &Kinds) -> Registry {
        let mut registry = Registry {
            resources: Vec::with_capacity(kinds.len()),
            by_path: BTreeMap::new(),
            collections: 0,
            kinds: kinds.clone(),
            namespaces: None,
            pods: None,
        };
        let mut collections = BTreeMap::new();
        for (ordinal, kind) in kinds.iter().enumerate() {
            let next = CollectionId(collections.len());
            let collection = *collections.entry(kind.group_resource()).or_insert(next);
            let resource = Arc::new(Resource::new(kind, ordinal, collection));
            let path = path(&kind.group, &kind.version, &kind.plural);
            registry.by_path.insert(path, ordinal);
            registry.resources.push(resource);
        }
        registry.collections = collections.len();
        registry.namespaces = registry.by_path("", "v1", "namespaces").cloned();
        registry.pods = registry.by_path("", "v1", "pods").cloned();
        registry
    }

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns the number of collections. Collection ids are consecutive and start at 0.
    pub(crate) fn collections(&self) -> usize {
        self.collections
    }

    pub(crate) fn by_path(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<Resource>> {
        let at = self.by_path.get(&path(group, version, plural))?;
        self.resources.get(*at)
    }

    /// Returns the resource with this `apiVersion` and plural name, such as `apps/v1` and `deployments`.
    pub(crate) fn by_plural(&self, api_version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.by_path(group, version, plural)
    }

    pub(crate) fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let found = self.kinds.by_kind(api_version, kind)?;
        self.by_path(&found.group, &found.version, &found.plural)
    }

    /// Returns the id of the collection that `group_resource` names, such as `deployments.apps`.
    pub(crate) fn collection_named(&self, group_resource: &str) -> Option<CollectionId> {
        self.resource_named(group_resource)
            .map(|resource| resource.collection)
    }

    /// Iterates over the namespaced resources that support `delete`.
    ///
    /// If several versions of a kind share a collection, only the first version is included.
    pub(crate) fn namespaced(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let mut seen = BTreeSet::new();
        let deletable =
            |resource: &&Arc<Resource>| resource.is_namespaced() && resource.serves("delete");
        let first = move |resource: &&Arc<Resource>| seen.insert(resource.collection);
        self.resources.iter().filter(deletable).filter(first)
    }

    /// Returns the resource that `group_resource` names, such as `deployments.apps`.
    ///
    /// If the server has several versions, returns the version with the lowest [`Resource::ordinal`].
    pub(crate) fn resource_named(&self, group_resource: &str) -> Option<&Arc<Resource>> {
        self.resources
            .iter()
            .find(|resource| resource.kind.group_resource() == group_resource)
    }

    /// Returns the name of every collection, such as `deployments.apps`, indexed by collection id.
    #[cfg(feature = "persistence")]
    pub(crate) fn collection_names(&self) -> Vec<String> {
        let mut names = vec![String::new(); self.collections];
        for resource in &self.resources {
            names[resource.collection.0] = resource.kind.group_resource();
        }
        names
    }
}

fn path(group: &str, version: &str, plural: &str) -> String {
    format!("{group}/{version}/{plural}")
}
