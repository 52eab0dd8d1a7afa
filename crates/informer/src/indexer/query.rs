//! Finds the objects of a snapshot that meet conditions on several indices.
//!
//! [`Query`] has the public methods. The module `plan` contains the search.

use std::{fmt, sync::Arc};

use super::{
    index::{IndexRef, NoSuchIndex},
    plan::{FieldNotIndexed, Plan},
    snapshot::Snapshot,
};
use crate::{
    object::{Object, ObjectName},
    selector::FieldSelector,
};
use derive_where::derive_where;

/// Selects the objects of a snapshot that meet all of the query's conditions on indices.
///
/// [`Snapshot::query`] creates a query without conditions, which selects all objects.
///
/// The query builds no intermediate list. It starts with the condition that the fewest objects meet, and
/// checks the other conditions for each of these objects. The order of the conditions does not matter.
///
/// ```
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kube_informer::{Snapshot, indexer::NoSuchIndex};
/// fn suspects(pods: &Snapshot<Pod>) -> Result<usize, NoSuchIndex> {
///     let pods = pods.query().and("node", "node-7")?.and_any("app", ["web", "shop"])?;
///     Ok(pods.and_not("phase", "Running")?.iter().count())
/// }
/// ```
#[must_use = "a query finds nothing until it is iterated"]
#[derive_where(Clone)]
pub struct Query<'a, K> {
    snapshot: &'a Snapshot<K>,
    plan: Plan,
}

impl<K> Snapshot<K> {
    /// Creates a [`Query`] without conditions, which selects all objects of this snapshot.
    pub fn query(&self) -> Query<'_, K> {
        Query {
            snapshot: self,
            plan: Plan::default(),
        }
    }

    /// Returns a query for the objects that match every pair in `values`.
    ///
    /// A pair is an index and a value. An object matches the pair if the object has this value in this index.
    ///
    /// Use [`Snapshot::query`] instead if some indices are given by name and others by
    /// [`IndexToken`](super::IndexToken), or if one index has several accepted values.
    ///
    /// # Errors
    /// Returns an error if the store does not have one of these indices.
    pub fn by_indices<I: IndexRef, V: Into<Arc<str>>>(
        &self,
        values: impl IntoIterator<Item = (I, V)>,
    ) -> Result<Query<'_, K>, NoSuchIndex> {
        let mut values = values.into_iter();
        values.try_fold(self.query(), |query, (index, value)| {
            query.and_any(&index, [value])
        })
    }

    /// Returns a query for the objects that match a field selector.
    ///
    /// For each field in the selector, the store must have an index with the name of the field. The fields
    /// `metadata.name` and `metadata.namespace` need no index. An object without a value in the index counts
    /// as an object with the empty string, as in an API server.
    ///
    /// # Errors
    /// Returns an error if the store has no index with the name of a field in the selector.
    #[doc(alias = "MatchingFields")]
    #[doc(alias = "MatchingFieldsSelector")]
    pub fn by_fields(&self, fields: &FieldSelector) -> Result<Query<'_, K>, FieldNotIndexed> {
        let mut query = self.query();
        query.plan.select(fields, self.root())?;
        Ok(query)
    }

    /// Adds the conditions of a field selector to the plan of a query.
    ///
    /// # Errors
    /// Returns an error if the store has no index with the name of a field in the selector.
    pub(crate) fn select(
        &self,
        fields: &FieldSelector,
        plan: &mut Plan,
    ) -> Result<(), FieldNotIndexed> {
        plan.select(fields, self.root())
    }

    /// Finds up to 64 objects that match the plan, and returns those that `selects` accepts.
    ///
    /// Starts after the name `last`. If more objects may follow, also returns the name that the caller must
    /// pass as `last` in the next call.
    pub(crate) fn slice(
        &self,
        plan: &Plan,
        last: Option<&ObjectName>,
        selects: impl Fn(&Object<K>) -> bool,
    ) -> (Vec<Object<K>>, Option<ObjectName>) {
        plan.slice(self.root(), last, selects)
    }
}

impl<K> fmt::Debug for Query<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, K> Query<'a, K> {
    /// Adds the condition that objects have this value in the given index.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    pub fn and(self, index: &(impl IndexRef + ?Sized), value: &str) -> Result<Self, NoSuchIndex> {
        self.and_any(index, [value])
    }

    /// Adds the condition that objects have at least one of these values in the given index.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    pub fn and_any<V>(
        mut self,
        index: &(impl IndexRef + ?Sized),
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, NoSuchIndex>
    where
        V: Into<Arc<str>>,
    {
        self.plan.any_of(self.snapshot.root(), index, values)?;
        Ok(self)
    }

    /// Adds the condition that objects do not have this value in the given index.
    ///
    /// Objects without any value in the index meet this condition.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    pub fn and_not(
        mut self,
        index: &(impl IndexRef + ?Sized),
        value: &str,
    ) -> Result<Self, NoSuchIndex> {
        self.plan.none_of(self.snapshot.root(), index, value)?;
        Ok(self)
    }

    /// Returns the selected objects, ordered by namespace and name. Each object occurs once.
    pub fn iter(&self) -> impl Iterator<Item = &'a Object<K>> + use<'_, 'a, K> {
        let snapshot = self.snapshot;
        let mut last: Option<&ObjectName> = None;
        std::iter::from_fn(move || {
            let object = self.plan.after(snapshot.root(), last)?;
            last = Some(object.object_name());
            Some(object)
        })
    }
}

impl<'a, K> IntoIterator for Query<'a, K> {
    type Item = &'a Object<K>;
    type IntoIter = Found<'a, K>;

    fn into_iter(self) -> Found<'a, K> {
        Found {
            query: self,
            last: None,
        }
    }
}

/// An iterator over the objects that a [`Query`] selects, ordered by namespace and name.
pub struct Found<'a, K> {
    query: Query<'a, K>,
    last: Option<&'a ObjectName>,
}

impl<K> fmt::Debug for Found<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl<'a, K> Iterator for Found<'a, K> {
    type Item = &'a Object<K>;

    fn next(&mut self) -> Option<&'a Object<K>> {
        let object = self
            .query
            .plan
            .after(self.query.snapshot.root(), self.last)?;
        self.last = Some(object.object_name());
        Some(object)
    }
}
