//! What lies over a cache: own writes and own deletions, and the rules by which they end.
//!
//! Pure but for tokio's clock. Every method is lent the cache of the moment, and lets go of what the
//! cache has caught up with before it answers.
//!
//! A write or deletion that ends without the cache having shown its effect is a lapse: readers see
//! another state than before, and handlers may have received no event for it. The layer records the
//! name; the caller takes it with [`Layer::take_lapsed`].

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc, time::Duration};

use kube_core::Resource;
use tokio::time::Instant;

use crate::{
    clock,
    indexer::Snapshot,
    object::{Object, ObjectName},
    shared_informer::reached,
};

/// Whether a write is shown of which the cache has no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    Shown,
    Hidden,
}

/// How one name is to be read.
#[derive(Debug)]
pub(super) enum View<K> {
    /// As the cache has it.
    Cache,
    /// As it was written here.
    Written(Object<K>),
    /// Not at all: it was deleted here.
    Gone,
}

/// What bounds a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// So many writes, and as many deletions.
    pub(super) capacity: usize,
    pub(super) ttl: Duration,
    pub(super) absent: Absent,
    /// How many sources the cache has.
    pub(super) sources: u32,
}

pub(super) struct Layer<K> {
    limits: Limits,
    /// The newest write of each name.
    written: BTreeMap<ObjectName, Written<K>>,
    /// The uids that were deleted.
    gone: BTreeMap<(ObjectName, Arc<str>), Since>,
    /// Counts what came in.
    came: u64,
    /// How often the server's revision had gone backwards when this was last looked at.
    rollbacks: u64,
    /// What was let go of and waits to be dropped outside the lock.
    pub(super) let_go: Vec<Object<K>>,
    /// The names whose write or deletion has lapsed since they were taken last.
    lapsed: Vec<ObjectName>,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The cache has it or something newer, or has had its object and lost it: handlers receive an
    /// event for each of these.
    Seen,
    /// In any other way.
    Lapsed,
}

struct Written<K> {
    object: Object<K>,
    since: Since,
    /// Whether the cache has had an object of this uid since: if it has none any more, the object is
    /// gone, however far the cache's revision is (a `DeltaFifo` runs ahead of it).
    cached: bool,
}

/// When something came in, and in which order.
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
            let_go: Vec::new(),
            lapsed: Vec::new(),
        }
    }

    pub(super) fn take_lapsed(&mut self) -> Vec<ObjectName> {
        std::mem::take(&mut self.lapsed)
    }

    /// Whether there is neither a write nor a deletion, so that nothing can lapse.
    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.gone.is_empty()
    }

    /// When the first write or deletion has had its time.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let written = self.written.values().map(|written| written.since.at);
        let first = written
            .chain(self.gone.values().map(|since| since.at))
            .min();
        first.map(|first| clock::after(first, self.limits.ttl))
    }
}

impl<K: Resource> Layer<K> {
    /// Takes a write, unless something newer is known.
    pub(super) fn put(&mut self, object: Object<K>, cache: &Snapshot<K>) {
        self.settle(cache);
        let name = object.object_name().clone();
        let deleted = self
            .gone
            .contains_key(&(name.clone(), Arc::from(object.uid())));
        let older = |known: &Written<K>| object.revision() < known.object.revision();
        if deleted || self.written.get(&name).is_some_and(older) {
            self.let_go.push(object);
            return;
        }
        let write = Written {
            object,
            since: self.now(),
            cached: false,
        };
        let replaced = self.written.insert(name.clone(), write);
        self.let_go.extend(replaced.map(|written| written.object));
        self.settle_name(&name, cache);
        while self.written.len() > self.limits.capacity {
            let oldest = self.written.iter().min_by_key(|(_, written)| written.since);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                break;
            };
            self.lapse(&oldest);
        }
    }

    /// Takes a deletion, which ends the writes of that uid too.
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

    /// How a name is to be read.
    pub(super) fn view(&mut self, name: &ObjectName, cache: &Snapshot<K>) -> View<K> {
        self.forget(cache);
        self.settle_name(name, cache);
        self.look(name, cache)
    }

    /// All names that are not to be read as the cache has them.
    pub(super) fn views(&mut self, cache: &Snapshot<K>) -> BTreeMap<ObjectName, View<K>> {
        self.settle(cache);
        let gone = self.gone.keys().map(|(name, _)| name);
        let names = self.written.keys().chain(gone);
        names
            .map(|name| (name.clone(), self.look(name, cache)))
            .filter(|(_, view)| !matches!(view, View::Cache))
            .collect()
    }

    /// How many writes the cache has not caught up with.
    pub(super) fn pending(&mut self, cache: &Snapshot<K>) -> usize {
        self.settle(cache);
        self.written.len()
    }

    fn look(&self, name: &ObjectName, cache: &Snapshot<K>) -> View<K> {
        let cached = cache.get(name);
        if let Some(Written { object, .. }) = self.written.get(name)
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

    /// Lets go of everything that has ended.
    pub(super) fn settle(&mut self, cache: &Snapshot<K>) {
        self.forget(cache);
        let names: Vec<_> = self.written.keys().cloned().collect();
        for name in names {
            self.settle_name(&name, cache);
        }
    }

    /// Lets go of what has had its time, and of everything when the server has gone back.
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
            // Revisions of before a rollback have no order with those of after it.
            if !went_back {
                self.settle_name(name, cache);
            }
            self.lapse(name);
        }
    }

    /// Lets go of the write of one name if the cache has caught up with it.
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

    /// Lets go of a write that the cache has not shown, if there is one.
    fn lapse(&mut self, name: &ObjectName) {
        if self.written.contains_key(name) {
            self.lapsed.push(name.clone());
            self.remove(name);
        }
    }

    /// Lets go of a deletion, which has lapsed if the cache still has the object.
    fn reveal(&mut self, name: ObjectName, uid: Arc<str>, cache: &Snapshot<K>) {
        let hidden = cache.get(&name).is_some_and(|cached| cached.uid() == &*uid);
        if hidden {
            self.lapsed.push(name.clone());
        }
        self.gone.remove(&(name, uid));
    }

    fn remove(&mut self, name: &ObjectName) {
        let written = self.written.remove(name);
        self.let_go.extend(written.map(|written| written.object));
    }

    fn now(&mut self) -> Since {
        self.came += 1;
        Since {
            order: self.came,
            at: Instant::now(),
        }
    }
}

impl<K: Resource> Written<K> {
    /// Whether the cache has caught up with the write, and how it ended then.
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
