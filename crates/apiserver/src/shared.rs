//! Holds the state that all requests of one server share: store, watch caches and settings.
//!
//! Guarantees:
//! - one lock guards the store and the watch caches. A writer stores an event and adds it to the queues of
//!   the watchers without releasing the lock in between;
//! - the lock is never held across an `.await`, or while a list is serialized.
//!
//! The `group_commit` module writes to the data directory. This module does not.

mod identity;
mod relations;
mod replacement;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::{Authorization, Gate};
use crate::body_limit::BodyLimit;
use crate::clock::Clock;
use crate::definition::{Definition, Names};
use crate::fault::Switchboard;
use crate::garbage::Graph;
use crate::pod_log::LogSource;
use crate::published::Publication;
use crate::request_log::Recorder;
use crate::resource::{Builtin, CollectionId, Defined, Registry, Resource};
use crate::response_budget::ResponseBudget;
use crate::services::Allocated;
use crate::status::ApiError;
use crate::storage::{Disk, Entry, Event, OBJECT_BYTES_MAX, Pending, Remaining, Storage, Write};
use crate::watch_cache::{Cache, WatchCache, WatcherId};
use identity::RbacResources;

/// Maximum time that a request waits for a revision that the store has not reached yet.
///
/// The value is that of `blockTimeout` in Kubernetes' `watch_cache.go`.
const REVISION_WAIT: Duration = Duration::from_secs(3);

/// Whether the server deletes the dependents of deleted objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GarbageCollection {
    On,
    Off,
}

/// Which writes of clients record the owners of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManagedFields {
    OfAllWrites,
    OfApplies,
}

/// The settings of a server, which the builder sets and which never change.
pub(crate) struct Settings {
    pub(crate) watch_list: bool,
    pub(crate) enforce_namespaces: bool,
    pub(crate) allow_remote: bool,
    pub(crate) authorization: Authorization,
    /// Path of the endpoint that accepts fault injection plans, if it is enabled.
    pub(crate) fault_endpoint: Option<&'static str>,
    /// Certificate of the authority in each namespace, if each namespace has it and a default service account.
    pub(crate) root_ca: Option<&'static str>,
    pub(crate) watcher_buffer: usize,
    /// Maximum total size of all stored objects in bytes.
    pub(crate) storage_quota: u64,
    pub(crate) clock: Clock,
    pub(crate) garbage_collection: GarbageCollection,
    pub(crate) managed_fields: ManagedFields,
    pub(crate) pod_logs: LogSource,
    /// Setting of the watch caches of all resources that `watch_caches` does not contain.
    pub(crate) watch_cache: WatchCache,
    /// Settings of the watch caches of single resources, by name, such as `deployments.apps`.
    pub(crate) watch_caches: BTreeMap<String, WatchCache>,
}

/// The state that all requests and handles of one server share.
pub(crate) struct Shared {
    /// The served resources. Replaced only while the state is locked.
    registry: RwLock<Arc<Registry>>,
    pub(crate) builtin: Builtin,
    /// The names of all definitions. Lock order: `names` before `state`.
    pub(crate) names: Mutex<NamesInUse>,
    /// The OpenAPI documents. Lock order: `openapi` before `state`.
    pub(crate) openapi: Publication,
    pub(crate) settings: Arc<Settings>,
    pub(crate) gate: Arc<Gate>,
    rbac_resources: RbacResources,
    pub(crate) faults: Switchboard,
    pub(crate) requests: Arc<Recorder>,
    pub(crate) body_limit: Arc<BodyLimit>,
    pub(crate) response_budget: Arc<ResponseBudget>,
    /// The number of objects after recent pages of lists.
    pub(crate) remaining: Mutex<Remaining>,
    /// The open data directory, if any. Lock order: `disk` before `state`.
    pub(crate) disk: OnceLock<Mutex<Disk>>,
    state: Mutex<State>,
    revision: watch::Sender<u64>,
}

/// The names of each stored definition, with the state of the definition from which they were read.
pub(crate) type NamesInUse = BTreeMap<String, (Arc<Entry>, Names)>;

/// Whether objects of a kind can be created, by the newest accepted state of its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serving {
    Served,
    /// The definition is being deleted. Objects exist, and none can be created.
    Terminating,
    /// The definition was deleted, or defines another kind now.
    Gone,
}

/// The part of a server's state that [`Shared::lock`] guards.
pub(crate) struct State {
    /// The stored objects that readers and watchers see.
    pub(crate) storage: Storage,
    /// Accepted writes that are not durable yet.
    pub(crate) pending: Pending,
    /// The watch caches, indexed by collection id.
    pub(crate) caches: Vec<Cache>,
    pub(crate) rng: fastrand::Rng,
    last_watcher: u64,
    /// Revision above which the next write is, if a recording skips revisions.
    floor: u64,
    /// What the newest services have, or `None` if it was not needed yet.
    allocated: Option<Allocated>,
    /// The owners and dependents among the newest objects. `None` if the server collects no garbage.
    pub(crate) garbage: Option<Box<Graph>>,
}

// === impl Settings ===

impl Settings {
    pub(crate) fn collects_garbage(&self) -> bool {
        self.garbage_collection == GarbageCollection::On
    }

    /// Returns an empty watch cache for a resource, such as `deployments.apps`.
    fn cache_of(&self, resource: &str) -> Cache {
        let policy = self.watch_caches.get(resource);
        Cache::new(policy.copied().unwrap_or(self.watch_cache))
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(registry: Arc<Registry>, settings: Arc<Settings>, seed: u64) -> Shared {
        let storage = Storage::new(registry.collections());
        let names = registry.collection_names().into_iter();
        let caches = names.map(|name| settings.cache_of(name)).collect();
        let requests = Arc::new(Recorder::new());
        let garbage = settings.collects_garbage().then(Box::default);
        Shared {
            builtin: registry.builtin(),
            rbac_resources: RbacResources::of(&registry),
            registry: RwLock::new(registry),
            names: Mutex::default(),
            openapi: Publication::default(),
            gate: Arc::new(Gate::new(settings.authorization)),
            settings,
            faults: Switchboard::new(seed, Arc::clone(&requests)),
            requests,
            body_limit: Arc::default(),
            response_budget: Arc::default(),
            remaining: Mutex::default(),
            disk: OnceLock::new(),
            state: Mutex::new(State {
                storage,
                pending: Pending::default(),
                caches,
                rng: fastrand::Rng::with_seed(seed),
                last_watcher: 0,
                floor: 0,
                allocated: None,
                garbage,
            }),
            revision: watch::Sender::new(0),
        }
    }

    /// Replaces the tokens and access rules.
    pub(crate) fn with_gate(self, gate: Gate) -> Shared {
        let gate = Arc::new(gate);
        Shared { gate, ..self }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns the resources that the server serves now.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read())
    }

    /// Checks that the write respects the object size limit and the storage quota.
    ///
    /// Writes that are not durable yet do not count, so concurrent writes can exceed the quota.
    ///
    /// # Errors
    /// Returns a 413 error if the object is too large, and a 500 error if the write exceeds the quota.
    pub(crate) fn check_room(
        &self,
        state: &State,
        old: Option<&Entry>,
        new: &Entry,
    ) -> Result<(), ApiError> {
        if new.is_too_large() {
            return Err(ApiError::object_too_large(OBJECT_BYTES_MAX));
        }
        let freed = old.map_or(0, Entry::bytes);
        let grown = new.bytes().saturating_sub(freed);
        let bytes = (state.storage.object_bytes() + grown) as u64;
        if grown > 0 && bytes > self.settings.storage_quota {
            return Err(ApiError::no_space());
        }
        Ok(())
    }

    /// Stores an object, or removes it if `new` is `None`, and notifies the watchers.
    ///
    /// With a data directory, readers and watchers see the write only after it is durable.
    pub(crate) fn commit(
        &self,
        state: &mut State,
        resource: &Resource,
        key: &Arc<str>,
        new: Option<Arc<Entry>>,
    ) {
        let collection = resource.collection;
        if resource.is_services() {
            state.follow_service(resource, key, new.as_deref());
        }
        if state.garbage.is_some() {
            state.follow_relations(resource, key, new.as_deref());
        }
        let write = Write {
            revision: state.next_revision(),
            collection,
            key: Arc::clone(key),
            new,
        };
        if self.disk.get().is_none() {
            self.publish(state, &write);
        } else {
            state.pending.stage(write);
        }
    }

    /// Makes a write visible to readers and delivers its event to watchers.
    pub(crate) fn publish(&self, state: &mut State, write: &Write) {
        let collection = write.collection;
        state.storage.start_at(write.revision - 1);
        let event = state
            .storage
            .commit(collection, &write.key, write.new.clone());
        let definitions = self.builtin.definitions.as_ref();
        if definitions.is_some_and(|it| it.collection == collection) {
            self.follow_definition(state, &event);
        }
        self.follow_rbac(collection, &event);
        let State {
            storage, caches, ..
        } = state;
        let cache = &mut caches[collection.0];
        cache.dispatch(&event);
        cache.advance(storage.log(collection), storage.horizon(collection));
        if let Some(forgotten_at) = storage.held_too_much() {
            self.let_go(state, forgotten_at);
        }
        self.revision.send_replace(event.revision);
    }

    /// Serves the kinds of a changed `CustomResourceDefinition`, before clients see the change.
    ///
    /// As in Kubernetes, a change of its `spec` or of its accepted names ends the watches of its kind. A later
    /// watch can't start at a revision before the change.
    fn follow_definition(&self, state: &mut State, event: &Event) {
        let name = event.key();
        let [old, new] = [&event.old, &event.new]
            .map(|entry| entry.as_ref().and_then(|entry| Definition::read(entry)));
        let kinds = new.as_ref().map_or_else(Vec::new, Definition::kinds);
        self.redefine(state, [(name.to_owned(), kinds)]);
        let registry = self.registry();
        let continues = match (&old, &new) {
            (Some(old), Some(new)) => new.continues(old),
            _ => old.is_none() && new.is_none(),
        };
        let resource = registry.last_resource(name);
        if let Some(resource) = resource.filter(|_| !continues && !registry.is_fixed(name)) {
            let cache = &mut state.caches[resource.collection.0];
            cache.close_wanted(|_| true);
            cache.forget(event.revision);
        }
    }

    /// Returns whether objects of a resource can be created. A request may have found the resource earlier.
    pub(crate) fn serving(&self, state: &State, resource: &Resource) -> Serving {
        let kind = &resource.kind;
        let Some(definitions) = self
            .builtin
            .definitions
            .as_ref()
            .filter(|_| kind.definition.is_some())
        else {
            return Serving::Served;
        };
        // A change that is not durable yet is not in the registry.
        let name = kind.group_resource();
        if let Some(accepted) = state.pending.get(definitions.collection, &name) {
            return match accepted.entry.as_deref().map(Definition::read) {
                None => Serving::Gone,
                Some(Some(definition)) if definition.is_terminating() => Serving::Terminating,
                Some(_) => Serving::Served,
            };
        }
        let registry = self.registry();
        let served = registry.by_path(&kind.group, &kind.version, &kind.plural);
        match served.map(|served| &served.kind) {
            Some(served) if served.kind != kind.kind || served.scope != kind.scope => Serving::Gone,
            Some(served) if served.is_terminating() => Serving::Terminating,
            Some(_) => Serving::Served,
            None => Serving::Gone,
        }
    }

    /// Returns whether a resource, which a request has found earlier, has another model now.
    pub(crate) fn has_changed(&self, resource: &Resource) -> bool {
        let kind = &resource.kind;
        let registry = self.registry();
        let current = registry.by_path(&kind.group, &kind.version, &kind.plural);
        let model = |resource: &Resource| resource.model.as_ref().map(Arc::as_ptr);
        current.is_some_and(|current| model(current) != model(resource))
    }

    /// Changes the kinds that definitions add. `changes` has the name of each changed definition, and all its
    /// kinds. Other definitions keep their kinds.
    fn redefine(
        &self,
        state: &mut State,
        changes: impl IntoIterator<Item = (String, Vec<Defined>)>,
    ) {
        let Some(registry) = self.registry().redefined(changes) else {
            self.openapi.expire();
            return;
        };
        state.storage.grow(registry.collections());
        let names = registry.collection_names();
        let new = names[state.caches.len()..].iter();
        let new = new.map(|name| self.settings.cache_of(name));
        state.caches.extend(new);
        *self.registry.write() = Arc::new(registry);
        state.retry_relations();
        // Last, so that no document of the earlier kinds is kept.
        self.openapi.expire();
    }

    /// Ends the responses and watches that may use object versions that the event history has dropped.
    ///
    /// `forgotten_at` is the commit time of the newest dropped event. Aborts the unfinished responses that
    /// started at or before this time. Closes the watches that have a dropped event in their queue.
    fn let_go(&self, state: &mut State, forgotten_at: Instant) {
        self.response_budget.evict_until(forgotten_at);
        let State {
            storage, caches, ..
        } = state;
        for (collection, cache) in caches.iter_mut().enumerate() {
            cache.close_behind(storage.horizon(CollectionId(collection)));
        }
        tracing::warn!(
            "ended lists and watches that hold too much dropped history because their clients read too slowly"
        );
    }

    /// Waits until the store reaches `revision`, for at most [`REVISION_WAIT`].
    ///
    /// # Errors
    /// Returns a 504 error if the store has not reached `revision` after this time. If the watch cache of
    /// `collection` is off, the method does not wait.
    pub(crate) async fn reach(
        &self,
        collection: CollectionId,
        revision: u64,
    ) -> Result<(), ApiError> {
        let (current, cached) = {
            let state = self.lock();
            let cached = !state.caches[collection.0].is_off();
            (state.storage.revision(), cached)
        };
        if current >= revision {
            return Ok(());
        }
        if !cached {
            return Err(ApiError::revision_too_large(revision, current));
        }
        let mut reached = self.revision.subscribe();
        let waiting = reached.wait_for(|current| *current >= revision);
        if tokio::time::timeout(REVISION_WAIT, waiting).await.is_ok() {
            return Ok(());
        }
        let current = self.lock().storage.revision();
        Err(ApiError::revision_too_large(revision, current).retry_in(1))
    }
}

// === impl State ===

impl State {
    pub(crate) fn next_watcher(&mut self) -> WatcherId {
        self.last_watcher += 1;
        WatcherId(self.last_watcher)
    }

    /// Returns a random UUID of version 4.
    pub(crate) fn new_uid(&mut self) -> String {
        let version = (self.rng.u128(..) & !(0xf << 76)) | (0x4 << 76);
        let digits = format!("{:032x}", (version & !(0b11 << 62)) | (0b10 << 62));
        [0..8, 8..12, 12..16, 16..20, 20..32]
            .map(|part| &digits[part])
            .join("-")
    }

    /// Returns the revision that the next write receives.
    pub(crate) fn next_revision(&self) -> u64 {
        let accepted = self.storage.revision().max(self.pending.revision());
        accepted.max(self.floor) + 1
    }

    /// Makes the next write receive `revision`, if no earlier write has received it or a later one.
    pub(crate) fn skip_to(&mut self, revision: u64) {
        self.floor = self.floor.max(revision.saturating_sub(1));
    }

    /// Returns the newest accepted state of an object, durable or not.
    pub(crate) fn newest(&self, collection: CollectionId, key: &str) -> Option<&Arc<Entry>> {
        match self.pending.get(collection, key) {
            Some(accepted) => accepted.entry.as_ref(),
            None => self.storage.get(collection, key),
        }
    }

    /// Returns the newest accepted states of the objects whose keys start with `prefix`, durable or not.
    pub(crate) fn newest_below<'a>(
        &'a self,
        collection: CollectionId,
        prefix: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        let settled = move |entry: &&Arc<Entry>| self.pending.get(collection, &entry.key).is_none();
        let stored = self.storage.below(collection, prefix).filter(settled);
        let accepted = self.pending.below(collection, prefix);
        stored.chain(accepted.filter_map(|(_, accepted)| accepted.entry.as_ref()))
    }

    /// Returns what the newest accepted services have.
    pub(crate) fn allocated(&mut self, services: &Resource) -> &Allocated {
        let allocated = self
            .allocated
            .take()
            .unwrap_or_else(|| Allocated::of(services, self.newest_below(services.collection, "")));
        self.allocated.insert(allocated)
    }

    fn follow_service(&mut self, services: &Resource, key: &str, new: Option<&Entry>) {
        if let Some(mut allocated) = self.allocated.take() {
            let old = self.newest(services.collection, key);
            allocated.follow(services, old.map(|old| &**old), new);
            self.allocated = Some(allocated);
        }
    }

    /// Drops all accepted writes that are not durable, as [`Pending::fail`] does.
    pub(crate) fn fail_pending(
        &mut self,
        touched: impl IntoIterator<Item = (CollectionId, Arc<str>)>,
        error: &ApiError,
    ) {
        self.pending.fail(touched, error);
        self.allocated = None;
        self.expire_relations();
    }

    pub(crate) fn watches(&self) -> usize {
        self.caches.iter().map(Cache::watchers).sum()
    }
}

#[cfg(test)]
mod tests;
