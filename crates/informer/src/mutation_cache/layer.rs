//! [`Layer`] stores the local writes and deletions of a `MutationCache`, an overlay over an informer's cache,
//! and decides when to drop each write or deletion.
//!
//! Methods that receive a snapshot of the cache first drop outdated entries. These are expired writes and
//! deletions, and writes whose revision the cache has reached. The module uses tokio's clock for expiry, and
//! starts no task or timer.
//!
//! A write or deletion lapses when the layer drops it although the cache has not applied this change.
//! [`Layer::take_lapsed`] returns the names of the objects whose write or deletion lapsed.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc, time::Duration};

use kube_core::Resource;
use tokio::time::Instant;

use crate::{
    clock,
    indexer::Snapshot,
    object::{Object, ObjectName},
    shared_informer::reached,
};

/// Whether the overlay shows a local write of an object that the cache does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    Shown,
    Hidden,
}

/// The state that readers of a `MutationCache` see for one object name.
#[derive(Debug)]
pub(super) enum View<K> {
    Cache,
    Written(Object<K>),
    /// Readers see no object, because the cached object was deleted through the overlay.
    Gone,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of local writes, and also the maximum number of local deletions.
    pub(super) capacity: usize,
    pub(super) ttl: Duration,
    pub(super) absent: Absent,
    /// Number of reflectors that fill the cache.
    pub(super) sources: u32,
}

pub(super) struct Layer<K> {
    limits: Limits,
    written: BTreeMap<ObjectName, PendingWrite<K>>,
    /// The locally deleted objects, by name and uid.
    gone: BTreeMap<(ObjectName, Arc<str>), Since>,
    /// Sequence number ([`Since::order`]) of the newest write or deletion.
    came: u64,
    /// [`Snapshot::rollbacks`] of the newest snapshot that the layer received.
    rollbacks: u64,
    /// Written objects that the layer rejected or dropped.
    ///
    /// The caller must drop these objects after releasing the overlay's lock, because a destructor may call
    /// the overlay.
    pub(super) released: Vec<Object<K>>,
    /// Names of the objects whose write or deletion the layer dropped although the cache has not applied it.
    lapsed: Vec<ObjectName>,
}

/// The reason why the layer drops a local write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The cache contains the written state or a newer state, or no longer contains the object.
    Seen,
    /// The cache has all changes up to the write's revision, but never contained the written state or a newer
    /// state.
    ///
    /// For example, the informer's selector excludes the object.
    Lapsed,
}

struct PendingWrite<K> {
    object: Object<K>,
    since: Since,
    /// Whether at least one snapshot since the write contained the object. If so, a later snapshot without
    /// the object means that the object was deleted.
    cached: bool,
}

/// Sequence number and time at which a local write or deletion was added to the [`Layer`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Since {
    order: u64,
    at: Instant,
}

impl<K> View<K> {
    pub(super) fn written(&self) -> Option<&Object<K>> {
        match self {
            Self::Written(object) => Some(object),
            Self::Cache | Self::Gone => None,
        }
    }
}

impl<K> Layer<K> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            written: BTreeMap::new(),
            gone: BTreeMap::new(),
            came: 0,
            rollbacks: 0,
            released: Vec::new(),
            lapsed: Vec::new(),
        }
    }

    pub(super) fn take_lapsed(&mut self) -> Vec<ObjectName> {
        std::mem::take(&mut self.lapsed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.gone.is_empty()
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let written = self.written.values().map(|written| written.since.at);
        let first = written
            .chain(self.gone.values().map(|since| since.at))
            .min();
        first.map(|first| clock::after(first, self.limits.ttl))
    }
}

impl<K: Resource> Layer<K> {
    /// Adds a local write of an object.
    ///
    /// Does nothing if the layer contains a deletion of this object, or a newer write.
    ///
    /// Above the capacity, the oldest write is dropped.
    pub(super) fn put(&mut self, object: Object<K>, cache: &Snapshot<K>) {
        self.settle(cache);
        let name = object.object_name().clone();
        let deleted = self
            .gone
            .contains_key(&(name.clone(), Arc::from(object.uid())));
        let older = |known: &PendingWrite<K>| object.revision() < known.object.revision();
        if deleted || self.written.get(&name).is_some_and(older) {
            self.released.push(object);
            return;
        }
        let write = PendingWrite {
            object,
            since: self.now(),
            cached: false,
        };
        let replaced = self.written.insert(name.clone(), write);
        self.released.extend(replaced.map(|written| written.object));
        self.settle_name(&name, cache);
        while self.written.len() > self.limits.capacity {
            let oldest = self.written.iter().min_by_key(|(_, written)| written.since);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                break;
            };
            self.lapse(&oldest);
        }
    }

    /// Adds a local deletion of the object, and drops the object's local write.
    ///
    /// Above the capacity, the oldest deletion is dropped.
    pub(super) fn delete(&mut self, name: ObjectName, uid: Arc<str>, cache: &Snapshot<K>) {
        self.settle(cache);
        let written = self.written.get(&name);
        if written.is_some_and(|written| written.object.uid() == &*uid) {
            self.remove(&name);
        }
        let since = self.now();
        self.gone.insert((name, uid), since);
        while self.gone.len() > self.limits.capacity {
            let oldest = self.gone.iter().min_by_key(|(_, since)| **since);
            let Some((name, uid)) = oldest.map(|(gone, _)| gone.clone()) else {
                break;
            };
            self.reveal(name, uid, cache);
        }
    }

    /// Returns the state that readers see for `name`.
    ///
    /// First drops expired writes and deletions, and the write of `name` if this write is outdated.
    pub(super) fn view(&mut self, name: &ObjectName, cache: &Snapshot<K>) -> View<K> {
        self.forget(cache);
        self.settle_name(name, cache);
        self.look(name, cache)
    }

    /// Returns the views of all objects for which readers see another state than the cached one.
    pub(super) fn views(&mut self, cache: &Snapshot<K>) -> BTreeMap<ObjectName, View<K>> {
        self.settle(cache);
        let gone = self.gone.keys().map(|(name, _)| name);
        let names = self.written.keys().chain(gone);
        names
            .map(|name| (name.clone(), self.look(name, cache)))
            .filter(|(_, view)| !matches!(view, View::Cache))
            .collect()
    }

    /// Drops outdated writes, and returns the number of remaining writes.
    pub(super) fn pending(&mut self, cache: &Snapshot<K>) -> usize {
        self.settle(cache);
        self.written.len()
    }

    fn look(&self, name: &ObjectName, cache: &Snapshot<K>) -> View<K> {
        let cached = cache.get(name);
        if let Some(PendingWrite { object, .. }) = self.written.get(name)
            && (cached.is_some() || self.limits.absent == Absent::Shown)
        {
            return View::Written(object.clone());
        }
        let deleted = |cached: &Object<K>| {
            let uid = Arc::from(cached.uid());
            self.gone.contains_key(&(name.clone(), uid))
        };
        if !self.gone.is_empty() && cached.is_some_and(deleted) {
            return View::Gone;
        }
        View::Cache
    }

    /// Drops expired writes and deletions. Also drops each write if `cache` has reached the write's revision
    /// or has removed the object.
    ///
    /// Drops every write and deletion if the server's revision decreased.
    pub(super) fn settle(&mut self, cache: &Snapshot<K>) {
        self.forget(cache);
        let names: Vec<_> = self.written.keys().cloned().collect();
        for name in names {
            self.settle_name(&name, cache);
        }
    }

    /// Drops expired writes and deletions, or every write and deletion if the server's revision decreased.
    fn forget(&mut self, cache: &Snapshot<K>) {
        let went_back = cache.rollbacks() != self.rollbacks;
        self.rollbacks = cache.rollbacks();
        let (ttl, now) = (self.limits.ttl, Instant::now());
        let over = |since: &Since| went_back || now >= clock::after(since.at, ttl);
        let ended = self.gone.iter().filter(|(_, since)| over(since));
        let ended: Vec<_> = ended.map(|(gone, _)| gone.clone()).collect();
        for (name, uid) in ended {
            self.reveal(name, uid, cache);
        }
        let ended = self
            .written
            .iter()
            .filter(|(_, written)| over(&written.since));
        let ended: Vec<_> = ended.map(|(name, _)| name.clone()).collect();
        for name in &ended {
            // Revisions before and after a rollback are not comparable.
            if !went_back {
                self.settle_name(name, cache);
            }
            self.lapse(name);
        }
    }

    /// Drops the object's local write if `cache` has reached the write's revision or has removed the object.
    fn settle_name(&mut self, name: &ObjectName, cache: &Snapshot<K>) {
        let Some(written) = self.written.get_mut(name) else {
            return;
        };
        match written.end(name, cache, self.limits.sources) {
            Some(End::Seen) => self.remove(name),
            Some(End::Lapsed) => self.lapse(name),
            None => {}
        }
    }

    /// Drops the object's local write, if any, and adds the object's name to the names that
    /// [`take_lapsed`](Self::take_lapsed) returns.
    fn lapse(&mut self, name: &ObjectName) {
        if self.written.contains_key(name) {
            self.lapsed.push(name.clone());
            self.remove(name);
        }
    }

    /// Drops a local deletion. If the cache still contains the object with this `uid`, adds the object's name
    /// to the names that [`take_lapsed`](Self::take_lapsed) returns.
    fn reveal(&mut self, name: ObjectName, uid: Arc<str>, cache: &Snapshot<K>) {
        let hidden = cache.get(&name).is_some_and(|cached| cached.uid() == &*uid);
        if hidden {
            self.lapsed.push(name.clone());
        }
        self.gone.remove(&(name, uid));
    }

    fn remove(&mut self, name: &ObjectName) {
        let written = self.written.remove(name);
        self.released.extend(written.map(|written| written.object));
    }

    fn now(&mut self) -> Since {
        self.came += 1;
        Since {
            order: self.came,
            at: Instant::now(),
        }
    }
}

impl<K: Resource> PendingWrite<K> {
    /// Returns the reason to drop the local write of `name`, or `None` if the layer must keep the write.
    ///
    /// `sources` is the number of reflectors that fill the cache. If `cache` does not contain an object with
    /// this name, the reason [`End::Lapsed`] requires that all these reflectors have reached the write's
    /// revision.
    fn end(&mut self, name: &ObjectName, cache: &Snapshot<K>, sources: u32) -> Option<End> {
        let cached = cache.get(name);
        let same = cached.is_some_and(|cached| cached.uid() == self.object.uid());
        let disappeared = cached.is_none() && self.cached;
        self.cached |= same;
        let wanted = self.object.revision();
        let newer = cached
            .is_some_and(|cached| cached.revision().partial_cmp(wanted) != Some(Ordering::Less));
        if disappeared || newer {
            return Some(End::Seen);
        }
        let passed = reached(cache, Some(name), sources) >= *wanted;
        passed.then_some(End::Lapsed)
    }
}

#[cfg(test)]
mod tests;
