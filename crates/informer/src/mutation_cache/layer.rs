//! The entries of an overlay, which are local writes and deletions, and the rules by which they end.
//!
//! This module has no side effects and reads only tokio's clock. Methods that receive a snapshot of the cache
//! first drop the entries that have ended.
//!
//! A write or deletion that ends without the cache having shown its effect lapses: readers see another state than
//! before, and handlers may have received no event for it. The layer records the name, and the caller removes it
//! with [`Layer::take_lapsed`].

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc, time::Duration};

use kube_core::Resource;
use tokio::time::Instant;

use crate::{
    clock,
    indexer::Snapshot,
    object::{Object, ObjectName},
    shared_informer::reached,
};

/// Whether a write is visible while the cache has no object of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    Shown,
    Hidden,
}

/// The state that the overlay shows for a name, by its origin.
#[derive(Debug)]
pub(super) enum View<K> {
    /// The overlay shows the cached state.
    Cache,
    /// The overlay shows the local write.
    Written(Object<K>),
    /// The overlay shows no object, because it was deleted through the overlay.
    Gone,
}

/// Limits and options of the entries of an overlay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of writes, and also of deletions.
    pub(super) capacity: usize,
    pub(super) ttl: Duration,
    pub(super) absent: Absent,
    /// Number of sources of the cache.
    pub(super) sources: u32,
}

pub(super) struct Layer<K> {
    limits: Limits,
    /// The newest write of each name.
    written: BTreeMap<ObjectName, PendingWrite<K>>,
    /// Objects that were deleted through the overlay, by name and uid, with the time of the deletion.
    gone: BTreeMap<(ObjectName, Arc<str>), Since>,
    /// Number of writes and deletions added so far.
    came: u64,
    /// Number of rollbacks of the server's revision at the last check.
    rollbacks: u64,
    /// Removed objects, which the caller drops outside the lock.
    pub(super) released: Vec<Object<K>>,
    /// Names of writes and deletions that lapsed since the last [`Layer::take_lapsed`].
    lapsed: Vec<ObjectName>,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The cache has the write or a newer state, or has had the object and lost it. Handlers receive an event in
    /// each of these cases.
    Seen,
    /// The write ended in any other way.
    Lapsed,
}

struct PendingWrite<K> {
    object: Object<K>,
    since: Since,
    /// Whether the cache has contained an object of this uid since the write.
    ///
    /// If the cache no longer contains one, the object is deleted, regardless of the cache's revision: with a
    /// `DeltaFifo`, objects may be newer than that revision.
    cached: bool,
}

/// Time and order in which an entry was added.
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

    /// Returns whether there is neither a write nor a deletion, so that nothing can lapse.
    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.gone.is_empty()
    }

    /// Returns the earliest time at which a write or deletion expires.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let written = self.written.values().map(|written| written.since.at);
        let first = written
            .chain(self.gone.values().map(|since| since.at))
            .min();
        first.map(|first| clock::after(first, self.limits.ttl))
    }
}

impl<K: Resource> Layer<K> {
    /// Adds a write, unless the overlay has a newer write of the name or a deletion of the uid.
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

    /// Adds a deletion, which also ends the local write of that uid.
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

    /// Returns the state that the overlay shows for a name.
    pub(super) fn view(&mut self, name: &ObjectName, cache: &Snapshot<K>) -> View<K> {
        self.forget(cache);
        self.settle_name(name, cache);
        self.look(name, cache)
    }

    /// Returns the states of all names for which the overlay differs from the cache.
    pub(super) fn views(&mut self, cache: &Snapshot<K>) -> BTreeMap<ObjectName, View<K>> {
        self.settle(cache);
        let gone = self.gone.keys().map(|(name, _)| name);
        let names = self.written.keys().chain(gone);
        names
            .map(|name| (name.clone(), self.look(name, cache)))
            .filter(|(_, view)| !matches!(view, View::Cache))
            .collect()
    }

    /// Returns the number of writes that the cache does not contain yet.
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

    /// Drops all ended writes and deletions.
    pub(super) fn settle(&mut self, cache: &Snapshot<K>) {
        self.forget(cache);
        let names: Vec<_> = self.written.keys().cloned().collect();
        for name in names {
            self.settle_name(&name, cache);
        }
    }

    /// Drops expired writes and deletions, or all of them if the server's revision went backwards.
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

    /// Drops the write of one name if the write has ended.
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

    /// Drops the write of a name, if there is one, and records the name as lapsed.
    fn lapse(&mut self, name: &ObjectName) {
        if self.written.contains_key(name) {
            self.lapsed.push(name.clone());
            self.remove(name);
        }
    }

    /// Drops a deletion, which lapses if the cache still has the object.
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
    /// Returns how the write ended, or `None` if the cache has not reached its revision.
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
