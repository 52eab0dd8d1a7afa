//! Typed reads from a cache: by name, by namespace, by label selector. No request, no lock.

use std::sync::Arc;

use derive_where::derive_where;
use kube_core::Resource;

use crate::{
    indexer::{FieldNotIndexed, Indexer, Plan, Snapshot},
    object::{DecodeError, Object, ObjectName},
    selector::{FieldSelector, Selector},
    shared_informer::SharedInformer,
};

/// Reads the cache of one informer. Cheap to clone; every call answers from the moment it is made.
///
/// What it returns is the cache's own and can't be changed:
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

/// Why an object can't be had from a cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GetError {
    /// The cache has no such object.
    #[error("{kind} {name} not found")]
    NotFound {
        /// The kind that was asked for.
        kind: String,
        /// The name that was asked for.
        name: ObjectName,
    },
    /// The object is there, but its last state could not be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl GetError {
    /// What is found under a name, decoded.
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
    /// Reads this store; `kind` is what errors call its objects.
    pub fn new(indexer: Indexer<K>, kind: impl Into<Arc<str>>) -> Self {
        Self {
            indexer,
            kind: kind.into(),
        }
    }

    /// Everything that it reads, of one moment. A controller that lists and then deletes what is missing
    /// reads both from one snapshot: the objects, and how many of the namespace are broken
    /// ([`Snapshot::broken_in`]) and so not among them.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.indexer.snapshot()
    }

    /// The objects of one namespace.
    #[doc(alias = "ByNamespace")]
    pub fn namespace(&self, namespace: impl Into<String>) -> NamespaceLister<K> {
        NamespaceLister {
            lister: self.clone(),
            namespace: namespace.into(),
        }
    }

    /// The object of this name.
    ///
    /// # Errors
    /// It is not in the cache, or its last state could not be decoded.
    #[doc(alias = "Get")]
    pub fn get(&self, name: &ObjectName) -> Result<Arc<K>, GetError> {
        GetError::or_body(&self.kind, name, self.find(name))
    }

    /// The handle of this name, also if its last state could not be decoded.
    pub fn find(&self, name: &ObjectName) -> Option<Object<K>> {
        self.indexer.get(name)
    }

    /// The objects with these labels, all of one moment, ordered by namespace and name. Nothing is
    /// copied but the handles that are handed out.
    #[doc(alias = "ListAll")]
    #[doc(alias = "List")]
    pub fn list<'s>(&self, selector: &'s Selector) -> impl Iterator<Item = Object<K>> + use<'s, K> {
        matching(self.indexer.snapshot(), Plan::default(), selector)
    }

    /// The objects with these labels and these fields, as [`Lister::list`]; a field is answered by the
    /// index that has its name, see [`Snapshot::by_fields`].
    ///
    /// # Errors
    /// No index has the name of one of the fields.
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
    /// Reads from this informer's cache.
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
    /// The object of this name.
    ///
    /// # Errors
    /// It is not in the cache, or its last state could not be decoded.
    pub fn get(&self, name: &str) -> Result<Arc<K>, GetError> {
        self.lister.get(&self.name(name))
    }

    /// The handle of this name, also if its last state could not be decoded.
    pub fn find(&self, name: &str) -> Option<Object<K>> {
        self.lister.find(&self.name(name))
    }

    /// The objects of the namespace with these labels, all of one moment, ordered by name.
    #[doc(alias = "ListAllByNamespace")]
    pub fn list<'s>(&self, selector: &'s Selector) -> impl Iterator<Item = Object<K>> + use<'s, K> {
        matching(self.lister.indexer.snapshot(), self.plan(), selector)
    }

    /// The objects of the namespace with these labels and these fields, as [`Lister::list_by_fields`].
    ///
    /// # Errors
    /// No index has the name of one of the fields.
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

    /// The whole namespace; without one, all of them.
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

/// Goes through a snapshot that it owns, so that nothing is borrowed and no list is built.
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
