//! Defines [`Postings`]: the content of one index, which maps values to objects and objects to values.
//!
//! This module stores the values that its caller passes. It does not call index functions.

use std::{ops::Bound, sync::Arc};

use imbl::{OrdMap, OrdSet};

use crate::object::ObjectName;

/// The values of one object in one index, sorted and without duplicates.
pub(crate) type Values = Arc<[Arc<str>]>;

pub(crate) fn sorted(mut values: Vec<Arc<str>>) -> Values {
    values.sort_unstable();
    values.dedup();
    values.into()
}

/// The content of one index.
///
/// A clone costs about as much as a clone of an `Arc`.
#[derive(Clone, Default)]
pub(crate) struct Postings {
    /// Pairs sorted by value and then by name.
    pairs: OrdSet<Pair>,
    /// The values of each object that has at least one value.
    values: OrdMap<ObjectName, Values>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    value: Arc<str>,
    object: ObjectName,
}

impl Postings {
    /// Returns the values of an object, or an empty slice if it is not in the index.
    pub(crate) fn values(&self, object: &ObjectName) -> &[Arc<str>] {
        self.values.get(object).map_or(&[], |values| values)
    }

    /// Replaces the values of an object; empty `values` remove the object from the index.
    pub(crate) fn set_values(&mut self, object: &ObjectName, values: &Values) {
        let old = if values.is_empty() {
            self.values.remove(object)
        } else {
            self.values.insert(object.clone(), Arc::clone(values))
        };
        let pair = |value: &Arc<str>| Pair {
            value: Arc::clone(value),
            object: object.clone(),
        };
        let old = old.as_deref().unwrap_or_default();
        for value in old.iter().filter(|value| !values.contains(value)) {
            self.pairs.remove(&pair(value));
        }
        for value in values.iter().filter(|value| !old.contains(value)) {
            self.pairs.insert(pair(value));
        }
    }

    /// Returns the names of the objects that have this value, sorted.
    pub(crate) fn names<'a>(
        &'a self,
        value: &str,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.names_from(&Arc::from(value), Bound::Unbounded)
    }

    /// Returns the sorted names of the objects with this value, from the lower bound `from` on.
    pub(super) fn names_from<'a>(
        &'a self,
        value: &Arc<str>,
        from: Bound<&ObjectName>,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.pairs_from(value, from).map(|pair| &pair.object)
    }

    /// Returns the index's string that equals `value`, or `value` if the index contains no equal string.
    ///
    /// Objects with equal values thereby share one string in memory.
    pub(crate) fn shared(&self, value: Arc<str>) -> Arc<str> {
        let found = self.pairs_from(&value, Bound::Unbounded).next();
        found.map_or(value, |pair| Arc::clone(&pair.value))
    }

    fn pairs_from<'a>(
        &'a self,
        value: &Arc<str>,
        from: Bound<&ObjectName>,
    ) -> impl Iterator<Item = &'a Pair> + use<'a> {
        let pair = |object: &ObjectName| Pair {
            value: Arc::clone(value),
            object: object.clone(),
        };
        let first = match from {
            // A cluster-scoped, empty name: before every other name.
            Bound::Unbounded => Bound::Included(pair(&ObjectName::cluster(""))),
            from => from.map(pair),
        };
        let value = Arc::clone(value);
        let pairs = self.pairs.range((first, Bound::Unbounded));
        pairs.take_while(move |pair| pair.value == value)
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the number of distinct values, and the number of pairs of a value and an object.
    pub(super) fn size(&self) -> (usize, usize) {
        let mut values = 0;
        let mut last: Option<&Arc<str>> = None;
        for Pair { value, .. } in &self.pairs {
            // Neighbours mostly have an equal value, often at the same address.
            if last.is_none_or(|last| !Arc::ptr_eq(last, value) && last != value) {
                values += 1;
            }
            last = Some(value);
        }
        (values, self.pairs.len())
    }

    /// Returns all values of the index, sorted and without duplicates.
    pub(crate) fn all_values(&self) -> Vec<Arc<str>> {
        let mut values: Vec<Arc<str>> = Vec::new();
        for pair in &self.pairs {
            if values.last() != Some(&pair.value) {
                values.push(Arc::clone(&pair.value));
            }
        }
        values
    }
}
