//! Updates a derived index after changes of the two caches from which the index is computed.
//!
//! A derived index has two handlers. One handler receives the events of the indexed objects. The other
//! handler receives the events of their dependencies, which are the objects on which an indexed object
//! depends. For each event, the handler calls [`Maintenance`] to evaluate the affected indexed objects. An
//! evaluation reads an object and its dependencies from the current caches, calls the index functions, and
//! writes the results to the index. After a handler has handled the event of a change, the index reflects
//! that change or a later one. Two rules guarantee this:
//!
//! - A handler locks an object with a [`Claim`] before it evaluates the object. If the other handler has
//!   locked the same object, the handler waits for the release, and then reads the caches. So an evaluation
//!   never overwrites the results of an evaluation that read newer caches.
//! - An evaluation records the names of the dependencies before it reads the dependencies from the cache. If
//!   the cache receives a change of a dependency after that read, the handler of the dependencies receives
//!   the event later. The recorded names then identify the indexed objects that depend on the changed
//!   object, and the handler evaluates these indexed objects again.
//!
//! This module does not register the handlers. The parent module does.

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

/// Function that returns the names of the objects on which an indexed object depends.
pub(super) type DependsOn<K> = Box<dyn Fn(&K) -> Result<Vec<ObjectName>, String> + Send + Sync>;
/// Function that returns the index values of an indexed object.
///
/// The arguments are the indexed object, and the objects on which it depends. Objects that are not in the
/// cache or that failed to decode are omitted.
pub(super) type ValuesOf<K, O> =
    Box<dyn Fn(&K, &[Arc<O>]) -> Result<Vec<Arc<str>>, String> + Send + Sync>;

/// The content of a derived index, and the names of the objects whose index entries are being updated.
#[derive(Default)]
pub(super) struct Board {
    kept: Mutex<Kept>,
    /// Notified when a [`Claim`] is dropped.
    ///
    /// A handler that must update an object waits while the other handler has a claim on this object. The
    /// index has two handlers, so at most one waits.
    released: Notify,
}

#[derive(Default)]
struct Kept {
    values: Postings,
    /// Maps each dependency to the objects that depend on it, and each object to its dependencies.
    dependencies: Postings,
    errors: BTreeMap<ObjectName, IndexError>,
    claimed: BTreeSet<ObjectName>,
    not_indexed: LogLimiter,
}

impl Board {
    /// Returns a snapshot of the index content.
    pub(super) fn values(&self) -> Postings {
        self.kept.lock().values.clone()
    }

    pub(super) fn errors(&self) -> Vec<IndexError> {
        self.kept.lock().errors.values().cloned().collect()
    }

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

/// Exclusive permission to change the index entries of one object. Dropping this value releases the
/// permission.
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
        kept.dependencies.set_values(&self.name, &sorted(texts));
    }

    fn set_values(&self, values: Vec<Arc<str>>) {
        let mut kept = self.board.kept.lock();
        let values = values.into_iter().map(|value| kept.values.shared(value));
        let values = sorted(values.collect());
        if kept.values.values(&self.name) != &*values {
            kept.values.set_values(&self.name, &values);
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
        kept.values.set_values(&self.name, &Values::default());
        kept.errors.insert(self.name.clone(), error);
    }
}

/// Computes the index values of the indexed objects from two caches, and stores these values in the
/// [`Board`].
pub(super) struct Maintenance<K, O> {
    pub(super) name: Arc<str>,
    pub(super) objects: Indexer<K>,
    pub(super) others: Indexer<O>,
    pub(super) depends_on: DependsOn<K>,
    pub(super) values: ValuesOf<K, O>,
    /// Weak reference to the index content. After the index was dropped, the methods of [`Maintenance`] have
    /// no effect.
    pub(super) board: Weak<Board>,
}

impl<K, O> Maintenance<K, O> {
    pub(super) async fn update_dependants(&self, other: &ObjectName) {
        let Some(board) = self.board.upgrade() else {
            return;
        };
        let dependants = board.dependants(other);
        // `board` is not held during the loop, so that dropping the index ends the loop.
        drop(board);
        for name in dependants {
            self.update(&name).await;
            // Yields to other tasks: one object can have all objects as dependants.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Updates the index entries of the object `name` from the caches.
    pub(super) async fn update(&self, name: &ObjectName) {
        let Some(board) = self.board.upgrade() else {
            return;
        };
        let claim = board.claim(name).await;
        if let Err(reason) = self.try_update(&claim) {
            claim.leave_out(IndexError {
                index: Arc::clone(&self.name),
                object: name.clone(),
                reason: one_line(&reason, MESSAGE_BYTES),
            });
        }
    }

    fn try_update(&self, claim: &Claim) -> Result<(), String> {
        let objects = self.objects.snapshot();
        let object = objects.told(&claim.name);
        let Some(object) = object.and_then(|object| object.get().ok()) else {
            claim.depend_on(&[]);
            claim.set_values(Vec::new());
            return Ok(());
        };
        let names = ask(|| (self.depends_on)(&object));
        claim.depend_on(names.as_deref().unwrap_or_default());
        // The snapshot must follow `depend_on`, see the module's documentation.
        let others = self.others.snapshot();
        let found = names?.into_iter();
        let found = found.filter_map(|name| others.told(&name)?.get().ok());
        let found: Vec<Arc<O>> = found.collect();
        claim.set_values(ask(|| (self.values)(&object, &found))?);
        Ok(())
    }
}

/// Event handler for the indexed objects: updates the index entries of the event's object.
pub(super) struct Objects<K, O>(pub(super) Arc<Maintenance<K, O>>);

impl<K: Send + Sync + 'static, O: Send + Sync + 'static> EventHandler<K> for Objects<K, O> {
    async fn handle(&mut self, event: Event<K>) {
        if let Some(name) = event.object_name() {
            self.0.update(name).await;
        }
    }
}

/// Event handler for the objects on which indexed objects depend: updates the entries of the indexed objects.
pub(super) struct Others<K, O>(pub(super) Arc<Maintenance<K, O>>);

impl<K: Send + Sync + 'static, O: Send + Sync + 'static> EventHandler<O> for Others<K, O> {
    async fn handle(&mut self, event: Event<O>) {
        if let Some(name) = event.object_name() {
            self.0.update_dependants(name).await;
        }
    }
}
