//! Defines [`Plan`]: the conditions of a query on a store, and the search for objects that meet all of them.
//!
//! A search first uses the indices to find the objects that have the required namespaces and index values.
//! It then checks the other conditions, such as excluded values, for each of these objects. A plan does not
//! contain the store: the caller passes the store's state to a search.

use std::{
    ops::Bound::{self, Excluded, Included, Unbounded},
    sync::Arc,
};

use super::{
    entry::Entry,
    index::{IndexRef, NoSuchIndex},
    postings::{Values, sorted},
    root::Root,
};
use crate::{
    object::{Object, ObjectName},
    selector::{FieldOperator, FieldSelector},
};

/// Error of a query by a field selector: the store has no index for a field in the selector.
///
/// The value is the field's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field {0} can't be selected: no index has its name; add an index named {0}")]
#[non_exhaustive]
pub struct FieldNotIndexed(pub String);

#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    sets: Vec<Set>,
    tests: Vec<Test>,
}

/// The condition that an object has one of the listed namespaces or index values.
///
/// Each list is sorted. The number in `Set::Values` is the position of the index in the store.
#[derive(Clone, Debug)]
enum Set {
    Namespaces(Values),
    Values(usize, Values),
}

/// A condition that is checked for one object at a time.
///
/// The number in `Not` and `Filled` is the position of an index in [`Root::indices`].
#[derive(Clone, Debug)]
enum Test {
    NotInNamespace(String),
    /// The object must not have this value in the index.
    Not(usize, Arc<str>),
    /// If the flag is true, the object must have a non-empty value in the index. If the flag is false, the
    /// object must have no values in the index, or only empty values.
    Filled(usize, bool),
    /// If the flag is true, the object must have this name. Otherwise the object must have another name.
    Named(String, bool),
}

impl Plan {
    /// Adds the condition that objects have one of these values in the given index.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    pub(super) fn any_of<K, V: Into<Arc<str>>>(
        &mut self,
        root: &Root<K>,
        index: &(impl IndexRef + ?Sized),
        values: impl IntoIterator<Item = V>,
    ) -> Result<(), NoSuchIndex> {
        let slot = root.find(index)?;
        let values = sorted(values.into_iter().map(Into::into).collect());
        self.sets.push(match slot {
            None => Set::Namespaces(values),
            Some(slot) => Set::Values(slot, values),
        });
        Ok(())
    }

    /// Adds the condition that objects do not have this value in the given index.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    pub(super) fn none_of<K>(
        &mut self,
        root: &Root<K>,
        index: &(impl IndexRef + ?Sized),
        value: &str,
    ) -> Result<(), NoSuchIndex> {
        self.tests.push(match root.find(index)? {
            None => Test::NotInNamespace(value.to_owned()),
            Some(slot) => Test::Not(slot, Arc::from(value)),
        });
        Ok(())
    }

    /// Adds the condition that objects are in this namespace; empty means cluster-scoped.
    pub(crate) fn in_namespace(&mut self, namespace: &str) {
        self.sets
            .push(Set::Namespaces([Arc::from(namespace)].into()));
    }

    /// Adds the condition that objects match a field selector.
    ///
    /// # Errors
    /// Returns an error if a field other than `metadata.name` and `metadata.namespace` has no index.
    pub(super) fn select<K>(
        &mut self,
        fields: &FieldSelector,
        root: &Root<K>,
    ) -> Result<(), FieldNotIndexed> {
        for requirement in fields.requirements() {
            let (field, value) = (requirement.field(), requirement.value());
            let equal = requirement.operator() == FieldOperator::Equals;
            match field {
                "metadata.name" => self.tests.push(Test::Named(value.to_owned(), equal)),
                "metadata.namespace" if equal => self.in_namespace(value),
                "metadata.namespace" => self.tests.push(Test::NotInNamespace(value.to_owned())),
                _ => {
                    let slot = root.find(field).ok().flatten();
                    let slot = slot.ok_or_else(|| FieldNotIndexed(field.to_owned()))?;
                    let value = Arc::from(value);
                    match (equal, &*value) {
                        // As on a server, an object without a value in the index has the empty value.
                        (equal, "") => self.tests.push(Test::Filled(slot, !equal)),
                        (true, _) => self.sets.push(Set::Values(slot, [value].into())),
                        (false, _) => self.tests.push(Test::Not(slot, value)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the first object after the name `last` that meets all conditions. `None` starts at the first
    /// object.
    ///
    /// `root` must have the same indices as the state for which the plan was created.
    pub(super) fn after<'a, K>(
        &self,
        root: &'a Root<K>,
        last: Option<&ObjectName>,
    ) -> Option<&'a Object<K>> {
        let mut from = last.cloned().map_or(Unbounded, Excluded);
        loop {
            let (name, entry) = self.agreed(root, from.as_ref())?;
            let entry = entry.or_else(|| root.entries.get(name))?;
            if entry.is_live() && self.tests.iter().all(|test| test.allows(root, name)) {
                return Some(entry.object());
            }
            from = Excluded(name.clone());
        }
    }

    /// Visits at most [`SLICE`] matching objects after `last`, and returns those that `selects` accepts.
    ///
    /// Also returns the last visited name if more objects may follow.
    pub(super) fn slice<K>(
        &self,
        root: &Root<K>,
        last: Option<&ObjectName>,
        selects: impl Fn(&Object<K>) -> bool,
    ) -> (Vec<Object<K>>, Option<ObjectName>) {
        let from = last.map_or(Unbounded, Excluded);
        let shown = |(_, entry)| Some(entry).filter(root.is_shown()).map(Entry::object);
        match (&self.sets[..], &self.tests[..]) {
            ([], []) => {
                let entries = root.entries.range(from, |_| true);
                selected(entries.filter_map(shown), selects)
            }
            ([Set::Namespaces(namespaces)], []) if namespaces.len() == 1 => {
                let entries = root.in_namespace(&namespaces[0], from);
                selected(entries.filter_map(shown), selects)
            }
            _ => {
                let mut last = last;
                let objects = std::iter::from_fn(|| {
                    let object = self.after(root, last)?;
                    last = Some(object.object_name());
                    Some(object)
                });
                selected(objects, selects)
            }
        }
    }

    /// Returns the first name, starting at the bound `from`, that meets all conditions in `self.sets`.
    ///
    /// Does not check the conditions in `self.tests`.
    fn agreed<'a, K>(&self, root: &'a Root<K>, from: Bound<&ObjectName>) -> Option<Step<'a, K>> {
        let Some((first, others)) = self.sets.split_first() else {
            let mut entries = root.entries.range(from, |_| true);
            return entries.next().map(|(name, entry)| (name, Some(entry)));
        };
        let mut step = first.next(root, from)?;
        // Each set in turn searches from the position of the previous set. The search ends when all sets
        // have found the same name.
        let mut agreeing = 1;
        for set in others.iter().chain(&self.sets[..1]).cycle() {
            if agreeing >= self.sets.len() {
                break;
            }
            let next = set.next(root, Included(step.0))?;
            agreeing = if next.0 == step.0 { agreeing + 1 } else { 1 };
            step = next;
        }
        Some(step)
    }
}

/// Maximum number of objects that one call of [`Plan::slice`] visits.
///
/// Each call first searches for the object at which the visit starts. This search costs about as much as
/// visiting some dozens of objects.
const SLICE: usize = 64;

fn selected<'a, K: 'a>(
    objects: impl Iterator<Item = &'a Object<K>>,
    selects: impl Fn(&Object<K>) -> bool,
) -> (Vec<Object<K>>, Option<ObjectName>) {
    let mut found = Vec::new();
    for (at, object) in objects.enumerate() {
        if selects(object) {
            found.push(object.clone());
        }
        if at + 1 == SLICE {
            return (found, Some(object.object_name().clone()));
        }
    }
    (found, None)
}

/// An object's name and entry. The entry is `None` if the search step did not read the entry.
type Step<'a, K> = (&'a ObjectName, Option<&'a Entry<K>>);

impl Set {
    /// Returns the first name, starting at the bound `from`, that meets this condition.
    fn next<'a, K>(&self, root: &'a Root<K>, from: Bound<&ObjectName>) -> Option<Step<'a, K>> {
        match self {
            Set::Namespaces(namespaces) => {
                let firsts = namespaces
                    .iter()
                    .filter_map(|namespace| root.in_namespace(namespace, from).next());
                let first = firsts.min_by_key(|(name, _)| *name);
                first.map(|(name, entry)| (name, Some(entry)))
            }
            Set::Values(slot, values) => {
                let index = &root.indices[*slot];
                let firsts = values
                    .iter()
                    .filter_map(|value| index.postings.names_from(value, from).next());
                firsts.min().map(|name| (name, None))
            }
        }
    }
}

impl Test {
    fn allows<K>(&self, root: &Root<K>, name: &ObjectName) -> bool {
        match self {
            Test::NotInNamespace(namespace) => name.namespace().unwrap_or_default() != namespace,
            Test::Not(slot, value) => !root.indices[*slot].postings.values(name).contains(value),
            Test::Filled(slot, filled) => {
                let values = root.indices[*slot].postings.values(name);
                values.iter().any(|value| !value.is_empty()) == *filled
            }
            Test::Named(wanted, equal) => (name.name() == wanted) == *equal,
        }
    }
}
