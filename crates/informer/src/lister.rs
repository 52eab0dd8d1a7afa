//! Reads objects from a cache by name, namespace, label selector and field selector.
//!
//! Reads send no requests and wait for no locks.

use std::sync::Arc;

use derive_where::derive_where;
use kube_core::Resource;

use crate::{
    indexer::{FieldNotIndexed, Indexer, Plan, Snapshot},
    object::{DecodeError, Object, ObjectName},
    selector::{FieldSelector, Selector},
    shared_informer::SharedInformer,
};

/// Reads the objects in the cache of one informer.
///
/// A lister is cheap to clone. Each call reads the state of the cache at the time of the call. Returned
/// objects are shared with the cache and can't be modified:
///
/// ```compile_fail,E0594
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kube_informer::lister::Lister;
/// fn change(lister: &Lister<Pod>) {
///     let pod = lister.namespace("default").get("mypod").unwrap();
///     pod.spec = None;
/// }
/// ```
#[doc(alias = "GenericLister")]
#[doc(alias = "ResourceIndexer")]
#[doc(alias = "NewGenericLister")]
#[derive_where(Clone, Debug)]
pub struct Lister<K> {
    #[derive_where(skip(Debug))]
    indexer: Indexer<K>,
    kind: Arc<str>,
}

/// The reason why a read by name did not return an object from a cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GetError {
    /// The cache does not contain the object.
    #[error("{kind} {name} not found")]
    NotFound {
        /// Kind of the requested object.
        kind: String,
        /// Name of the requested object.
        name: ObjectName,
    },
    /// The cache contains the object, but its current state failed to decode.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl GetError {
    /// Returns the decoded value of `found`.
    ///
    /// # Errors
    /// Returns [`GetError::NotFound`] if `found` is `None`, or the decode error of `found`.
    pub(crate) fn or_body<K>(
        kind: &str,
        name: &ObjectName,
        found: Option<Object<K>>,
    ) -> Result<Arc<K>, Self> {
        let missing = || Self::NotFound {
            kind: kind.to_owned(),
            name: name.clone(),
        };
        Ok(found.ok_or_else(missing)?.get()?)
    }
}

impl<K: Resource> Lister<K> {
    /// Creates a lister of the objects in a store. Error messages contain `kind` as the kind of the objects.
    pub fn new(indexer: Indexer<K>, kind: impl Into<Arc<str>>) -> Self {
        Self {
            indexer,
            kind: kind.into(),
        }
    }

    /// Returns a snapshot of the cache.
    ///
    /// The methods that list objects omit those that failed to decode, although they may exist on the server.
    /// [`Snapshot::broken_count`] returns the number of omitted objects, and [`Snapshot::broken_in`] returns
    /// their number in one namespace. A controller that deletes resources because an object is missing must
    /// read the objects and the number of omitted objects from the same snapshot.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.indexer.snapshot()
    }

    /// Returns a lister of the objects in one namespace.
    ///
    /// If `namespace` is empty, the `list` methods return the objects of all namespaces, and reads by name
    /// return cluster-scoped objects.
    #[doc(alias = "ByNamespace")]
    pub fn namespace(&self, namespace: impl Into<String>) -> NamespaceLister<K> {
        NamespaceLister {
            lister: self.clone(),
            namespace: namespace.into(),
        }
    }

    /// Returns the object with this name.
    ///
    /// # Errors
    /// Returns an error if the object is not in the cache, or if its current state failed to decode.
    #[doc(alias = "Get")]
    pub fn get(&self, name: &ObjectName) -> Result<Arc<K>, GetError> {
        GetError::or_body(&self.kind, name, self.find(name))
    }

    /// Returns a handle to the object with this name, even if the object's current state failed to decode.
    /// Returns `None` if the object is not in the cache.
    pub fn find(&self, name: &ObjectName) -> Option<Object<K>> {
        self.indexer.get(name)
    }

    /// Returns the objects that match a label selector, ordered by namespace and name.
    ///
    /// All objects are from one snapshot of the cache. The iterator returns cloned handles, and does not copy
    /// the objects.
    #[doc(alias = "ListAll")]
    #[doc(alias = "List")]
    pub fn list<'s>(&self, selector: &'s Selector) -> impl Iterator<Item = Object<K>> + use<'s, K> {
        matching(self.indexer.snapshot(), Plan::default(), selector)
    }

    /// Returns the objects that match a label selector and a field selector, ordered by namespace and name.
    ///
    /// Each field except `metadata.name` and `metadata.namespace` needs an index with the name of the field.
    ///
    /// # Errors
    /// Returns an error if one of the fields has no index.
    #[doc(alias = "MatchingFields")]
    #[doc(alias = "MatchingFieldsSelector")]
    pub fn list_by_fields<'s>(
        &self,
        selector: &'s Selector,
        fields: &FieldSelector,
    ) -> Result<impl Iterator<Item = Object<K>> + use<'s, K>, FieldNotIndexed> {
        let snapshot = self.indexer.snapshot();
        let mut plan = Plan::default();
        snapshot.select(fields, &mut plan)?;
        Ok(matching(snapshot, plan, selector))
    }
}

impl<K> SharedInformer<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// Returns a lister of the objects in this informer's cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.indexer(), self.kind())
    }
}

/// Reads the objects of one namespace in the cache of an informer.
///
/// If the lister was created with the empty string as its namespace, the `list` methods return the objects of
/// all namespaces, and reads by name return cluster-scoped objects.
#[doc(alias = "GenericNamespaceLister")]
#[derive_where(Clone, Debug)]
pub struct NamespaceLister<K> {
    lister: Lister<K>,
    namespace: String,
}

impl<K: Resource> NamespaceLister<K> {
    /// Returns the object with this name in the namespace.
    ///
    /// # Errors
    /// Returns an error if the object is not in the cache, or if its current state failed to decode.
    pub fn get(&self, name: &str) -> Result<Arc<K>, GetError> {
        self.lister.get(&self.name(name))
    }

    /// Returns a handle to the object with this name in the namespace, even if the object's current state
    /// failed to decode. Returns `None` if the object is not in the cache.
    pub fn find(&self, name: &str) -> Option<Object<K>> {
        self.lister.find(&self.name(name))
    }

    /// Returns the objects of the namespace that match a label selector, ordered by name.
    ///
    /// If this lister was created with the empty string as its namespace, returns the objects of all
    /// namespaces, ordered by namespace and name. All objects are from one snapshot of the cache.
    #[doc(alias = "ListAllByNamespace")]
    pub fn list<'s>(&self, selector: &'s Selector) -> impl Iterator<Item = Object<K>> + use<'s, K> {
        matching(self.lister.indexer.snapshot(), self.plan(), selector)
    }

    /// Returns the objects of the namespace that match a label selector and a field selector, ordered by name.
    ///
    /// Each field except `metadata.name` and `metadata.namespace` needs an index with the name of the field.
    ///
    /// # Errors
    /// Returns an error if one of the fields has no index.
    pub fn list_by_fields<'s>(
        &self,
        selector: &'s Selector,
        fields: &FieldSelector,
    ) -> Result<impl Iterator<Item = Object<K>> + use<'s, K>, FieldNotIndexed> {
        let snapshot = self.lister.indexer.snapshot();
        let mut plan = self.plan();
        snapshot.select(fields, &mut plan)?;
        Ok(matching(snapshot, plan, selector))
    }

    /// Returns a query plan for this namespace. The empty namespace means all objects.
    fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        if !self.namespace.is_empty() {
            plan.in_namespace(&self.namespace);
        }
        plan
    }

    fn name(&self, name: &str) -> ObjectName {
        ObjectName::new(Some(&self.namespace), name)
    }
}

/// Returns the objects that match the conditions in `plan` and a label selector.
///
/// The iterator finds the objects as it advances.
fn matching<K: Resource>(
    snapshot: Snapshot<K>,
    plan: Plan,
    selector: &Selector,
) -> impl Iterator<Item = Object<K>> + use<'_, K> {
    let selects = |object: &Object<K>| {
        selector.is_everything() || selector.matches(|key| object.labels().get(key))
    };
    let (mut found, mut last) = snapshot.slice(&plan, None, selects);
    found.reverse();
    std::iter::from_fn(move || {
        while found.is_empty() && last.is_some() {
            (found, last) = snapshot.slice(&plan, last.as_ref(), selects);
            found.reverse();
        }
        found.pop()
    })
}

#[cfg(test)]
mod tests;
