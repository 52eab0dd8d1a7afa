//! [`Maintenance`]: how a derived index is kept, whichever of the two caches changes.
//!
//! After a change of either, [`Maintenance::place`] leaves the index as if the objects concerned had been
//! asked when, or after, that change was in its cache. Two places make it so:
//!
//! - Two handlers may come to one object at a time, and the one that read the older caches must not
//!   write last. So an object is claimed by one of them, and the other waits and asks again.
//! - What an object depends on is written down before it is looked up: of a change that the look-up
//!   does not see yet, the other handler hears later, and finds the object by what is written down.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::{
    event_handler::{Event, EventHandler},
    indexer::{IndexError, Indexer, Postings, Values, ask, sorted},
    limits::{MESSAGE_BYTES, one_line},
    logs::LogLimiter,
    object::ObjectName,
};

/// What an object depends on: the names of others.
pub(super) type DependsOn<K> = Box<dyn Fn(&K) -> Result<Vec<ObjectName>, String> + Send + Sync>;
/// Which values an object has, as far as the others were found.
pub(super) type ValuesOf<K, O> =
    Box<dyn Fn(&K, &[Arc<O>]) -> Result<Vec<Arc<str>>, String> + Send + Sync>;

/// What is kept, and who is at it.
#[derive(Default)]
pub(super) struct Board {
    kept: Mutex<Kept>,
    /// Wakes the one that waits for a claim; there are two handlers, so no more than one waits.
    released: Notify,
}

#[derive(Default)]
struct Kept {
    values: Postings,
    /// The same, with the names that an object depends on in place of values.
    dependencies: Postings,
    errors: BTreeMap<ObjectName, IndexError>,
    claimed: BTreeSet<ObjectName>,
    not_indexed: LogLimiter,
}

impl Board {
    /// Which objects stand under which values, now.
    pub(super) fn values(&self) -> Postings {
        self.kept.lock().values.clone()
    }

    pub(super) fn errors(&self) -> Vec<IndexError> {
        self.kept.lock().errors.values().cloned().collect()
    }

    /// The objects that depend on another one.
    fn dependants(&self, other: &ObjectName) -> Vec<ObjectName> {
        let dependencies = self.kept.lock().dependencies.clone();
        dependencies.names(other.as_str()).cloned().collect()
    }

    async fn claim(self: Arc<Self>, name: &ObjectName) -> Claim {
        while !self.kept.lock().claimed.insert(name.clone()) {
            self.released.notified().await;
        }
        Claim {
            board: self,
            name: name.clone(),
        }
    }
}

/// One object, which nobody else places meanwhile.
struct Claim {
    board: Arc<Board>,
    name: ObjectName,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.board.kept.lock().claimed.remove(&self.name);
        self.board.released.notify_one();
    }
}

impl Claim {
    fn depend_on(&self, others: &[ObjectName]) {
        let mut kept = self.board.kept.lock();
        let texts = others.iter().map(|other| Arc::clone(other.text()));
        let texts = texts.map(|text| kept.dependencies.shared(text)).collect();
        kept.dependencies.place(&self.name, &sorted(texts));
    }

    fn place(&self, values: Vec<Arc<str>>) {
        let mut kept = self.board.kept.lock();
        let values = values.into_iter().map(|value| kept.values.shared(value));
        let values = sorted(values.collect());
        if kept.values.values(&self.name) != &*values {
            kept.values.place(&self.name, &values);
        }
        kept.errors.remove(&self.name);
    }

    fn leave_out(&self, error: IndexError) {
        let mut kept = self.board.kept.lock();
        let now = Instant::now();
        let objects = kept.not_indexed.left_out(now);
        if objects > 0 {
            tracing::warn!(objects, "more were not indexed within a minute");
        }
        if kept.not_indexed.line(now) {
            tracing::warn!(%error, "not indexed");
        }
        kept.values.place(&self.name, &Values::default());
        kept.errors.insert(self.name.clone(), error);
    }
}

/// The two caches, what is asked about their objects, and the index that comes of it.
pub(super) struct Maintenance<K, O> {
    pub(super) name: Arc<str>,
    pub(super) objects: Indexer<K>,
    pub(super) others: Indexer<O>,
    pub(super) depends_on: DependsOn<K>,
    pub(super) values: ValuesOf<K, O>,
    /// Nothing is kept for an index that nobody has.
    pub(super) board: Weak<Board>,
}

impl<K, O> Maintenance<K, O> {
    /// Places every object that depends on another one, which has changed, come or gone.
    pub(super) async fn place_dependants(&self, other: &ObjectName) {
        let Some(board) = self.board.upgrade() else {
            return;
        };
        let dependants = board.dependants(other);
        // Whoever drops the index in the middle of this ends it.
        drop(board);
        for name in dependants {
            self.place(&name).await;
            // The dependants of one object may be all there are; others want the thread too.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Places an object where both caches now say that it belongs.
    pub(super) async fn place(&self, name: &ObjectName) {
        let Some(board) = self.board.upgrade() else {
            return;
        };
        let claim = board.claim(name).await;
        if let Err(reason) = self.try_place(&claim) {
            claim.leave_out(IndexError {
                index: Arc::clone(&self.name),
                object: name.clone(),
                reason: one_line(&reason, MESSAGE_BYTES),
            });
        }
    }

    fn try_place(&self, claim: &Claim) -> Result<(), String> {
        let objects = self.objects.snapshot();
        let object = objects.told(&claim.name);
        let Some(object) = object.and_then(|object| object.get().ok()) else {
            claim.depend_on(&[]);
            claim.place(Vec::new());
            return Ok(());
        };
        let names = ask(|| (self.depends_on)(&object));
        claim.depend_on(names.as_deref().unwrap_or_default());
        // Not before: see above.
        let others = self.others.snapshot();
        let found = names?.into_iter();
        let found = found.filter_map(|name| others.told(&name)?.get().ok());
        let found: Vec<Arc<O>> = found.collect();
        claim.place(ask(|| (self.values)(&object, &found))?);
        Ok(())
    }
}

/// Hears of the objects that the index finds.
pub(super) struct Objects<K, O>(pub(super) Arc<Maintenance<K, O>>);

impl<K: Send + Sync + 'static, O: Send + Sync + 'static> EventHandler<K> for Objects<K, O> {
    async fn handle(&mut self, event: Event<K>) {
        if let Some(name) = event.object_name() {
            self.0.place(name).await;
        }
    }
}

/// Hears of the objects that they depend on.
pub(super) struct Others<K, O>(pub(super) Arc<Maintenance<K, O>>);

impl<K: Send + Sync + 'static, O: Send + Sync + 'static> EventHandler<O> for Others<K, O> {
    async fn handle(&mut self, event: Event<O>) {
        if let Some(name) = event.object_name() {
            self.0.place_dependants(name).await;
        }
    }
}
