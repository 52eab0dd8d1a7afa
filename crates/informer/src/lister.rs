//! Typed reads from a cache, by name, namespace and label selector, without requests or locks.

use std::sync::Arc;

use derive_where::derive_where;
use kube_core::Resource;

use crate::{
    indexer::{FieldNotIndexed, Indexer, Plan, Snapshot},
    object::{DecodeError, Object, ObjectName},
    selector::{FieldSelector, Selector},
    shared_informer::SharedInformer,
};

/// Reads the cache of one informer.
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

/// Error of reading an object from a cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GetError {
    /// The cache does not contain the object.
    #[error("{kind} {name} not found")]
    NotFound {
        /// The requested kind.
        kind: String,
        /// The requested name.
        name: ObjectName,
    },
    /// The cache contains the object, but its last state could not be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl GetError {
    /// Returns the decoded body of an object, or an error if `found` is `None` or the body does not decode.
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
    /// Creates a lister of this store; errors name `kind` as the kind of the objects.
    pub fn new(indexer: Indexer<K>, kind: impl Into<Arc<str>>) -> Self {
        Self {
            indexer,
            kind: kind.into(),
        }
    }

    /// Returns a snapshot of the cache.
    ///
    /// A controller that deletes objects which a list does not contain reads two things from one snapshot:
    /// the list, and the number of broken objects in the namespace ([`Snapshot::broken_in`]). The list does
    /// not contain broken objects.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.indexer.snapshot()
    }

    /// Returns a lister of one namespace.
    #[doc(alias = "ByNamespace")]
    pub fn namespace(&self, namespace: impl Into<String>) -> NamespaceLister<K> {
        NamespaceLister {
            lister: self.clone(),
            namespace: namespace.into(),
        }
    }

    /// Returns the object of this name.
    ///
    /// # Errors
    /// The object is not in the cache, or its last state could not be decoded.
    #[doc(alias = "Get")]
    pub fn get(&self, name: &ObjectName) -> Result<Arc<K>, GetError> {
        GetError::or_body(&self.kind, name, self.find(name))
    }

    /// Returns the object of this name as a handle, even if its last state could not be decoded.
    pub fn find(&self, name: &ObjectName) -> Option<Object<K>> {
        self.indexer.get(name)
    }

    /// Returns the objects that match a label selector, ordered by namespace and name.
    ///
    /// All objects are from one snapshot. The call clones only the handles of the returned objects.
    #[doc(alias = "ListAll")]
    #[doc(alias = "List")]
    pub fn list<'s>(&self, selector: &'s Selector) -> impl Iterator<Item = Object<K>> + use<'s, K> {
        matching(self.indexer.snapshot(), Plan::default(), selector)
    }

    /// Returns the objects that match a label selector and a field selector, ordered like [`Lister::list`].
    ///
    /// Each field is looked up in the index of the same name; see [`Snapshot::by_fields`].
    ///
    /// # Errors
    /// A field has no index of its name.
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
    /// Returns a lister of this informer's cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.indexer(), self.kind())
    }
}

/// Reads the objects of one namespace.
#[doc(alias = "GenericNamespaceLister")]
#[derive_where(Clone, Debug)]
pub struct NamespaceLister<K> {
    lister: Lister<K>,
    namespace: String,
}

impl<K: Resource> NamespaceLister<K> {
    /// Returns the object of this name.
    ///
    /// # Errors
    /// The object is not in the cache, or its last state could not be decoded.
    pub fn get(&self, name: &str) -> Result<Arc<K>, GetError> {
        self.lister.get(&self.name(name))
    }

    /// Returns the object of this name as a handle, even if its last state could not be decoded.
    pub fn find(&self, name: &str) -> Option<Object<K>> {
        self.lister.find(&self.name(name))
    }

    /// Returns the objects of the namespace that match a label selector, ordered by name.
    ///
    /// All objects are from one snapshot.
    #[doc(alias = "ListAllByNamespace")]
    pub fn list<'s>(&self, selector: &'s Selector) -> impl Iterator<Item = Object<K>> + use<'s, K> {
        matching(self.lister.indexer.snapshot(), self.plan(), selector)
    }

    /// Returns the objects of the namespace that match both selectors, like [`Lister::list_by_fields`].
    ///
    /// # Errors
    /// A field has no index of its name.
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

    /// Returns a query plan for this namespace, or for all namespaces if the namespace is empty.
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

/// Iterates over the selected objects of a snapshot in slices, without building the whole list.
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
