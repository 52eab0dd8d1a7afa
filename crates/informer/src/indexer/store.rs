//! The entries behind a snapshot, and the rules by which they change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use imbl::OrdMap;

use super::{
    Cause, Change, Changed,
    generation::Generation,
    index::{DuplicateIndex, Index, IndexError, IndexRef, NAMESPACE, NoSuchIndex, NotRemovable},
    listed::Listed,
    placement::Values,
    tree::Tree,
};
use crate::{
    object::{Deleted, Object, ObjectName, ResourceVersion, SourceId, UnreadMoment},
    queue::Replaced,
};

/// Everything that readers can see, of one moment. Cloning it costs a few reference counts.
pub(super) struct Root<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    /// What the first source has told up to; most informers have no other, and each write changes it.
    first_revision: ResourceVersion,
    /// The same of all others.
    revisions: Arc<BTreeMap<SourceId, ResourceVersion>>,
    /// Counts how often one of them went backwards, or to an epoch after a rollback.
    rollbacks: u64,
    /// Entries without a usable state, with the last good one, which is what handlers have been told.
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
    /// Counts the changes of `broken`.
    broken_version: u64,
    /// What the server sent for the objects, together.
    wire_bytes: u64,
    /// How many entries each source has brought.
    counts: Arc<BTreeMap<SourceId, usize>>,
    /// What all roots share between two lists; `None` in a store without an informer.
    pub(super) generation: Option<Arc<Generation<K>>>,
    /// Counts the entries that have not been decoded, if they are decoded on demand.
    pub(super) unread: Option<Arc<UnreadMoment>>,
}

impl<K> Clone for Root<K> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            indices: Arc::clone(&self.indices),
            first_revision: self.first_revision.clone(),
            revisions: Arc::clone(&self.revisions),
            rollbacks: self.rollbacks,
            broken: self.broken.clone(),
            broken_version: self.broken_version,
            wire_bytes: self.wire_bytes,
            counts: Arc::clone(&self.counts),
            generation: self.generation.clone(),
            unread: self.unread.clone(),
        }
    }
}

/// One object of the store.
pub(super) struct Entry<K> {
    object: Object<K>,
    source: SourceId,
}

/// Whether it is the very same state, by address: what tells two moments of a store apart.
impl<K> PartialEq for Entry<K> {
    fn eq(&self, other: &Self) -> bool {
        self.object.is_same(&other.object) && self.source == other.source
    }
}

impl<K> Clone for Entry<K> {
    fn clone(&self) -> Self {
        Self {
            object: self.object.clone(),
            source: self.source,
        }
    }
}

impl<K> Entry<K> {
    pub(super) fn object(&self) -> &Object<K> {
        &self.object
    }

    pub(super) fn source(&self) -> SourceId {
        self.source
    }

    pub(super) fn is_live(&self) -> bool {
        self.object.broken().is_none()
    }

    /// Whether `object`, from `source`, brings nothing new.
    fn is_same(&self, source: SourceId, object: &Object<K>) -> bool {
        let known = &self.object;
        known.is_same(object)
            || (self.is_live() && self.source == source && known.is_unchanged(object))
    }
}

impl<K> Root<K> {
    pub(super) fn empty() -> Self {
        Self {
            entries: Tree::default(),
            indices: Arc::new(Vec::new()),
            first_revision: ResourceVersion::UNSET,
            revisions: Arc::default(),
            rollbacks: 0,
            broken: OrdMap::new(),
            broken_version: 0,
            wire_bytes: 0,
            counts: Arc::default(),
            generation: None,
            unread: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.broken.len()
    }

    /// Leaves out what has no usable state. Looks at no object where all have one.
    pub(super) fn is_shown(&self) -> impl Fn(&&Entry<K>) -> bool + use<K> {
        let are_all_live = self.broken.is_empty();
        move |entry| are_all_live || entry.is_live()
    }

    /// The state of an entry that handlers have been told, if they have been told any.
    pub(super) fn told<'a>(
        &'a self,
        name: &ObjectName,
        entry: &'a Entry<K>,
    ) -> Option<&'a Object<K>> {
        match entry.object.broken() {
            None => Some(&entry.object),
            Some(_) => self.broken.get(name)?.as_ref(),
        }
    }

    pub(super) fn broken_version(&self) -> u64 {
        self.broken_version
    }

    pub(super) fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// How many entries a source has brought, broken ones among them.
    pub(super) fn count(&self, source: SourceId) -> usize {
        self.counts.get(&source).copied().unwrap_or_default()
    }

    pub(super) fn revision(&self, source: SourceId) -> ResourceVersion {
        if source == SourceId::default() {
            return self.first_revision.clone();
        }
        self.revisions.get(&source).cloned().unwrap_or_default()
    }

    pub(super) fn rollbacks(&self) -> u64 {
        self.rollbacks
    }

    /// The store has all that its source sent up to here. What is behind a revision that it has reached
    /// says less, and changes nothing.
    pub(super) fn advance(&mut self, source: SourceId, revision: ResourceVersion) {
        let reached = if source == SourceId::default() {
            Some(&self.first_revision)
        } else {
            self.revisions.get(&source)
        };
        if !reached.is_some_and(|reached| revision.is_behind(reached)) {
            self.set_revision(source, revision);
        }
    }

    /// The store is as of this revision, also if it is older than before: then the source has gone back.
    pub(super) fn set_revision(&mut self, source: SourceId, revision: ResourceVersion) {
        if revision.is_unset() {
            return;
        }
        let reached = if source == SourceId::default() {
            &mut self.first_revision
        } else {
            let revisions = Arc::make_mut(&mut self.revisions);
            revisions.entry(source).or_default()
        };
        let went_back = revision.epoch().rolled_back_since(reached.epoch());
        self.rollbacks += u64::from(went_back || revision < *reached);
        *reached = revision;
    }

    pub(super) fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)> {
        let entry = self.entries.get(name)?;
        Some((entry.source, entry.object().clone()))
    }

    pub(super) fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {
        for (name, entry) in self.entries.iter() {
            visit(entry.source, name, entry.object());
        }
    }

    /// Takes a state of one object; what handlers have to hear.
    pub(super) fn put(
        &mut self,
        source: SourceId,
        object: Object<K>,
        cause: Cause,
        errors: &mut Vec<IndexError>,
    ) -> Option<Change<K>> {
        // What a list or a resync brings back as it was is not written, and not kept twice.
        let kept = match cause {
            Cause::Watch => None,
            Cause::Relist | Cause::Resync => self.entries.get(object.object_name()),
        };
        let kept = kept.filter(|kept| kept.is_same(source, &object));
        let is_kept = kept.is_some();
        let (object, told) = if let Some(kept) = kept {
            let told = self.told(object.object_name(), kept);
            (kept.object.clone(), told.cloned())
        } else {
            self.write(source, object, errors)
        };
        if object.broken().is_some() {
            return None;
        }
        let cause = match cause {
            // Not from this store, so it brings something new.
            Cause::Resync if !is_kept => Cause::Relist,
            cause => cause,
        };
        Some(match told {
            Some(old) => Change::Updated {
                old,
                new: object,
                cause,
            },
            None => Change::Added {
                object,
                in_initial_list: false,
            },
        })
    }

    /// Takes one object out; what handlers have to hear: a deletion iff they heard of the object.
    pub(super) fn remove(&mut self, source: SourceId, deleted: Deleted<K>) -> Option<Change<K>> {
        let name = deleted.object_name();
        if self.entries.get(name)?.source != source {
            return None; // another source has brought an object of this name since
        }
        let told = self.take(name)?;
        Some(Change::Deleted(match deleted {
            Deleted::Known(object) => Deleted::Known(object),
            Deleted::FinalStateUnknown { name, last_known } => Deleted::FinalStateUnknown {
                name,
                last_known: last_known
                    .filter(|object| object.broken().is_none())
                    .or(Some(told)),
            },
        }))
    }

    /// Makes the objects of one source be exactly those of its list. With `keeps`, one that is there as
    /// it was by its revision stays the one that it is.
    pub(super) fn replace(
        &mut self,
        list: Replaced<K>,
        keeps: bool,
        errors: &mut Vec<IndexError>,
    ) -> Changed {
        let Replaced {
            source,
            objects,
            revision,
        } = list;
        let mut places = Listed::of(&objects);
        if self.entries.len() == 0 && places.are_in_order() {
            let listed = self.fill(source, objects, errors);
            self.set_revision(source, revision);
            return Changed {
                gone: Vec::new(),
                listed,
            };
        }
        let mut changed = Changed {
            gone: Vec::new(),
            listed: Vec::with_capacity(objects.len()),
        };
        for object in objects {
            let name = object.object_name().clone();
            let kept = keeps.then(|| self.entries.get(&name)).flatten();
            let same = kept.is_some_and(|old| old.is_same(source, &object));
            if !same {
                self.write(source, object, errors);
            }
            // A name that a list has twice is told once, with what it had last.
            let at = places.place(&name, changed.listed.len());
            match changed.listed.get_mut(at) {
                Some((_, changed)) => *changed |= !same,
                None => changed.listed.push((name, !same)),
            }
        }
        let own = self.entries.iter();
        let own = own.filter(|(_, entry)| entry.source == source);
        changed.gone = places.gone(&changed.listed, own.map(|(name, _)| name));
        for name in &changed.gone {
            self.take(name);
        }
        self.set_revision(source, revision);
        changed
    }

    /// The slot of an index; `None` for the one by namespace, which has no data of its own.
    pub(super) fn find(
        &self,
        index: &(impl IndexRef + ?Sized),
    ) -> Result<Option<usize>, NoSuchIndex> {
        let found = self.indices.iter().position(|at| index.refers_to(&at.name));
        match found {
            Some(slot) => Ok(Some(slot)),
            None if index.index_name() == NAMESPACE => Ok(None),
            None => Err(index.not_found()),
        }
    }

    /// # Errors
    /// One of the names is taken, or there twice.
    pub(super) fn check_names<'n>(
        &self,
        new: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), DuplicateIndex> {
        let own = self.indices.iter().map(|index| &*index.name);
        let mut taken: BTreeSet<&str> = own.chain([NAMESPACE]).collect();
        for name in new {
            if !taken.insert(name) {
                return Err(DuplicateIndex(name.to_owned()));
            }
        }
        Ok(())
    }

    /// Takes indices that cover exactly what is there.
    pub(super) fn add_indices(&mut self, mut indices: Vec<Index<K>>) {
        Arc::make_mut(&mut self.indices).append(&mut indices);
    }

    pub(super) fn remove_index(
        &mut self,
        index: &(impl IndexRef + ?Sized),
    ) -> Result<Index<K>, NotRemovable> {
        let slot = self.find(index)?.ok_or(NotRemovable::Namespace)?;
        Ok(Arc::make_mut(&mut self.indices).remove(slot))
    }

    /// Puts objects, which are in the order of their names, where nothing is.
    fn fill(
        &mut self,
        source: SourceId,
        mut objects: Vec<Object<K>>,
        errors: &mut Vec<IndexError>,
    ) -> Vec<(ObjectName, bool)> {
        for object in &mut objects {
            self.place_in_indices(object, errors);
            let name = object.object_name();
            self.wire_bytes += object.wire_bytes();
            object.enters_store();
            if object.broken().is_some() {
                self.broken.insert(name.clone(), None);
                self.broken_version += 1;
            }
        }
        if !objects.is_empty() {
            *self.count_mut(source) += objects.len();
        }
        let entries = objects.into_iter().map(|object| {
            let name = object.object_name().clone();
            (name, Entry { object, source })
        });
        self.entries = Tree::from_ordered(entries);
        let names = self.entries.iter().map(|(name, _)| name.clone());
        names.map(|name| (name, true)).collect()
    }

    /// Puts a state in the place of what was there; the state as it is kept, and what handlers have been
    /// told of the object.
    pub(super) fn write(
        &mut self,
        source: SourceId,
        mut object: Object<K>,
        errors: &mut Vec<IndexError>,
    ) -> (Object<K>, Option<Object<K>>) {
        self.place_in_indices(&mut object, errors);
        let name = object.object_name().clone();
        let is_live = object.broken().is_none();
        self.wire_bytes += object.wire_bytes();
        let kept = object.clone();
        let old = self.entries.insert(name.clone(), Entry { object, source });
        let brought_by = old.as_ref().map(Entry::source);
        if brought_by != Some(source) {
            *self.count_mut(source) += 1;
        }
        let told = old.and_then(|old| self.forget(&name, old, brought_by != Some(source)));
        // Behind what was there, which may have the same body.
        kept.enters_store();
        if !is_live {
            self.broken.insert(name, told.clone());
            self.broken_version += 1;
        }
        (kept, told)
    }

    /// Asks the index functions about a state. One whose body turns out not to decode is broken from here
    /// on: neither readers nor handlers have seen it.
    fn place_in_indices(&mut self, object: &mut Object<K>, errors: &mut Vec<IndexError>) {
        self.reindex(object.object_name(), Some(object), errors);
        if let Some(broken) = object.found_broken() {
            self.reindex(broken.object_name(), Some(&broken), errors);
            *object = broken;
        }
    }

    fn count_mut(&mut self, source: SourceId) -> &mut usize {
        Arc::make_mut(&mut self.counts).entry(source).or_default()
    }

    /// Takes an object out; what handlers have been told of it.
    fn take(&mut self, name: &ObjectName) -> Option<Object<K>> {
        let old = self.entries.remove(name)?;
        self.reindex(name, None, &mut Vec::new());
        self.forget(name, old, true)
    }

    /// Counts an entry off that is not there any more, also among those of its source if that has not
    /// brought the one that is there now; what handlers have been told of it.
    fn forget(&mut self, name: &ObjectName, old: Entry<K>, by_source: bool) -> Option<Object<K>> {
        self.wire_bytes -= old.object.wire_bytes();
        old.object.leaves_store();
        if by_source {
            *self.count_mut(old.source) -= 1;
        }
        if old.is_live() {
            return Some(old.object);
        }
        self.broken_version += 1;
        self.broken.remove(name).flatten()
    }

    /// Moves one name in all indices to where its state belongs, or out of them. An index that stays
    /// as it was is not written.
    fn reindex(
        &mut self,
        name: &ObjectName,
        state: Option<&Object<K>>,
        errors: &mut Vec<IndexError>,
    ) {
        for slot in 0..self.indices.len() {
            let index = &self.indices[slot];
            let values = state.map_or_else(Values::default, |state| place(index, state, errors));
            if index.placed.values(name) != &*values {
                Arc::make_mut(&mut self.indices)[slot]
                    .placed
                    .place(name, &values);
            }
        }
    }
}

/// The values of an object, none if the function fails.
pub(super) fn place<K>(
    index: &Index<K>,
    object: &Object<K>,
    errors: &mut Vec<IndexError>,
) -> Values {
    index.ask(object).unwrap_or_else(|error| {
        errors.push(error);
        Values::default()
    })
}
