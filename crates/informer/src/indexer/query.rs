//! [`Query`]: finds the objects that match conditions on several indices.

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

/// Selects the objects that have given values in several indices; created by [`Snapshot::query`]. Without a
/// condition it selects all objects.
///
/// The query builds no intermediate list. The conditions in turn advance to their first object at or after
/// the position of the others, so the number of steps is at most the size of the *smallest* set times the
/// number of conditions, in any order of conditions. A step is one search in an index.
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
    /// Starts a [`Query`] over all objects.
    pub fn query(&self) -> Query<'_, K> {
        Query {
            snapshot: self,
            plan: Plan::default(),
        }
    }

    /// Returns a query for the objects that have the given value in each of these indices. To mix names and
    /// tokens of indices, or for alternative values, use [`Snapshot::query`].
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
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
    /// A field needs an index with its name; `metadata.name` and `metadata.namespace` need none. An object
    /// without a value in the index has the empty value, as on a server.
    ///
    /// # Errors
    /// A field has no index with its name.
    #[doc(alias = "MatchingFields")]
    #[doc(alias = "MatchingFieldsSelector")]
    pub fn by_fields(&self, fields: &FieldSelector) -> Result<Query<'_, K>, FieldNotIndexed> {
        let mut query = self.query();
        query.plan.select(fields, self.root())?;
        Ok(query)
    }

    /// Adds the conditions of a field selector to a plan.
    ///
    /// # Errors
    /// A field has no index with its name.
    pub(crate) fn select(
        &self,
        fields: &FieldSelector,
        plan: &mut Plan,
    ) -> Result<(), FieldNotIndexed> {
        plan.select(fields, self.root())
    }

    /// Passes the next objects of a plan to `selects`: those after the name `last`, or the first ones without
    /// a name. Returns the objects for which `selects` returns true, and the name to continue after if there
    /// may be more.
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
    /// Selects objects that have this value in this index.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    pub fn and(self, index: &(impl IndexRef + ?Sized), value: &str) -> Result<Self, NoSuchIndex> {
        self.and_any(index, [value])
    }

    /// Selects objects that have one of these values in this index.
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

    /// Selects objects that do not have this value in this index, including those without a value.
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

    /// Returns the selected objects, ordered by namespace and name, without duplicates.
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

/// An iterator over the objects that a [`Query`] selects.
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
