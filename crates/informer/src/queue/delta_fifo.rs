//! [`DeltaFifo`]: keeps the order of objects, and per object the changes since it was last popped.

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

/// A map from keys to deltas, and a queue of the same keys.
///
/// ```text
///   keys:  default/a ── default/b ── shop/c
///   items: default/a → [Added, Updated, Deleted]
///          default/b → [Replaced]
///          shop/c    → [Sync]
/// ```
///
/// - A queued key keeps its place. [`pop`](Self::pop) returns all its deltas, oldest first, as one unit.
/// - Of two consecutive deletions the one with more information is kept; nothing else is merged.
/// - A list queues its objects, then a [`Deleted::FinalStateUnknown`] with the last known state for each object
///   that is not in it.
/// - A resync skips keys with queued deltas, so that an old state never follows a newer one.
///
/// The store is passed to [`delete`](Self::delete), [`replace`](Queue::replace) and [`resync`](Queue::resync). With
/// `&()`, an empty store, deletions are lost: an object that is neither queued nor known can't be found missing.
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
    /// Number of deltas of all keys.
    waiting: usize,
    population: Population,
    /// First lists that are complete without a pop, because they are empty.
    completed: VecDeque<SourceId>,
    key: Option<KeyFunc<K>>,
    /// Whether items of a list become Sync deltas instead of Replaced ones.
    emits_sync: bool,
}

/// Returns the key of an object, or an error.
type KeyFunc<K> = Box<
    dyn Fn(&Object<K>) -> Result<ObjectName, Box<dyn std::error::Error + Send + Sync>>
        + Send
        + Sync,
>;

/// An entry in the queue of keys.
enum Slot {
    Key(ObjectName),
    /// When all earlier entries are popped, the store has reached this revision.
    Bookmark(SourceId, ResourceVersion),
}

impl<K> DeltaFifo<K> {
    /// Creates an empty queue whose keys are `namespace/name`.
    #[doc(alias = "NewDeltaFIFO")]
    #[doc(alias = "NewDeltaFIFOWithOptions")]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another key function.
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

    /// Sets whether items of a list become Replaced deltas (the default), or Sync deltas as before client-go 1.18.
    #[must_use]
    #[doc(alias = "EmitDeltaTypeReplaced")]
    pub fn emit_replaced(mut self, emit_replaced: bool) -> Self {
        self.emits_sync = !emit_replaced;
        self
    }

    /// Returns the key of an object.
    ///
    /// # Errors
    /// The key function failed.
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

    /// Queues one change without a store: a deletion of a key that is not queued is ignored. Use
    /// [`delete`](Self::delete) to pass a store.
    ///
    /// # Errors
    /// The object has no key. It is not queued.
    #[doc(alias = "Add")]
    #[doc(alias = "Update")]
    pub fn push(&mut self, delta: Delta<K>) -> Result<(), KeyError<K>>
    where
        K: Send + Sync,
    {
        Queue::push(self, delta, &())
    }

    /// Queues a deletion; ignored if the key is neither queued nor in the store.
    ///
    /// # Errors
    /// The object has no key. It is not queued.
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

    /// Removes and returns the oldest key with all its deltas; `None` if no key is queued. Bookmarks before it are
    /// dropped; [`pop_batch`](Queue::pop_batch) returns them.
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

    /// Puts a popped unit back at the end, unless its key was queued again in the meantime.
    ///
    /// # Errors
    /// The key is queued with newer changes; the error returns the unit.
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

    /// Returns the queued deltas of a key, oldest first.
    #[doc(alias = "GetByKey")]
    #[doc(alias = "Get")]
    pub fn get(&self, key: &ObjectName) -> Option<&[Delta<K>]> {
        self.items.get(key).map(Vec::as_slice)
    }

    /// Returns the newest delta of each key, in the order of the queue.
    #[doc(alias = "List")]
    pub fn list(&self) -> impl Iterator<Item = &Delta<K>> {
        self.keys().filter_map(|key| self.items.get(key)?.last())
    }

    /// Returns the queued keys, in order.
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

    /// Whether no key is queued.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether the first list has been popped, or a single change was queued before any list.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        self.population.has_synced()
    }

    /// Removes and returns all units, oldest key first, for example before the queue is dropped.
    #[doc(alias = "Close")]
    #[doc(alias = "IsClosed")]
    #[doc(alias = "ErrFIFOClosed")]
    pub fn drain(&mut self) -> impl Iterator<Item = Popped<K>> {
        std::iter::from_fn(|| self.pop())
    }

    fn delta_key(&self, delta: &Delta<K>) -> Result<ObjectName, KeyError<K>> {
        match (delta.object(), delta.object_name()) {
            (Some(object), _) => self.key_of(object),
            // Only the name is known.
            (None, Some(name)) => Ok(name.clone()),
            // A delta without an object is never keyed.
            (None, None) => Ok(ObjectName::cluster("")),
        }
    }

    /// Queues a revision that the store reaches when all current entries are popped. Of consecutive ones the last of
    /// each source is kept, unless it is behind the one before.
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

    /// Returns the queued keys of one source that are not in `listed`, with the newest queued state of each.
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

    /// Queues the items of a list; returns their keys and the items without a key.
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
        // One unit, or a part of it up to `room`, with the revisions reached before and after it.
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
