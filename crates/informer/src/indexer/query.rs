//! [`Query`]: what several indices have in common.

use std::{
    fmt,
    ops::Bound::{self, Excluded, Included, Unbounded},
    sync::Arc,
};

use super::{
    Snapshot,
    index::{IndexRef, NoSuchIndex},
    store::{Entry, Root},
};
use crate::{
    object::{Object, ObjectName},
    selector::{FieldOperator, FieldSelector},
};

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
pub struct Query<'a, K> {
    snapshot: &'a Snapshot<K>,
    plan: Plan,
}

impl<K> Clone for Query<'_, K> {
    fn clone(&self) -> Self {
        Self {
            snapshot: self.snapshot,
            plan: self.plan.clone(),
        }
    }
}

impl<K> fmt::Debug for Query<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, K> Query<'a, K> {
    pub(super) fn new(snapshot: &'a Snapshot<K>, plan: Plan) -> Self {
        Self { snapshot, plan }
    }

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
        let set = match self.snapshot.root().find(index)? {
            None => Set::Namespaces(sorted(values)),
            Some(slot) => Set::Values(slot, sorted(values)),
        };
        self.plan.sets.push(set);
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
        let test = match self.snapshot.root().find(index)? {
            None => Test::NotInNamespace(value.to_owned()),
            Some(slot) => Test::Not(slot, Arc::from(value)),
        };
        self.plan.tests.push(test);
        Ok(self)
    }

    /// The objects, in order of namespace and name, each once.
    pub fn iter(&self) -> impl Iterator<Item = &'a Object<K>> + use<'_, 'a, K> {
        let snapshot = self.snapshot;
        let mut last: Option<&ObjectName> = None;
        std::iter::from_fn(move || {
            let object = self.plan.after(snapshot, last)?;
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
        let object = self.query.plan.after(self.query.snapshot, self.last)?;
        self.last = Some(object.object_name());
        Some(object)
    }
}

/// A field selector asks for a field that no index has; the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field {0} can't be selected: no index has its name")]
pub struct FieldNotIndexed(pub String);

/// What is asked of one snapshot, apart from it, so that an iterator can own both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    sets: Vec<Set>,
    tests: Vec<Test>,
}

/// A condition that can name the next object that it allows. Values are sorted.
#[derive(Clone, Debug)]
enum Set {
    Namespaces(Vec<Arc<str>>),
    Values(usize, Vec<Arc<str>>),
}

/// A condition that can only be asked about an object.
#[derive(Clone, Debug)]
enum Test {
    NotInNamespace(String),
    /// The index does not have the object under this value.
    Not(usize, Arc<str>),
    /// Whether the object has another value in the index than the empty one.
    Filled(usize, bool),
    /// Whether `metadata.name` is this.
    Named(String, bool),
}

impl Plan {
    /// All of one namespace.
    pub(crate) fn in_namespace(&mut self, namespace: &str) {
        self.sets.push(Set::Namespaces(vec![Arc::from(namespace)]));
    }

    /// All that a field selector asks for.
    pub(crate) fn select<K>(
        &mut self,
        fields: &FieldSelector,
        snapshot: &Snapshot<K>,
    ) -> Result<(), FieldNotIndexed> {
        for requirement in fields.requirements() {
            let (field, value) = (requirement.field(), requirement.value());
            let equal = requirement.operator() == FieldOperator::Equals;
            match field {
                "metadata.name" => self.tests.push(Test::Named(value.to_owned(), equal)),
                "metadata.namespace" if equal => self.in_namespace(value),
                "metadata.namespace" => self.tests.push(Test::NotInNamespace(value.to_owned())),
                _ => {
                    let slot = snapshot.root().find(field).ok().flatten();
                    let slot = slot.ok_or_else(|| FieldNotIndexed(field.to_owned()))?;
                    let value = Arc::from(value);
                    match (equal, &*value) {
                        // What has no value in the index has the empty one for a server.
                        (equal, "") => self.tests.push(Test::Filled(slot, !equal)),
                        (true, _) => self.sets.push(Set::Values(slot, vec![value])),
                        (false, _) => self.tests.push(Test::Not(slot, value)),
                    }
                }
            }
        }
        Ok(())
    }

    /// The first object behind a name, the very first without one. Must be asked about the snapshot
    /// that it was made for.
    pub(crate) fn after<'a, K>(
        &self,
        snapshot: &'a Snapshot<K>,
        last: Option<&ObjectName>,
    ) -> Option<&'a Object<K>> {
        let root = snapshot.root();
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

    /// What `selects` takes of the next objects behind a name, of the very first without one, and the
    /// name behind which to go on, if this was not all. No more than [`SLICE`] objects are looked at. As
    /// [`Plan::after`], but with one search for all of them where that is enough.
    pub(crate) fn slice<K>(
        &self,
        snapshot: &Snapshot<K>,
        last: Option<&ObjectName>,
        selects: impl Fn(&Object<K>) -> bool,
    ) -> (Vec<Object<K>>, Option<ObjectName>) {
        let root = snapshot.root();
        let from = last.map_or(Unbounded, Excluded);
        let shown = |(_, entry)| Some(entry).filter(root.is_shown()).map(Entry::object);
        match (&self.sets[..], &self.tests[..]) {
            ([], []) => {
                let entries = root.entries.range(from, |_| true);
                selected(entries.filter_map(shown), selects)
            }
            ([Set::Namespaces(namespaces)], []) if namespaces.len() == 1 => {
                let entries = in_namespace(root, &namespaces[0], from);
                selected(entries.filter_map(shown), selects)
            }
            _ => {
                let mut last = last;
                let objects = std::iter::from_fn(|| {
                    let object = self.after(snapshot, last)?;
                    last = Some(object.object_name());
                    Some(object)
                });
                selected(objects, selects)
            }
        }
    }

    /// The first name that all sets have, from there on.
    fn agreed<'a, K>(&self, root: &'a Root<K>, from: Bound<&ObjectName>) -> Option<Step<'a, K>> {
        let Some((first, others)) = self.sets.split_first() else {
            let mut entries = root.entries.range(from, |_| true);
            return entries.next().map(|(name, entry)| (name, Some(entry)));
        };
        let mut step = first.next(root, from)?;
        // Each set in turn goes to where the others are; when all in a row stay, they agree.
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

/// So many objects are looked at between two searches for where to go on: a search costs about as much
/// as looking at some dozens of them.
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

/// A name, with its entry if finding the one has found the other.
type Step<'a, K> = (&'a ObjectName, Option<&'a Entry<K>>);

impl Set {
    /// The first name in it, from there on.
    fn next<'a, K>(&self, root: &'a Root<K>, from: Bound<&ObjectName>) -> Option<Step<'a, K>> {
        match self {
            Set::Namespaces(namespaces) => {
                let firsts = namespaces
                    .iter()
                    .filter_map(|namespace| in_namespace(root, namespace, from).next());
                let first = firsts.min_by_key(|(name, _)| *name);
                first.map(|(name, entry)| (name, Some(entry)))
            }
            Set::Values(slot, values) => {
                let index = &root.indices[*slot];
                let firsts = values
                    .iter()
                    .filter_map(|value| index.placed.names_from(value, from).next());
                firsts.min().map(|name| (name, None))
            }
        }
    }
}

impl Test {
    fn allows<K>(&self, root: &Root<K>, name: &ObjectName) -> bool {
        match self {
            Test::NotInNamespace(namespace) => name.namespace().unwrap_or_default() != namespace,
            Test::Not(slot, value) => !root.indices[*slot].placed.values(name).contains(value),
            Test::Filled(slot, filled) => {
                let values = root.indices[*slot].placed.values(name);
                values.iter().any(|value| !value.is_empty()) == *filled
            }
            Test::Named(wanted, equal) => (name.name() == wanted) == *equal,
        }
    }
}

/// The entries of one namespace, broken ones too, from one name on; the empty namespace is cluster
/// scope.
pub(super) fn in_namespace<'a, 'n, K>(
    root: &'a Root<K>,
    namespace: &'n str,
    from: Bound<&ObjectName>,
) -> impl Iterator<Item = (&'a ObjectName, &'a Entry<K>)> + use<'a, 'n, K> {
    let first = ObjectName::new(Some(namespace), "");
    let from = match from {
        Included(name) | Excluded(name) if *name > first => from,
        _ => Included(&first),
    };
    let expected = Some(namespace).filter(|namespace| !namespace.is_empty());
    let entries = &root.entries;
    entries.range(from, move |name| name.namespace() == expected)
}

fn sorted<V: Into<Arc<str>>>(values: impl IntoIterator<Item = V>) -> Vec<Arc<str>> {
    let mut values: Vec<Arc<str>> = values.into_iter().map(Into::into).collect();
    values.sort_unstable();
    values.dedup();
    values
}
