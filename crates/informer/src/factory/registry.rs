//! The informers that a factory has: one per key, made once, run once.
//!
//! The lock is held for look-ups only. An informer is constructed without it, by a constructor that may be the
//! program's; of several threads that construct the same one the first to insert it wins, and what the others
//! constructed is dropped without having run.

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

/// What makes two informers the same: the type (which says the representation), the names of the kind for types
/// that have many, and the scope.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) type_id: TypeId,
    /// With all its names, since one of them alone may be a wrong guess.
    pub(super) kind: ApiResource,
    pub(super) scope: Scope,
}

/// Runs an informer until its lifetime is over, which it holds until its last task has ended. Called without the
/// lock, since what the informer needs of others may be registered here.
pub(super) type Run = Box<dyn FnOnce(Lifetime) -> BoxFuture<'static, ()> + Send + Sync>;

/// An informer that is about to run.
struct Begun {
    run: Run,
    lifetime: Lifetime,
}

/// An informer that is to be registered.
pub(super) struct New<K> {
    pub(super) registered: Registered<K>,
    /// `None` if someone else runs it.
    pub(super) run: Option<Run>,
}

/// An informer that is registered.
pub(super) struct Found<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) id: EntryId,
}

/// Tells one registry from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegistryId(usize);

/// Tells one informer of a key from a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId(u64);

/// For how long an informer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// As long as the factory goes on, once it is started.
    Pinned,
    /// From now on until it is released.
    Held,
}

/// What became of an informer that was to end.
pub(super) enum Ending {
    /// It is not registered, or all of them end anyway.
    NotHere,
    /// It does not run here. It is no longer registered; with it goes what was to run it, if that never
    /// happened, which ends it.
    Left(Option<Run>),
    /// It has been told; its last receiver goes with its last task.
    Told(Arc<watch::Sender<Demand>>),
}

pub(super) struct Registry {
    state: Mutex<State>,
    /// For this long an informer goes on after its last hold was dropped.
    idle_grace: Duration,
    /// Every running informer has a receiver until its last task has ended.
    stop: watch::Sender<bool>,
    /// The first informer that failed.
    pub(super) failure: watch::Sender<Option<InformerError>>,
    /// Never locked together with the state: a runtime that is ending drops a task where it is spawned,
    /// and with it what is the user's.
    running: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    /// In the order in which they were first requested.
    entries: Vec<Entry>,
    /// At least once.
    started: bool,
    shut_down: bool,
    next_id: u64,
}

struct Entry {
    id: EntryId,
    key: Key,
    /// A [`Registered<K>`], where `K` is the key's type.
    informer: Arc<dyn AnyInformer>,
    /// Taken by the start; an adopted informer has none.
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

    /// The informers that are registered, in the order in which they were first requested.
    pub(super) fn list(&self) -> Vec<Arc<dyn AnyInformer>> {
        let state = self.state.lock();
        let entries = state.entries.iter();
        entries.map(|entry| Arc::clone(&entry.informer)).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// The informer of a key, made if there is none yet, or only one that has ended or is ending; if its options
    /// are accepted, else nothing has happened to it. One that is to be held runs afterwards.
    pub(super) fn get_if_or_make<K: Send + Sync + 'static, E>(
        self: &Arc<Self>,
        key: &Key,
        want: Want,
        accept: impl Fn(Option<&InformerOptions<K>>) -> Result<(), E>,
        make: impl FnOnce() -> New<K>,
    ) -> Result<Found<K>, E> {
        if let Some(found) = self.get_if(key, want, &accept)? {
            return Ok(found);
        }
        let mut new = make();
        let mut state = self.state.lock();
        // Another thread may have been faster, or the constructor itself.
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
        // Not under the lock: what is left over holds what is the user's.
        drop((run, ended));
        accepted.map(|()| Found { informer, id })
    }

    /// The informer of a key, if there is one that has not ended, and if its options are accepted.
    pub(super) fn get_if<K: Send + Sync + 'static, E>(
        self: &Arc<Self>,
        key: &Key,
        want: Want,
        accept: impl Fn(Option<&InformerOptions<K>>) -> Result<(), E>,
    ) -> Result<Option<Found<K>>, E> {
        let mut state = self.state.lock();
        let Some((id, registered)) = state.find::<K>(key) else {
            return Ok(None);
        };
        accept(registered.options.as_ref())?;
        let informer = registered.informer.clone();
        let begun = self.take(&mut state, id, want);
        drop(state);
        self.spawn(begun);
        Ok(Some(Found { informer, id }))
    }

    /// Registers an informer if there is none, or this very one already; whether it is there now.
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

    /// Runs every informer that is not running yet.
    pub(super) fn start(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.started = true;
        let entries = state.entries.iter_mut();
        let begun: Vec<_> = entries.filter_map(|entry| self.begin(entry)).collect();
        drop(state);
        self.spawn(begun);
    }

    /// What runs an informer, if it is not running yet.
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

    /// Of each informer that has been started, or that something else runs, and that is not about to end; before the
    /// first start, of each that waits for it, too, which is in vain.
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

    /// From now on nothing is run, and everything that runs is told to end. Those that never ran end
    /// here.
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

    /// Notes that an informer has failed, unless another one did before.
    pub(super) fn failed(&self, error: InformerError) {
        self.failure.send_if_modified(|failure| {
            let is_first = failure.is_none();
            failure.get_or_insert(error);
            is_first
        });
    }

    /// Waits until nothing runs any more.
    pub(super) async fn all_ended(&self) {
        self.stop.closed().await;
    }

    /// Tells an informer to end, and frees its entry.
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

    /// One more hold of an informer that is held.
    pub(super) fn hold(self: &Arc<Self>, id: EntryId) {
        let mut state = self.state.lock();
        let begun = self.take(&mut state, id, Want::Held);
        drop(state);
        self.spawn(begun);
    }

    /// The informer of a key, if there is one that has not ended.
    pub(super) fn look<K: 'static>(&self, key: &Key) -> Option<SharedInformer<K>> {
        let state = self.state.lock();
        let (_, registered) = state.find::<K>(key)?;
        Some(registered.informer.clone())
    }

    /// One hold less.
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

    /// Removes an informer that is no longer wanted; whether it is not.
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

    /// Removes an informer that was told to end, and has.
    pub(super) fn clear(&self, id: EntryId) {
        let mut state = self.state.lock();
        let ended = state.entry(id).is_some_and(|entry| entry.is_ending());
        let ended = ended.then(|| state.remove(id));
        drop(state);
        drop(ended);
    }

    /// Notes that it is wanted, and returns what runs it if it is to run and does not yet.
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
        // After the shutdown there is nothing to begin.
        (want == Want::Held).then(|| self.begin(entry)).flatten()
    }
}

impl State {
    /// The informer of a key, if there is one that is not to be replaced.
    fn find<K: 'static>(&self, key: &Key) -> Option<(EntryId, &Registered<K>)> {
        let entry = self.entries.iter().find(|entry| entry.key == *key)?;
        let has_ended = entry.informer.is_stopped() || entry.is_ending();
        let is_replaceable = has_ended && !self.shut_down;
        self.at(key).filter(|_| !is_replaceable)
    }

    /// The informer of a key, whatever has become of it.
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

    /// Registers an informer. The one before it has ended or is ending, and is given back, to be dropped without
    /// the lock: its cache is full of the user's objects.
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
