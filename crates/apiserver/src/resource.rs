//! The served kinds with their strategies, looked up by URL or by `apiVersion` and `kind`.
//!
//! Guarantees:
//! - all versions of a (group, plural) share one [`CollectionId`], so an object written in one version is readable in
//!   all of them;
//! - a [`Resource`] never changes after the server is built.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::json;

use crate::field_validation::Known;
use crate::kinds::schema::{Definition, Schema};
use crate::kinds::{Kind, Kinds, Scope};
use crate::strategy::Strategy;

/// Index of a (group, plural) in storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectionId(pub(crate) usize);

/// One version of a served kind, with its strategy.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) kind: Kind,
    /// Number that distinguishes the versions of one collection.
    pub(crate) ordinal: usize,
    pub(crate) collection: CollectionId,
    /// `"apiVersion":"v1","kind":"Pod"`, the start of a serialized object.
    pub(crate) type_meta: String,
    pub(crate) strategy: Strategy,
    known: OnceLock<Known>,
    definition: OnceLock<Option<&'static Definition>>,
}

/// All resources of a server.
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

    /// Returns the key of an object in storage.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            Some(namespace) if self.is_namespaced() => format!("{namespace}/{name}"),
            _ => name.to_owned(),
        }
    }

    /// Returns the allowed fields of a request body; resolved on first use.
    pub(crate) fn known(&self) -> Known {
        *self.known.get_or_init(|| Known::of(&self.kind))
    }

    /// The definition for strategic merge patches, resolved on first use; `None` for a custom kind.
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

    /// Number of collections; their ids start at 0.
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

    /// Returns the resource of an `apiVersion` and a plural, as in `("apps/v1", "deployments")`.
    pub(crate) fn by_plural(&self, api_version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.by_path(group, version, plural)
    }

    pub(crate) fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let found = self.kinds.by_kind(api_version, kind)?;
        self.by_path(&found.group, &found.version, &found.plural)
    }

    /// Returns the collection of a group and plural.
    pub(crate) fn collection_named(&self, group_resource: &str) -> Option<CollectionId> {
        self.resource_named(group_resource)
            .map(|resource| resource.collection)
    }

    /// Returns one resource of every namespaced collection whose objects can be deleted.
    pub(crate) fn namespaced(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let mut seen = BTreeSet::new();
        let deletable =
            |resource: &&Arc<Resource>| resource.is_namespaced() && resource.serves("delete");
        let first = move |resource: &&Arc<Resource>| seen.insert(resource.collection);
        self.resources.iter().filter(deletable).filter(first)
    }

    /// Returns the first resource of a group and plural such as `deployments.apps`, in any version.
    pub(crate) fn resource_named(&self, group_resource: &str) -> Option<&Arc<Resource>> {
        self.resources
            .iter()
            .find(|resource| resource.kind.group_resource() == group_resource)
    }

    /// Returns the group and plural of every collection, indexed by collection id.
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
