//! Applies changes to a [`Root`], which contains one state of a store.
//!
//! Each change updates objects, indices and counts together. The module `writer` publishes the changed root
//! to readers.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    change::{Cause, Change, Changed},
    entry::Entry,
    index::{DuplicateIndex, Index, IndexError, IndexRef, NAMESPACE, NotRemovable},
    listed::Listed,
    postings::Values,
    root::Root,
    tree::Tree,
};
use crate::{
    object::{Deleted, Object, ObjectName, SourceId},
    queue::Replaced,
};

impl<K> Root<K> {
    /// Stores a new state of one object, and returns the change for handlers, if any.
    pub(super) fn put(
        &mut self,
        source: SourceId,
        object: Object<K>,
        cause: Cause,
        errors: &mut Vec<IndexError>,
    ) -> Option<Change<K>> {
        // An unchanged state from a list or a resync is not written again.
        let kept = match cause {
            Cause::Watch => None,
            Cause::Relist | Cause::Resync => self.entries.get(object.object_name()),
        };
        let kept = kept.filter(|kept| kept.is_same(source, &object));
        let is_kept = kept.is_some();
        let (object, told) = if let Some(kept) = kept {
            let told = self.told(object.object_name(), kept);
            (kept.object().clone(), told.cloned())
        } else {
            self.write(source, object, errors)
        };
        if object.broken().is_some() {
            return None;
        }
        let cause = match cause {
            // The store does not have this state, so the handlers receive it as a listed one.
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

    /// Removes one object if `source` delivered it, and returns the deletion for handlers, if any.
    pub(super) fn remove(&mut self, source: SourceId, deleted: Deleted<K>) -> Option<Change<K>> {
        let name = deleted.object_name();
        if self.entries.get(name)?.source() != source {
            return None; // another source has delivered an object with this name since then
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

    /// Replaces the objects of one source with a list. Returns the names of the removed and the listed
    /// objects.
    ///
    /// If `keeps` is true, an object whose revision has not changed is not replaced.
    pub(super) fn replace(
        &mut self,
        list: Replaced<K>,
        keeps: bool,
        errors: &mut Vec<IndexError>,
    ) -> Changed {
        let (source, objects) = (list.source, list.objects);
        let mut positions = Listed::of(&objects);
        if self.entries.len() == 0 && positions.are_in_order() {
            let listed = self.fill(source, objects, errors);
            self.set_revision(source, list.revision);
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
            // A name that the list has twice is delivered once, with its last state.
            let at = positions.position(&name, changed.listed.len());
            match changed.listed.get_mut(at) {
                Some((_, changed)) => *changed |= !same,
                None => changed.listed.push((name, !same)),
            }
        }
        let own = self.entries.iter();
        let own = own.filter(|(_, entry)| entry.source() == source);
        changed.gone = positions.gone(&changed.listed, own.map(|(name, _)| name));
        for name in &changed.gone {
            self.take(name);
        }
        self.set_revision(source, list.revision);
        changed
    }

    /// Checks that the names of new indices are unused.
    ///
    /// # Errors
    /// Returns an error if an index of the store already has one of the names, or if `new` contains a name
    /// twice.
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

    pub(super) fn remove_index(
        &mut self,
        index: &(impl IndexRef + ?Sized),
    ) -> Result<Index<K>, NotRemovable> {
        let slot = self.find(index)?.ok_or(NotRemovable::Namespace)?;
        Ok(Arc::make_mut(&mut self.indices).remove(slot))
    }

    /// Fills an empty store with a list, which must be ordered by name and contain each name once.
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
            (name, Entry::new(source, object))
        });
        self.entries = Tree::from_ordered(entries);
        let names = self.entries.iter().map(|(name, _)| name.clone());
        names.map(|name| (name, true)).collect()
    }

    /// Stores a new state of an object.
    ///
    /// Returns the stored state, and the state that handlers last received, if any.
    fn write(
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
        let old = self
            .entries
            .insert(name.clone(), Entry::new(source, object));
        let brought_by = old.as_ref().map(Entry::source);
        if brought_by != Some(source) {
            *self.count_mut(source) += 1;
        }
        let told = old.and_then(|old| self.forget(&name, old, brought_by != Some(source)));
        // Called after the old state was removed, because both states may share one body.
        kept.enters_store();
        if !is_live {
            self.broken.insert(name, told.clone());
            self.broken_version += 1;
        }
        (kept, told)
    }

    /// Updates the indices with a new state of an object. Index functions may decode the object. If decoding
    /// fails, marks `object` as broken.
    fn place_in_indices(&mut self, object: &mut Object<K>, errors: &mut Vec<IndexError>) {
        self.reindex(object.object_name(), Some(object), errors);
        if let Some(broken) = object.found_broken() {
            self.reindex(broken.object_name(), Some(&broken), errors);
            *object = broken;
        }
    }

    /// Marks an object as broken if a reader failed to decode the stored state. Returns whether this call
    /// marked the object.
    ///
    /// Handlers receive no event when an object is marked.
    pub(super) fn find_broken(&mut self, name: &ObjectName) -> bool {
        let entry = self.entries.get(name);
        let found = entry.and_then(|entry| Some((entry.source(), entry.object().found_broken()?)));
        // `None` if the state was replaced or removed since.
        // Index functions are not called with broken objects.
        let moved = found.map(|(source, broken)| self.write(source, broken, &mut Vec::new()));
        moved.is_some()
    }

    fn count_mut(&mut self, source: SourceId) -> &mut usize {
        Arc::make_mut(&mut self.counts).entry(source).or_default()
    }

    /// Removes an object from the store and the indices.
    ///
    /// Returns the state that handlers last received for the object, if any.
    fn take(&mut self, name: &ObjectName) -> Option<Object<K>> {
        let old = self.entries.remove(name)?;
        self.reindex(name, None, &mut Vec::new());
        self.forget(name, old, true)
    }

    /// Updates the counts for the entry `old`, which the caller has removed or replaced.
    ///
    /// `by_source` must be false if an entry of the same source replaced `old`. The number of objects of this
    /// source then does not change.
    ///
    /// Returns the state that handlers last received for the object, if any.
    fn forget(&mut self, name: &ObjectName, old: Entry<K>, by_source: bool) -> Option<Object<K>> {
        self.wire_bytes -= old.object().wire_bytes();
        old.object().leaves_store();
        if by_source {
            *self.count_mut(old.source()) -= 1;
        }
        if old.is_live() {
            return Some(old.into_object());
        }
        self.broken_version += 1;
        self.broken.remove(name).flatten()
    }

    /// Updates an object's values in all indices. `None` removes the object from all indices.
    fn reindex(
        &mut self,
        name: &ObjectName,
        state: Option<&Object<K>>,
        errors: &mut Vec<IndexError>,
    ) {
        for slot in 0..self.indices.len() {
            let index = &self.indices[slot];
            let values =
                state.map_or_else(Values::default, |state| values_of(index, state, errors));
            if index.postings.values(name) != &*values {
                Arc::make_mut(&mut self.indices)[slot]
                    .postings
                    .set_values(name, &values);
            }
        }
    }
}

/// Returns the values of an object in `index`.
///
/// If the index function fails, adds the error to `errors`, and returns no values.
pub(super) fn values_of<K>(
    index: &Index<K>,
    object: &Object<K>,
    errors: &mut Vec<IndexError>,
) -> Values {
    index.ask(object).unwrap_or_else(|error| {
        errors.push(error);
        Values::default()
    })
}
