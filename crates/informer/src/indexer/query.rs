//! [`Query`]: what several indices have in common.

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

/// The objects that several indices have under given values; made by [`Snapshot::query`], which
/// without a condition finds all.
///
/// No list is built: the conditions take turns in naming the first object that they allow from where
/// the others are, so the number of steps is bounded by the *smallest* set times the number of
/// conditions, in whatever order they were given. A step is one search in an index.
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
    /// Begins a [`Query`], which narrows all objects down by any number of indices.
    pub fn query(&self) -> Query<'_, K> {
        Query {
            snapshot: self,
            plan: Plan::default(),
        }
    }

    /// The objects that every one of these indices has under its value, in order. For indices given in
    /// different ways, or alternatives, there is [`Snapshot::query`].
    ///
    /// # Errors
    /// There is no such index.
    pub fn by_indices<I: IndexRef, V: Into<Arc<str>>>(
        &self,
        values: impl IntoIterator<Item = (I, V)>,
    ) -> Result<Query<'_, K>, NoSuchIndex> {
        let mut values = values.into_iter();
        values.try_fold(self.query(), |query, (index, value)| {
            query.and_any(&index, [value])
        })
    }

    /// The objects that a field selector asks for, in order. A field is selectable if an index has its
    /// name, as are `metadata.name` and `metadata.namespace` always; its values are those of the index,
    /// and an object that has none there has the empty one, as on a server.
    ///
    /// # Errors
    /// No index has the name of one of the fields.
    #[doc(alias = "MatchingFields")]
    #[doc(alias = "MatchingFieldsSelector")]
    pub fn by_fields(&self, fields: &FieldSelector) -> Result<Query<'_, K>, FieldNotIndexed> {
        let mut query = self.query();
        query.plan.select(fields, self.root())?;
        Ok(query)
    }

    /// Adds all that a field selector asks for to a plan.
    ///
    /// # Errors
    /// No index has the name of one of the fields.
    pub(crate) fn select(
        &self,
        fields: &FieldSelector,
        plan: &mut Plan,
    ) -> Result<(), FieldNotIndexed> {
        plan.select(fields, self.root())
    }

    /// What `selects` takes of the next objects of a plan behind a name, of the very first without one, and
    /// the name behind which to go on, if this was not all.
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
    /// Only what this index has under this value.
    ///
    /// # Errors
    /// There is no such index.
    pub fn and(self, index: &(impl IndexRef + ?Sized), value: &str) -> Result<Self, NoSuchIndex> {
        self.and_any(index, [value])
    }

    /// Only what this index has under one of these values.
    ///
    /// # Errors
    /// There is no such index.
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

    /// Only what this index does not have under this value, which includes what it has under none.
    ///
    /// # Errors
    /// There is no such index.
    pub fn and_not(
        mut self,
        index: &(impl IndexRef + ?Sized),
        value: &str,
    ) -> Result<Self, NoSuchIndex> {
        self.plan.none_of(self.snapshot.root(), index, value)?;
        Ok(self)
    }

    /// The objects, in order of namespace and name, each once.
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

/// What a [`Query`] finds.
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
