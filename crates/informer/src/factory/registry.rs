//! The registry of a factory's informers: stores one informer per key, and runs each informer once.
//!
//! Constructors of informers can be user code, so they run without the registry's lock. If several threads
//! construct the informer of one key, the registry keeps the first informer that is inserted. The other
//! informers are dropped before they run.

mod lifetime;

pub(super) use self::lifetime::Lifetime;

use std::{
    any::{Any, TypeId},
    sync::Arc,
    time::Duration,
};

use futures_core::future::BoxFuture;
use kube_core::ApiResource;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinSet};

use self::lifetime::Demand;
use super::{
    listing::{AnyInformer, Registered},
    options::InformerOptions,
    scope::Scope,
};
use crate::{
    shared_informer::SharedInformer,
    status::{InformerError, WaitForSync},
};

/// Identifies an informer in the registry.
///
/// The Rust type determines whether the informer caches whole objects, pruned objects or metadata. The kind
/// distinguishes informers of types such as `DynamicObject`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) type_id: TypeId,
    /// Group, version, kind and plural name.
    pub(super) kind: ApiResource,
    pub(super) scope: Scope,
}

/// Function that runs an informer until the [`Lifetime`] signals the informer to end.
///
/// The future drops the `Lifetime` after the informer's last task has ended. The function may register
/// another informer, so it must be called without the registry's lock.
pub(super) type Run = Box<dyn FnOnce(Lifetime) -> BoxFuture<'static, ()> + Send + Sync>;

struct Begun {
    run: Run,
    lifetime: Lifetime,
}

pub(super) struct New<K> {
    pub(super) registered: Registered<K>,
    /// Function that runs the informer; `None` if the factory does not run this informer.
    pub(super) run: Option<Run>,
}

pub(super) struct Lookup<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) id: EntryId,
}

/// Identity of a factory's registry: its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegistryId(usize);

/// Identity of a registry entry, different for an informer and its replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId(u64);

/// Determines how long a request for an informer keeps the informer running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// The informer runs until it is stopped or the factory is shut down.
    Pinned,
    /// The informer runs until all its [`Hold`](super::Hold)s have been dropped and the idle grace period has
    /// passed.
    Held,
}

/// Result of a request to end an informer.
pub(super) enum Ending {
    /// The request has no effect: the informer is not in the registry, or the factory has been shut down.
    NotHere,
    /// The factory was not running the informer, and has removed the informer from the registry.
    ///
    /// The value is the function that runs the informer. Dropping this function ends the informer. The value
    /// is `None` if the informer was adopted or has already ended.
    Left(Option<Run>),
    /// The factory has signalled the informer to end. The channel closes when the last task has ended.
    Told(Arc<watch::Sender<Demand>>),
}

pub(super) struct Registry {
    state: Mutex<State>,
    /// Time for which an informer runs after its last [`Hold`](super::Hold) is dropped.
    idle_grace: Duration,
    /// Sends the shutdown signal. Each running informer holds a receiver until its last task has ended.
    stop: watch::Sender<bool>,
    /// Error of the first informer that failed; `None` until an informer fails.
    pub(super) failure: watch::Sender<Option<InformerError>>,
    /// Tasks of the running informers. Code that needs both locks must lock `running` before `state`.
    ///
    /// Tasks are spawned while `running` is locked. If the runtime is shutting down, spawning drops the task,
    /// and the drop runs user code, which may lock `state`. The opposite lock order could deadlock.
    running: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    /// Entries of the informers, in the order in which their keys were registered.
    entries: Vec<Entry>,
    started: bool,
    shut_down: bool,
    next_id: u64,
}

struct Entry {
    id: EntryId,
    key: Key,
    /// The informer, of the concrete type [`Registered<K>`]. `K` is the Rust type that `key` identifies.
    informer: Arc<dyn AnyInformer>,
    /// Function that runs the informer. `None` after the start or the shutdown, and if the factory does not
    /// run the informer.
    run: Option<Run>,
    demand: Arc<watch::Sender<Demand>>,
    pinned: bool,
    holds: usize,
}

impl Registry {
    pub(super) fn new(idle_grace: Duration) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            idle_grace,
            stop: watch::Sender::new(false),
            failure: watch::Sender::new(None),
            running: Mutex::default(),
        })
    }

    pub(super) fn id(self: &Arc<Self>) -> RegistryId {
        RegistryId(Arc::as_ptr(self).addr())
    }

    /// Returns the informers in the order in which their keys were registered.
    pub(super) fn list(&self) -> Vec<Arc<dyn AnyInformer>> {
        let state = self.state.lock();
        let entries = state.entries.iter();
        entries.map(|entry| Arc::clone(&entry.informer)).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// Returns the informer of a key, and calls `make` to create it if there is none.
    ///
    /// Replaces an informer that has ended or is ending. After the shutdown of the factory, returns the ended
    /// informer. Starts the informer if `want` is [`Want::Held`] and the factory was not shut down.
    ///
    /// # Errors
    /// `accept` receives the options of the existing or created informer. If `accept` returns an error, this
    /// method returns the error, and does not start the informer or keep it running.
    pub(super) fn get_if_or_make<K: Send + Sync + 'static, E>(
        self: &Arc<Self>,
        key: &Key,
        want: Want,
        accept: impl Fn(Option<&InformerOptions<K>>) -> Result<(), E>,
        make: impl FnOnce() -> New<K>,
    ) -> Result<Lookup<K>, E> {
        if let Some(found) = self.get_if(key, want, &accept)? {
            return Ok(found);
        }
        let mut new = make();
        let mut state = self.state.lock();
        // Another thread, or the constructor itself, may have inserted the informer meanwhile.
        let (run, ended) = if state.find::<K>(key).is_some() {
            (new.run, None)
        } else {
            let run = new.run.take_if(|_| state.shut_down);
            (run, state.insert(key, new))
        };
        let (id, registered) = state
            .at::<K>(key)
            .expect("there was one, or it was inserted");
        let accepted = accept(registered.options.as_ref());
        let informer = registered.informer.clone();
        let begun = accepted.is_ok().then(|| self.take(&mut state, id, want));
        drop(state);
        self.spawn(begun.flatten());
        // Dropped without the lock, because these values own user code.
        drop((run, ended));
        accepted.map(|()| Lookup { informer, id })
    }

    /// Returns the informer of a key, if the registry has one.
    ///
    /// Before the shutdown of the factory, ignores an informer that has ended or is ending. `want` determines
    /// how long the returned informer is kept running.
    ///
    /// # Errors
    /// Returns the error of `accept`, which receives the informer's options and can reject the informer.
    pub(super) fn get_if<K: Send + Sync + 'static, E>(
        self: &Arc<Self>,
        key: &Key,
        want: Want,
        accept: impl Fn(Option<&InformerOptions<K>>) -> Result<(), E>,
    ) -> Result<Option<Lookup<K>>, E> {
        let mut state = self.state.lock();
        let Some((id, registered)) = state.find::<K>(key) else {
            return Ok(None);
        };
        accept(registered.options.as_ref())?;
        let informer = registered.informer.clone();
        let begun = self.take(&mut state, id, want);
        drop(state);
        self.spawn(begun);
        Ok(Some(Lookup { informer, id }))
    }

    /// Registers an informer that the factory does not run.
    ///
    /// Registers nothing and returns `false` if the key has another informer that has not ended.
    pub(super) fn adopt<K: Send + Sync + 'static>(
        &self,
        key: &Key,
        informer: SharedInformer<K>,
    ) -> bool {
        let mut state = self.state.lock();
        if let Some((_, registered)) = state.find::<K>(key) {
            return registered.informer.is_same(&informer);
        }
        let adopted = New {
            registered: Registered {
                informer,
                kind: key.kind.clone(),
                coverage: None,
                options: None,
            },
            run: None,
        };
        let replaced = state.insert(key, adopted);
        drop(state);
        drop(replaced);
        true
    }

    pub(super) fn start(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.started = true;
        let entries = state.entries.iter_mut();
        let begun: Vec<_> = entries.filter_map(|entry| self.begin(entry)).collect();
        drop(state);
        self.spawn(begun);
    }

    /// Moves the function that runs the informer out of `entry`, and creates the function's [`Lifetime`].
    ///
    /// The caller must pass the result to [`spawn`](Self::spawn). Returns `None` if `entry.run` is `None`.
    fn begin(self: &Arc<Self>, entry: &mut Entry) -> Option<Begun> {
        let run = entry.run.take()?;
        let lifetime = Lifetime {
            registry: Arc::downgrade(self),
            id: entry.id,
            demand: entry.demand.subscribe(),
            stop: self.stop.subscribe(),
            idle_grace: self.idle_grace,
        };
        Some(Begun { run, lifetime })
    }

    fn spawn(&self, begun: impl IntoIterator<Item = Begun>) {
        let begun = begun
            .into_iter()
            .map(|Begun { run, lifetime }| run(lifetime));
        let begun: Vec<_> = begun.collect();
        let mut running = self.running.lock();
        while running.try_join_next().is_some() {}
        for informer in begun {
            running.spawn(informer);
        }
    }

    /// Returns a [`WaitForSync`] for each informer that is not ending.
    ///
    /// Before the first call of [`start`](Self::start), the wait for an unstarted informer fails immediately.
    /// Later, the result omits unstarted informers: they were registered after the last call of `start`.
    pub(super) fn waits(&self) -> Vec<WaitForSync> {
        let state = self.state.lock();
        let entries = state.entries.iter().filter(|entry| !entry.is_ending());
        let waits = entries.filter_map(|entry| match &entry.run {
            None => Some(entry.informer.wait_for_sync()),
            Some(_) if state.started || state.shut_down => None,
            Some(_) => Some(entry.informer.wait_for_sync().not_started()),
        });
        waits.collect()
    }

    /// Signals all running informers to end, and ends the informers that were never started.
    ///
    /// No informer starts after this call.
    pub(super) fn shut_down(&self) {
        let mut state = self.state.lock();
        state.shut_down = true;
        let never_ran: Vec<_> = state
            .entries
            .iter_mut()
            .filter_map(|entry| entry.run.take())
            .collect();
        drop(state);
        drop(never_ran);
        self.stop.send_replace(true);
    }

    /// Records the error of a failed informer, unless another informer failed earlier.
    pub(super) fn failed(&self, error: InformerError) {
        self.failure.send_if_modified(|failure| {
            let is_first = failure.is_none();
            failure.get_or_insert(error);
            is_first
        });
    }

    pub(super) async fn all_ended(&self) {
        self.stop.closed().await;
    }

    /// Signals an informer to end, or removes it from the registry if it does not run.
    ///
    /// The next request for the informer's key creates a new informer.
    pub(super) fn end<K: 'static>(&self, informer: &SharedInformer<K>) -> Ending {
        let mut state = self.state.lock();
        let at = state.entries.iter().position(|entry| {
            let there = entry.registered::<K>();
            there.is_some_and(|there| there.informer.is_same(informer))
        });
        let Some(at) = at.filter(|_| !state.shut_down) else {
            return Ending::NotHere;
        };
        let entry = &mut state.entries[at];
        if entry.demand.receiver_count() == 0 {
            let mut entry = state.entries.remove(at);
            drop(state);
            return Ending::Left(entry.run.take());
        }
        entry.demand.send_replace(Demand::Ended);
        Ending::Told(Arc::clone(&entry.demand))
    }

    pub(super) fn hold(self: &Arc<Self>, id: EntryId) {
        let mut state = self.state.lock();
        let begun = self.take(&mut state, id, Want::Held);
        drop(state);
        self.spawn(begun);
    }

    pub(super) fn look<K: 'static>(&self, key: &Key) -> Option<SharedInformer<K>> {
        let state = self.state.lock();
        let (_, registered) = state.find::<K>(key)?;
        Some(registered.informer.clone())
    }

    /// Records that one [`Hold`](super::Hold) of an informer was dropped.
    ///
    /// Starts the idle grace period if no hold remains, unless a request has pinned the informer
    /// ([`Want::Pinned`]).
    pub(super) fn release(&self, id: EntryId) {
        let mut state = self.state.lock();
        let Some(entry) = state.entry(id) else {
            return;
        };
        entry.holds -= 1;
        if !entry.is_wanted() {
            entry
                .demand
                .send_if_modified(|demand| demand.becomes(Demand::Wanted, Demand::Idle));
        }
    }

    /// Removes an informer whose idle grace period has passed.
    ///
    /// Returns `false` and keeps the informer if a request has pinned it ([`Want::Pinned`]), or if a
    /// [`Hold`](super::Hold) of it exists.
    pub(super) fn retire(&self, id: EntryId) -> bool {
        let mut state = self.state.lock();
        if state.entry(id).is_some_and(|entry| entry.is_wanted()) {
            return false;
        }
        let retired = state.remove(id);
        drop(state);
        drop(retired);
        true
    }

    /// Removes an ended informer, if the factory had signalled this informer to end.
    pub(super) fn clear(&self, id: EntryId) {
        let mut state = self.state.lock();
        let ended = state.entry(id).is_some_and(|entry| entry.is_ending());
        let ended = ended.then(|| state.remove(id));
        drop(state);
        drop(ended);
    }

    /// Records a request that keeps an informer running for the time that [`Want`] describes.
    ///
    /// A [`Want::Held`] request also starts an informer that waits for [`start`](Self::start). In this case,
    /// returns the function that runs the informer. The caller must pass it to [`spawn`](Self::spawn).
    #[must_use = "it does not run until this is spawned"]
    fn take(self: &Arc<Self>, state: &mut State, id: EntryId, want: Want) -> Option<Begun> {
        let entry = state.entry(id)?;
        match want {
            Want::Pinned => entry.pinned = true,
            Want::Held => entry.holds += 1,
        }
        entry
            .demand
            .send_if_modified(|demand| demand.becomes(Demand::Idle, Demand::Wanted));
        // After the shutdown no entry has a run function.
        (want == Want::Held).then(|| self.begin(entry)).flatten()
    }
}

impl State {
    /// Returns the informer of a key. Before the shutdown of the factory, ignores an informer that has ended
    /// or is ending.
    fn find<K: 'static>(&self, key: &Key) -> Option<(EntryId, &Registered<K>)> {
        let entry = self.entries.iter().find(|entry| entry.key == *key)?;
        let has_ended = entry.informer.is_stopped() || entry.is_ending();
        let is_replaceable = has_ended && !self.shut_down;
        self.at(key).filter(|_| !is_replaceable)
    }

    /// Returns the informer of a key, even if it has ended or is ending.
    fn at<K: 'static>(&self, key: &Key) -> Option<(EntryId, &Registered<K>)> {
        let entry = self.entries.iter().find(|entry| entry.key == *key)?;
        Some((entry.id, entry.registered()?))
    }

    fn entry(&mut self, id: EntryId) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id == id)
    }

    fn remove(&mut self, id: EntryId) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.id == id)?;
        Some(self.entries.remove(at))
    }

    /// Inserts a new informer, and returns the entry that it replaces.
    ///
    /// The caller must not hold the registry's lock when it drops the entry, because the drop runs user code.
    fn insert<K: Send + Sync + 'static>(&mut self, key: &Key, new: New<K>) -> Option<Entry> {
        let id = EntryId(self.next_id);
        self.next_id += 1;
        let entry = Entry {
            id,
            key: key.clone(),
            informer: Arc::new(new.registered),
            run: new.run,
            demand: Arc::new(watch::Sender::new(Demand::Wanted)),
            pinned: false,
            holds: 0,
        };
        let same = self.entries.iter_mut().find(|entry| entry.key == *key);
        if let Some(same) = same {
            return Some(std::mem::replace(same, entry));
        }
        self.entries.push(entry);
        None
    }
}

impl Entry {
    fn registered<K: 'static>(&self) -> Option<&Registered<K>> {
        let informer: &dyn Any = &*self.informer;
        informer.downcast_ref()
    }

    fn is_wanted(&self) -> bool {
        self.pinned || self.holds > 0
    }

    fn is_ending(&self) -> bool {
        *self.demand.borrow() == Demand::Ended
    }
}

#[cfg(test)]
mod tests;
