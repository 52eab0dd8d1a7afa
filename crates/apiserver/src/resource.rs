//! Defines the resources of a server, and finds them by URL or by `apiVersion` and `kind`.
//!
//! A resource is one version of a served kind, together with the rules for the kind's objects.
//!
//! Guarantees:
//! - all versions of a kind share one [`CollectionId`]. An object that is written in one version can be read in
//!   every version. The built-in kind `Event` has versions in two groups;
//! - a [`Resource`] never changes. If its definition changes, it is replaced.

mod form;
mod webhook;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::conversion::Conversion;
use crate::decode_error::DecodeError;
use crate::kinds::{Kind, Kinds, Scope, version};
use crate::schema::Model;
use crate::selector::{FieldTable, Fields, SelectableField, Selection};
use crate::status::ApiError;
use crate::strategy::Strategy;
use crate::typed::{DEFAULTS_BYTES_MAX, TooManyDefaults, ValueType};

/// Id of a collection, which contains the objects of all API versions of a kind. Ids start at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectionId(pub(crate) usize);

/// One version of a served kind, with the rules (`strategy`) for the kind's objects.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) kind: Arc<Kind>,
    /// Number of this resource, which differs from those of all other resources of the server.
    pub(crate) ordinal: usize,
    pub(crate) collection: CollectionId,
    /// JSON of `apiVersion` and `kind` without braces, such as `"kind":"Pod","apiVersion":"v1"`.
    ///
    /// The JSON of an object starts with these members, except in a list of a built-in kind. In Go, the kind is first in
    /// a type, and the version is in objects without a type.
    pub(crate) type_meta: String,
    pub(crate) strategy: Strategy,
    /// The rules of the kind's definition for its objects; `None` if no definition adds the kind.
    ///
    /// Equal rules of one definition are the same value, also in a later resource.
    pub(crate) model: Option<Arc<Model>>,
    /// The conversion of the objects of a built-in kind to another version in which they are stored. `None` if they
    /// are stored in this version.
    pub(crate) conversion: Option<Conversion>,
    value_type: OnceLock<ValueType>,
    empty: OnceLock<Value>,
}

/// The resources that a server serves at one time, with an index for lookups by URL.
///
/// A registry never changes. [`Registry::redefined`] returns the registry after a change of definitions.
pub(crate) struct Registry {
    /// The resources, ordered by group, version and plural name.
    resources: Vec<Arc<Resource>>,
    /// Maps `group/version/plural` to an index in `resources`.
    by_path: BTreeMap<String, usize>,
    /// The last resource of each group and plural name that was ever served or stored, such as
    /// `deployments.apps`. Of a built-in kind, it is the version in which objects are stored.
    /// A resource that is defined again has its earlier collection.
    collections: BTreeMap<String, Arc<Resource>>,
    kinds: Kinds,
    /// The kinds that no `CustomResourceDefinition` adds: built-in kinds, and those of the builder.
    fixed: Kinds,
    /// The kinds that each `CustomResourceDefinition` adds, by the name of the definition.
    defined: BTreeMap<String, Vec<Defined>>,
    /// The [`Resource::ordinal`] of the next resource.
    next_ordinal: usize,
}

/// A kind that a `CustomResourceDefinition` adds.
///
/// Two values are equal if they have the same model, not only an equal one. [`Registry::redefined`] shares equal
/// models.
#[derive(Clone)]
pub(crate) struct Defined {
    pub(crate) kind: Kind,
    /// The rules for the objects of the kind. `None` if the definition has no schema that can be read.
    pub(crate) model: Option<Arc<Model>>,
}

/// The built-in resources whose objects affect other resources.
pub(crate) struct Builtin {
    pub(crate) namespaces: Option<Arc<Resource>>,
    pub(crate) pods: Option<Arc<Resource>>,
    pub(crate) definitions: Option<Arc<Resource>>,
    pub(crate) priority_classes: Option<Arc<Resource>>,
}

// === impl Resource ===

impl Resource {
    pub(crate) fn is_namespaced(&self) -> bool {
        self.kind.scope == Scope::Namespaced
    }

    /// Returns whether this is the built-in resource `services`.
    pub(crate) fn is_services(&self) -> bool {
        self.kind.is_builtin("services")
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

    /// Returns the type into which the objects of this resource are decoded.
    pub(crate) fn value_type(&self) -> ValueType {
        *self.value_type.get_or_init(|| ValueType::of(&self.kind))
    }

    /// Returns whether a selection compares fields of objects that can have another form for other readers.
    pub(crate) fn is_reader_of(&self, selection: &Selection) -> bool {
        self.model.is_some() && selection.fields.compares_own_fields()
    }

    /// Returns the values of an object's fields for field selectors.
    pub(crate) fn fields_of(&self, object: &Map<String, Value>) -> Fields {
        let (table, selectable) = self.fields();
        table.values_of(object, selectable)
    }

    /// Returns the fields that field selectors can compare, except for name and namespace.
    pub(crate) fn fields(&self) -> (FieldTable, &[SelectableField]) {
        let selectable = self.model.as_ref().map(|model| &*model.selectable);
        (self.strategy.fields, selectable.unwrap_or_default())
    }

    fn new(
        kind: Arc<Kind>,
        model: Option<Arc<Model>>,
        conversion: Option<Conversion>,
        ordinal: usize,
        collection: CollectionId,
    ) -> Resource {
        Resource {
            ordinal,
            collection,
            type_meta: kind.type_meta(),
            strategy: Strategy::of(&kind),
            kind,
            model,
            conversion,
            value_type: OnceLock::new(),
            empty: OnceLock::new(),
        }
    }
}

// === impl Defined ===

impl PartialEq for Defined {
    fn eq(&self, other: &Defined) -> bool {
        let [own, others] = [self, other].map(|one| one.model.as_ref().map(Arc::as_ptr));
        own == others && self.kind == other.kind
    }
}

// === impl Registry ===

impl Registry {
    /// Returns the registry of a server without definitions.
    pub(crate) fn new(kinds: &Kinds) -> Registry {
        let empty = Registry {
            resources: Vec::new(),
            by_path: BTreeMap::new(),
            collections: BTreeMap::new(),
            kinds: kinds.clone(),
            fixed: kinds.clone(),
            defined: BTreeMap::new(),
            next_ordinal: 0,
        };
        empty.serving(kinds.clone(), BTreeMap::new())
    }

    /// Returns the registry with further collections that it does not serve, such as `widgets.example.com`.
    ///
    /// `stored` contains the name of each collection and the scope of its objects.
    #[cfg(feature = "persistence")]
    pub(crate) fn with_collections(
        mut self,
        stored: impl IntoIterator<Item = (String, Scope)>,
    ) -> Registry {
        for (name, scope) in stored {
            if !self.collections.contains_key(&name) {
                let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
                let kind = Kind::custom(group, "", "", plural, scope);
                let next = CollectionId(self.collections.len());
                let resource = Resource::new(Arc::new(kind), None, None, self.next_ordinal, next);
                self.next_ordinal += 1;
                self.collections.insert(name, Arc::new(resource));
            }
        }
        self
    }

    /// Returns the registry after a change of `CustomResourceDefinition`s, or `None` if the change has no
    /// effect.
    ///
    /// `changes` contains the name of each changed definition, and all kinds that the definition adds now. A
    /// definition of a [fixed](Registry::is_fixed) resource has no effect.
    pub(crate) fn redefined(
        &self,
        changes: impl IntoIterator<Item = (String, Vec<Defined>)>,
    ) -> Option<Registry> {
        let mut defined = self.defined.clone();
        for (name, mut kinds) in changes {
            if kinds.is_empty() {
                defined.remove(&name);
            } else if !self.is_fixed(&name) {
                self.share_models(&name, &mut kinds);
                defined.insert(name, kinds);
            }
        }
        if defined == self.defined {
            return None;
        }
        let mut preferred: BTreeMap<&str, &str> = BTreeMap::new();
        for Defined { kind, .. } in defined.values().flatten() {
            let best = preferred.entry(&kind.group).or_insert(&kind.version);
            if version::compare(&kind.version, best).is_lt() {
                *best = &kind.version;
            }
        }
        let mut kinds = self.fixed.clone();
        kinds.extend(defined.values().flatten().map(|Defined { kind, .. }| Kind {
            preferred: preferred.get(&*kind.group) == Some(&&*kind.version),
            ..kind.clone()
        }));
        Some(self.serving(kinds, defined))
    }

    /// Replaces each of the models of a definition by an equal earlier one of the same definition.
    ///
    /// Objects that were stored with the earlier model then need no conversion.
    fn share_models(&self, name: &str, kinds: &mut [Defined]) {
        let earlier = self.defined.get(name).into_iter().flatten();
        let earlier = earlier.filter_map(|defined| defined.model.as_ref());
        let last = self
            .last_resource(name)
            .and_then(|last| last.model.as_ref());
        let mut known: Vec<Arc<Model>> = earlier.chain(last).cloned().collect();
        for model in kinds.iter_mut().filter_map(|kind| kind.model.as_mut()) {
            match known.iter().find(|known| **known == *model) {
                Some(same) => *model = Arc::clone(same),
                None => known.push(Arc::clone(model)),
            }
        }
    }

    /// Returns a registry that serves `kinds`. Resources and collection ids of `self` are kept.
    fn serving(&self, kinds: Kinds, defined: BTreeMap<String, Vec<Defined>>) -> Registry {
        let models: BTreeMap<String, Arc<Model>> = defined
            .values()
            .flatten()
            .filter_map(|Defined { kind, model }| {
                let path = path(&kind.group, &kind.version, &kind.plural);
                Some((path, model.clone()?))
            })
            .collect();
        let mut registry = Registry {
            resources: Vec::with_capacity(kinds.len()),
            by_path: BTreeMap::new(),
            collections: self.collections.clone(),
            fixed: self.fixed.clone(),
            defined,
            next_ordinal: self.next_ordinal,
            kinds,
        };
        for (at, kind) in registry.kinds.shared().enumerate() {
            let path = path(&kind.group, &kind.version, &kind.plural);
            let model = models.get(&path);
            let kept = self.by_path(&kind.group, &kind.version, &kind.plural);
            let is_same = |kept: &&Arc<Resource>| {
                let same_model = kept.model.as_ref().map(Arc::as_ptr) == model.map(Arc::as_ptr);
                same_model && kept.kind == *kind
            };
            let kept = kept.filter(is_same).cloned();
            let conversion = Conversion::of(kind, &registry.kinds);
            let stored = conversion.as_ref().map(Conversion::collection);
            let name = stored.unwrap_or_else(|| kind.group_resource());
            let resource = kept.unwrap_or_else(|| {
                let next = CollectionId(registry.collections.len());
                let earlier = registry.collections.get(&name);
                let collection = earlier.map_or(next, |earlier| earlier.collection);
                let ordinal = registry.next_ordinal;
                registry.next_ordinal += 1;
                let model = model.cloned();
                Arc::new(Resource::new(
                    Arc::clone(kind),
                    model,
                    conversion,
                    ordinal,
                    collection,
                ))
            });
            if resource.conversion.is_none() || !registry.collections.contains_key(&name) {
                registry.collections.insert(name, Arc::clone(&resource));
            }
            registry.by_path.insert(path, at);
            registry.resources.push(resource);
        }
        registry.prefer_stored_versions();
        registry.forget_models();
        registry
    }

    /// Drops the models of kinds that are not served any more, which can be large.
    fn forget_models(&mut self) {
        for (name, resource) in &mut self.collections {
            if resource.model.is_some() && !self.defined.contains_key(name) {
                let kind = Arc::clone(&resource.kind);
                let bare = Resource::new(kind, None, None, self.next_ordinal, resource.collection);
                self.next_ordinal += 1;
                *resource = Arc::new(bare);
            }
        }
    }

    /// Returns the built-in resources whose objects affect other resources.
    pub(crate) fn builtin(&self) -> Builtin {
        Builtin {
            namespaces: self.by_path("", "v1", "namespaces").cloned(),
            pods: self.by_path("", "v1", "pods").cloned(),
            definitions: self
                .by_path("apiextensions.k8s.io", "v1", "customresourcedefinitions")
                .cloned(),
            priority_classes: self
                .by_path("scheduling.k8s.io", "v1", "priorityclasses")
                .cloned(),
        }
    }

    /// Returns whether a resource, such as `deployments.apps`, is served without a `CustomResourceDefinition`.
    pub(crate) fn is_fixed(&self, group_resource: &str) -> bool {
        let mut fixed = self.fixed.iter();
        fixed.any(|kind| kind.group_resource() == group_resource)
    }

    /// Returns the resource of a collection, such as `deployments.apps`.
    ///
    /// Returns `None` if the resource was never served and the data directory had no objects of it.
    ///
    /// If the resource is not served now, returns the resource that was served last.
    pub(crate) fn last_resource(&self, group_resource: &str) -> Option<&Arc<Resource>> {
        self.collections.get(group_resource)
    }

    /// Returns the last resource of each collection.
    pub(crate) fn last_resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.collections.values()
    }

    /// Returns the names of the definitions that add a kind.
    pub(crate) fn defined(&self) -> impl Iterator<Item = &String> {
        self.defined.keys()
    }

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns the number of collections. Collection ids are consecutive and start at 0.
    pub(crate) fn collections(&self) -> usize {
        self.collections.len()
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

    /// Returns the collection that `group_resource` names, such as `deployments.apps`.
    pub(crate) fn collection_named(&self, group_resource: &str) -> Option<CollectionId> {
        let resource = self.resource_named(group_resource)?;
        Some(resource.collection)
    }

    /// Returns the resource that `group_resource` names, such as `deployments.apps`.
    ///
    /// If the server has several versions, returns the first version by name.
    pub(crate) fn resource_named(&self, group_resource: &str) -> Option<&Arc<Resource>> {
        let mut resources = self.resources.iter();
        resources.find(|resource| resource.kind.group_resource() == group_resource)
    }

    /// Returns the name of every collection, such as `deployments.apps`, indexed by collection id.
    pub(crate) fn collection_names(&self) -> Vec<&str> {
        let mut names = vec![""; self.collections.len()];
        for (name, resource) in &self.collections {
            names[resource.collection.0] = name;
        }
        names
    }
}

fn path(group: &str, version: &str, plural: &str) -> String {
    format!("{group}/{version}/{plural}")
}

fn too_many_defaults(_: TooManyDefaults) -> DecodeError {
    DecodeError::Rejected(ApiError::object_too_large(DEFAULTS_BYTES_MAX))
}
