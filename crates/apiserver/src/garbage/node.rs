//! Defines the nodes of the graph: objects with their owners and dependents, and owners that may not exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::kinds::{Kind, Scope};
use crate::resource::{CollectionId, Resource};

/// Number of a node. Numbers increase in the order in which nodes are added, and are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(super) u64);

/// How far the deletion of an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The object is not being deleted.
    Stays,
    /// The object is being deleted, and does not wait for its dependents.
    Ends,
    /// The object is being deleted, and waits until its dependents are deleted.
    DeletesDependents,
    /// The object is being deleted, and waits until no dependent refers to it.
    OrphansDependents,
}

/// The kind and the name of an owner in an owner reference. The namespace is that of the dependent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// The collection and the key of an object.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) kind: Arc<Kind>,
    pub(crate) collection: CollectionId,
    /// `namespace/name`, or `name` for a cluster-scoped object.
    pub(crate) key: Arc<str>,
}

/// Whether the object of a node exists.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// References name the object, and no object with this uid was observed.
    Unknown,
    Exists(Place),
    /// The object was removed, and references to it are left.
    Gone(Place),
}

/// An owner reference of a node.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) node: NodeId,
    pub(super) target: Arc<Target>,
    pub(super) blocks: bool,
}

/// One object, or an owner that may not exist.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) uid: Arc<str>,
    pub(super) standing: Standing,
    pub(super) phase: Phase,
    pub(super) owners: Vec<Owner>,
    pub(super) dependents: BTreeSet<NodeId>,
    /// Number of references to this node with `blockOwnerDeletion`.
    pub(super) blocking: usize,
}

// === impl Place ===

impl Place {
    pub(crate) fn new(resource: &Resource, key: &Arc<str>) -> Place {
        Place {
            kind: Arc::clone(&resource.kind),
            collection: resource.collection,
            key: Arc::clone(key),
        }
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        let is_namespaced = self.kind.scope == Scope::Namespaced;
        let split = self.key.split_once('/').filter(|_| is_namespaced);
        split.map(|(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        match self.namespace() {
            Some(namespace) => &self.key[namespace.len() + 1..],
            None => &self.key,
        }
    }

    /// Returns whether a reference in an object of `namespace` names this object. Versions of a kind are
    /// equal.
    pub(super) fn is_named_by(&self, target: &Target, namespace: Option<&str>) -> bool {
        let own = self.namespace();
        let group = target.api_version.rsplit_once('/');
        let group = group.map_or("", |(group, _)| group);
        self.kind.kind == target.kind
            && self.kind.group == group
            && self.name() == target.name
            && (own.is_none() || own == namespace)
    }

    /// Returns whether dependents in `namespace` can't have this object as their owner.
    pub(super) fn is_elsewhere(&self, namespace: Option<&str>) -> bool {
        let own = self.namespace();
        own.is_some() && own != namespace
    }
}

// === impl Node ===

impl Node {
    pub(super) fn new(uid: Arc<str>) -> Node {
        Node {
            uid,
            standing: Standing::Unknown,
            phase: Phase::Stays,
            owners: Vec::new(),
            dependents: BTreeSet::new(),
            blocking: 0,
        }
    }

    /// Returns the place of the object, if the object exists.
    pub(super) fn place(&self) -> Option<&Place> {
        match &self.standing {
            Standing::Exists(place) => Some(place),
            Standing::Unknown | Standing::Gone(_) => None,
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.place().and_then(Place::namespace)
    }

    /// Returns whether the node has no relation to another node, and does not wait for one.
    pub(super) fn is_alone(&self) -> bool {
        let waits = matches!(
            self.phase,
            Phase::DeletesDependents | Phase::OrphansDependents
        );
        let waits = waits && self.place().is_some();
        self.dependents.is_empty() && self.owners.is_empty() && !waits
    }
}
