//! [`Postings`]: which objects stand under which values, found from either side.

use std::{ops::Bound, sync::Arc};

use imbl::{OrdMap, OrdSet};

use crate::object::ObjectName;

/// The values of one object in one index: sorted, each once.
pub(crate) type Values = Arc<[Arc<str>]>;

/// Brings values into the form in which they are kept.
pub(crate) fn sorted(mut values: Vec<Arc<str>>) -> Values {
    values.sort_unstable();
    values.dedup();
    values.into()
}

/// Which objects stand under which values at one moment. A clone costs as much as that of an `Arc`,
/// and does not change with it.
#[derive(Clone, Default)]
pub(crate) struct Postings {
    /// Value and object, in order. A value without objects is not in it.
    pairs: OrdSet<Pair>,
    /// The values under which each object stands, if there are any; so a removal needs no body and
    /// asks no function again.
    values: OrdMap<ObjectName, Values>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    value: Arc<str>,
    object: ObjectName,
}

impl Postings {
    /// The values under which an object stands.
    pub(crate) fn values(&self, object: &ObjectName) -> &[Arc<str>] {
        self.values.get(object).map_or(&[], |values| values)
    }

    /// Makes an object stand under these values and no others.
    pub(crate) fn place(&mut self, object: &ObjectName, values: &Values) {
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

    /// The names under a value, in order.
    pub(crate) fn names<'a>(
        &'a self,
        value: &str,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.names_from(&Arc::from(value), Bound::Unbounded)
    }

    /// The names under a value from one name on, in order.
    pub(super) fn names_from<'a>(
        &'a self,
        value: &Arc<str>,
        from: Bound<&ObjectName>,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.pairs_from(value, from).map(|pair| &pair.object)
    }

    /// The same value in the allocation that is in use here, if it is in use at all, so that all who
    /// stand under it share one text.
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
            // Cluster scope and no text: before every name.
            Bound::Unbounded => Bound::Included(pair(&ObjectName::cluster(""))),
            from => from.map(pair),
        };
        let value = Arc::clone(value);
        let pairs = self.pairs.range((first, Bound::Unbounded));
        pairs.take_while(move |pair| pair.value == value)
    }

    /// How many objects stand under a value, or several.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// How many values there are, and how many pairs of a value and an object.
    pub(super) fn size(&self) -> (usize, usize) {
        let mut values = 0;
        let mut last: Option<&Arc<str>> = None;
        for Pair { value, .. } in &self.pairs {
            // Most neighbours share their value, and then often its very text.
            if last.is_none_or(|last| !Arc::ptr_eq(last, value) && last != value) {
                values += 1;
            }
            last = Some(value);
        }
        (values, self.pairs.len())
    }

    /// The values, in order, each once.
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
