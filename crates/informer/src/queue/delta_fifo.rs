//! Defines [`DeltaFifo`], a queue of keys. For each key, the queue stores all changes since the key was last
//! popped.
//!
//! The queue has no access to the store. Methods that need the stored objects receive them as an argument.

mod popped;

pub use self::popped::Popped;

use std::collections::{BTreeSet, VecDeque};

use derive_where::derive_where;

use super::{Batch, KeyError, KeyErrors, Population, Queue, Replaced};
use crate::{
    object::{Deleted, Known, Object, ObjectName, ResourceVersion, SourceId},
    panics::{Panicked, confined},
    reflector::{Delta, DeltaKind},
};

/// A queue of keys, each with all its deltas (changes) since the key was last popped.
///
/// ```text
///   keys:  default/a ── default/b ── shop/c
///   items: default/a → [Added, Updated, Deleted]
///          default/b → [Replaced]
///          shop/c    → [Sync]
/// ```
///
/// Each delta has a source, which is the reflector that reported the change.
///
/// - A new delta of a queued key does not change the key's position. [`pop`](Self::pop) returns all deltas of
///   the first key, oldest first.
/// - If two consecutive deltas of a key are deletions of the same source, the queue keeps only the older
///   deletion. Exception: if the final state in the older deletion is unknown, the queue keeps only the newer
///   deletion. No other deltas are merged.
/// - [`replace`](Queue::replace) queues the objects of a source's list. It then queues a
///   [`Deleted::FinalStateUnknown`] for each other object of that source that is queued or in the store.
/// - [`resync`](Queue::resync) skips keys with queued deltas, so that an old state never follows a newer one.
///
/// The store of known objects is an argument of [`delete`](Self::delete), [`replace`](Queue::replace) and
/// [`resync`](Queue::resync). If the argument is `&()`, an empty store, deletions of objects that are not
/// queued are lost.
#[doc(alias = "DeltaFIFO")]
#[doc(alias = "DeltaFIFOOptions")]
#[derive_where(Default)]
pub struct DeltaFifo<K> {
    #[expect(
        clippy::disallowed_types,
        reason = "pure look-up, the order is that of `keys`"
    )]
    items: std::collections::HashMap<ObjectName, Vec<Delta<K>>>,
    keys: VecDeque<Slot>,
    /// Total number of queued deltas over all keys.
    waiting: usize,
    population: Population,
    /// Sources whose first list has ended, but is not reported in [`Batch::completes`] yet.
    ///
    /// A batch can report only one source, so later batches report these sources.
    completed: VecDeque<SourceId>,
    key: Option<KeyFunc<K>>,
    /// Whether listed objects are queued as `Sync` deltas instead of `Replaced` deltas.
    emits_sync: bool,
}

type KeyFunc<K> = Box<
    dyn Fn(&Object<K>) -> Result<ObjectName, Box<dyn std::error::Error + Send + Sync>>
        + Send
        + Sync,
>;

/// An entry of the queue: a key with deltas in `items`, or a bookmark.
enum Slot {
    Key(ObjectName),
    /// The store reaches this revision of the source once all earlier entries are popped and applied.
    Bookmark(SourceId, ResourceVersion),
}

impl<K> DeltaFifo<K> {
    /// Creates an empty queue in which the key of an object is `namespace/name`.
    #[doc(alias = "NewDeltaFIFO")]
    #[doc(alias = "NewDeltaFIFOWithOptions")]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the function that returns the key of an object, instead of `namespace/name`.
    #[must_use]
    #[doc(alias = "KeyFunc")]
    pub fn key_func<E>(
        mut self,
        key: impl Fn(&Object<K>) -> Result<ObjectName, E> + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.key = Some(Box::new(move |object| key(object).map_err(Into::into)));
        self
    }

    /// Sets whether the objects of a list are queued as `Replaced` deltas, which is the default. If false,
    /// the objects are queued as `Sync` deltas, as in client-go before 1.18.
    #[must_use]
    #[doc(alias = "EmitDeltaTypeReplaced")]
    pub fn emit_replaced(mut self, emit_replaced: bool) -> Self {
        self.emits_sync = !emit_replaced;
        self
    }

    /// Returns the key of an object.
    ///
    /// # Errors
    /// Returns an error if the key function fails or panics.
    #[doc(alias = "KeyOf")]
    pub fn key_of(&self, object: &Object<K>) -> Result<ObjectName, KeyError<K>> {
        match &self.key {
            None => Ok(object.object_name().clone()),
            Some(key) => {
                let named = confined(|| key(object));
                let named =
                    named.unwrap_or_else(|Panicked| Err("the key function panicked".into()));
                named.map_err(|source| KeyError {
                    object: object.clone(),
                    source,
                })
            }
        }
    }

    /// Queues one change. A deletion is ignored unless its key is queued, because this method has no access
    /// to the store. [`delete`](Self::delete) also queues deletions of objects in the store.
    ///
    /// # Errors
    /// Returns an error if the key function fails. The change is not queued.
    #[doc(alias = "Add")]
    #[doc(alias = "Update")]
    pub fn push(&mut self, delta: Delta<K>) -> Result<(), KeyError<K>>
    where
        K: Send + Sync,
    {
        Queue::push(self, delta, &())
    }

    /// Queues a deletion if the key is queued, or if `known` contains the object and `source` is the source
    /// from which the object was received. Ignores all other deletions.
    ///
    /// # Errors
    /// Returns an error if the key function fails. The deletion is not queued.
    #[doc(alias = "Delete")]
    pub fn delete(
        &mut self,
        source: SourceId,
        deleted: Deleted<K>,
        known: &dyn Known<K>,
    ) -> Result<(), KeyError<K>> {
        let name = deleted.object_name().clone();
        let revision = match &deleted {
            Deleted::Known(object) => object.revision().clone(),
            Deleted::FinalStateUnknown { .. } => ResourceVersion::UNSET,
        };
        let delta = Delta::new(source, DeltaKind::Deleted(deleted));
        let key = self.delta_key(&delta)?;
        self.population.change_before_list(source);
        let is_known = || known.known(&name).is_some_and(|(from, _)| from == source);
        if self.items.contains_key(&key) || is_known() {
            self.queue(key, delta);
        }
        self.bookmark(source, revision);
        Ok(())
    }

    /// Removes and returns the first key with all its deltas; `None` if no key is queued.
    ///
    /// Drops the bookmarks that are queued before the key. [`pop_batch`](Queue::pop_batch) does not drop
    /// bookmarks; it returns them.
    #[doc(alias = "Pop")]
    pub fn pop(&mut self) -> Option<Popped<K>> {
        loop {
            if let Slot::Key(name) = self.keys.pop_front()?
                && let Some((popped, _)) = self.take(name)
            {
                return Some(popped);
            }
        }
    }

    /// Adds a popped key with its deltas to the end of the queue, unless the key is already queued again.
    ///
    /// # Errors
    /// Returns the argument if the key is already queued with newer changes, or if the argument has no
    /// deltas.
    #[doc(alias = "ErrRequeue")]
    #[doc(alias = "AddIfNotPresent")]
    pub fn add_if_not_present(&mut self, popped: Popped<K>) -> Result<(), Popped<K>> {
        if let Some(delta) = popped.deltas.first() {
            self.population.change_before_list(delta.source);
        }
        if popped.deltas.is_empty() || self.items.contains_key(&popped.name) {
            return Err(popped);
        }
        self.waiting += popped.deltas.len();
        self.keys.push_back(Slot::Key(popped.name.clone()));
        self.items.insert(popped.name, popped.deltas);
        Ok(())
    }

    /// Returns the queued deltas of a key, the oldest first; `None` if the key is not queued.
    #[doc(alias = "GetByKey")]
    #[doc(alias = "Get")]
    pub fn get(&self, key: &ObjectName) -> Option<&[Delta<K>]> {
        self.items.get(key).map(Vec::as_slice)
    }

    /// Returns the newest delta of each queued key, in the order of the queue.
    #[doc(alias = "List")]
    pub fn list(&self) -> impl Iterator<Item = &Delta<K>> {
        self.keys().filter_map(|key| self.items.get(key)?.last())
    }

    /// Returns the queued keys, in the order of the queue.
    #[doc(alias = "ListKeys")]
    pub fn keys(&self) -> impl Iterator<Item = &ObjectName> {
        self.keys.iter().filter_map(|slot| match slot {
            Slot::Key(key) => Some(key),
            Slot::Bookmark(..) => None,
        })
    }

    /// Returns the number of queued keys.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether no key is queued.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns whether the queue has synced: all changes of every source's first list have been popped.
    ///
    /// A source is one reflector. A source counts as synced at once if the source reports a change before the
    /// first list, or if the first list queues no changes. A source that has not reported a list or a change
    /// is ignored; bookmarks do not count as changes. Returns false if no source has reported a list or a
    /// change.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        self.population.has_synced()
    }

    /// Returns an iterator that pops all keys with their deltas, in the order of the queue.
    #[doc(alias = "Close")]
    #[doc(alias = "IsClosed")]
    #[doc(alias = "ErrFIFOClosed")]
    pub fn drain(&mut self) -> impl Iterator<Item = Popped<K>> {
        std::iter::from_fn(|| self.pop())
    }

    fn delta_key(&self, delta: &Delta<K>) -> Result<ObjectName, KeyError<K>> {
        match (delta.object(), delta.object_name()) {
            (Some(object), _) => self.key_of(object),
            // A deletion without a state contains only the name of the object.
            (None, Some(name)) => Ok(name.clone()),
            // Not called for a delta without a single object, which has no key.
            (None, None) => Ok(ObjectName::cluster("")),
        }
    }

    /// Queues a bookmark at the end of the queue. Does nothing if `revision` is unset.
    ///
    /// If a bookmark of the source already follows the last queued key, that bookmark is updated instead.
    /// The update does not lower the bookmark's revision, unless the server may have been restored from a
    /// backup.
    fn bookmark(&mut self, source: SourceId, revision: ResourceVersion) {
        if revision.is_unset() {
            return;
        }
        for slot in self.keys.iter_mut().rev() {
            match slot {
                Slot::Key(_) => break,
                Slot::Bookmark(from, reached) if *from == source => {
                    if !revision.is_behind(reached) {
                        *reached = revision;
                    }
                    return;
                }
                Slot::Bookmark(..) => {}
            }
        }
        self.keys.push_back(Slot::Bookmark(source, revision));
    }

    fn queue(&mut self, key: ObjectName, delta: Delta<K>) {
        if let Some(deltas) = self.items.get_mut(&key) {
            let before = deltas.len();
            deltas.push(delta);
            popped::merge_deletions(deltas);
            self.waiting += deltas.len() - before;
        } else {
            self.waiting += 1;
            self.keys.push_back(Slot::Key(key.clone()));
            self.items.insert(key, vec![delta]);
        }
    }

    /// Returns the source's queued keys that are not in `listed`, each with the deletion to queue.
    fn queued_and_gone(
        &self,
        source: SourceId,
        listed: &BTreeSet<ObjectName>,
    ) -> Vec<(ObjectName, Deleted<K>)> {
        let gone = self.keys().filter(|key| !listed.contains(*key));
        gone.filter_map(|key| {
            let newest = self.items.get(key)?.last()?;
            let deleted = Deleted::FinalStateUnknown {
                name: newest.object_name()?.clone(),
                last_known: newest.object().cloned(),
            };
            (newest.source == source).then(|| (key.clone(), deleted))
        })
        .collect()
    }

    /// Queues the objects of a list, except those for which the key function fails.
    ///
    /// Returns the keys of the queued objects, and the errors of the key function.
    fn queue_items(
        &mut self,
        source: SourceId,
        objects: Vec<Object<K>>,
    ) -> (BTreeSet<ObjectName>, Vec<KeyError<K>>) {
        let mut listed = BTreeSet::new();
        let mut errors = Vec::new();
        for object in objects {
            match self.key_of(&object) {
                Ok(key) => {
                    let kind = if self.emits_sync {
                        DeltaKind::Sync(object)
                    } else {
                        DeltaKind::Replaced(object)
                    };
                    listed.insert(key.clone());
                    self.queue(key, Delta::new(source, kind));
                }
                Err(error) => errors.push(error),
            }
        }
        (listed, errors)
    }
}

impl<K: Send + Sync> Queue<K> for DeltaFifo<K> {
    fn push(&mut self, delta: Delta<K>, known: &dyn Known<K>) -> Result<(), KeyError<K>> {
        match delta.kind {
            DeltaKind::Deleted(deleted) => self.delete(delta.source, deleted, known),
            DeltaKind::Bookmark { revision } => {
                self.bookmark(delta.source, revision);
                Ok(())
            }
            DeltaKind::SyncAll => {
                self.resync(known);
                Ok(())
            }
            DeltaKind::ReplacedAll { objects, revision } => {
                let source = delta.source;
                let list = Replaced {
                    source,
                    objects,
                    revision,
                };
                let replaced = self.replace(list, known);
                replaced.map_err(|KeyErrors(mut errors)| errors.swap_remove(0))
            }
            DeltaKind::Added(_)
            | DeltaKind::Updated(_)
            | DeltaKind::Replaced(_)
            | DeltaKind::Sync(_) => {
                let source = delta.source;
                let told = matches!(delta.kind, DeltaKind::Added(_) | DeltaKind::Updated(_));
                let revision = delta.object().map(|object| object.revision().clone());
                let key = self.delta_key(&delta)?;
                self.population.change_before_list(source);
                self.queue(key, delta);
                self.bookmark(source, revision.filter(|_| told).unwrap_or_default());
                Ok(())
            }
        }
    }

    fn replace(&mut self, list: Replaced<K>, known: &dyn Known<K>) -> Result<(), KeyErrors<K>> {
        let source = list.source;
        let (listed, errors) = self.queue_items(source, list.objects);
        let mut gone = self.queued_and_gone(source, &listed);
        known.for_each(&mut |from, name, object| {
            // A known object that the key function can't name was never queued either.
            if from == source
                && let Ok(key) = self.key_of(object)
                && !listed.contains(&key)
                && !self.items.contains_key(&key)
            {
                let deleted = Deleted::FinalStateUnknown {
                    name: name.clone(),
                    last_known: Some(object.clone()),
                };
                gone.push((key, deleted));
            }
        });
        let initial = listed.len() + gone.len();
        for (key, deleted) in gone {
            self.queue(key, Delta::new(source, DeltaKind::Deleted(deleted)));
        }
        if self.population.list(source, initial) && initial == 0 {
            self.completed.push_back(source);
        }
        self.bookmark(source, list.revision);
        if errors.is_empty() {
            Ok(())
        } else {
            Err(KeyErrors(errors))
        }
    }

    fn resync(&mut self, known: &dyn Known<K>) {
        known.for_each(&mut |source, _, object| {
            // A known object that the key function can't name was never queued either.
            if let Ok(key) = self.key_of(object)
                && !self.items.contains_key(&key)
            {
                self.queue(key, Delta::new(source, DeltaKind::Sync(object.clone())));
            }
        });
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<K>> {
        let mut batch = Batch {
            deltas: Vec::new(),
            in_initial_list: false,
            completes: self.completed.pop_front(),
            reached: Vec::new(),
        };
        if batch.completes.is_some() {
            batch.in_initial_list = true;
            return Some(batch);
        }
        if room == 0 {
            return None;
        }
        // Pop the deltas of one key, at most `room` of them, and the bookmarks before and after the key.
        loop {
            match self.keys.pop_front() {
                Some(Slot::Bookmark(source, revision)) => batch.reached.push((source, revision)),
                Some(Slot::Key(name)) if batch.deltas.is_empty() => {
                    if let Some(deltas) = self.take_part(&name, room) {
                        batch.in_initial_list = self.is_initial(&deltas);
                        batch.deltas = deltas;
                        self.keys.push_front(Slot::Key(name));
                        break;
                    }
                    if let Some((popped, completes)) = self.take(name) {
                        batch.deltas = popped.deltas;
                        batch.in_initial_list = popped.in_initial_list;
                        batch.completes = completes;
                    }
                }
                Some(next) => {
                    self.keys.push_front(next);
                    break;
                }
                None => break,
            }
        }
        let empty = batch.deltas.is_empty() && batch.reached.is_empty();
        (!empty).then_some(batch)
    }

    fn len(&self) -> usize {
        self.waiting
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.completed.is_empty()
    }
}

#[cfg(test)]
mod tests;
