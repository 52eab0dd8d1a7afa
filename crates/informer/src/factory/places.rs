//! The informers that a factory has: one per place, made once, run once.
//!
//! The lock is held for look-ups only. A constructor, which may be a user's, runs without it; whoever
//! asks for the same place meanwhile waits for its result, and everybody else goes on.

use std::{
    any::{Any, TypeId},
    thread::{self, ThreadId},
};

use futures_core::future::BoxFuture;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::{sync::watch, task::JoinSet};

use super::options::{Comparable, Scope};
use crate::{shared_informer::SharedInformer, status::WaitForSync};

/// What makes two informers the same: the type (which says the representation), the names of the kind
/// for types that have many, and the scope.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) kind: TypeId,
    /// API version, kind and plural, for one of them alone may be a wrong guess.
    pub(super) names: [String; 3],
    pub(super) scope: Scope,
}

/// Runs an informer until it is told to stop; holds the receiver until its last task has ended.
pub(super) type Run =
    Box<dyn FnOnce(watch::Receiver<bool>) -> BoxFuture<'static, ()> + Send + Sync>;

/// What fills an empty place.
pub(super) struct Made<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) options: Comparable,
    pub(super) run: Run,
}

#[derive(Default)]
pub(super) struct Places {
    state: Mutex<State>,
    /// Told when a constructor has ended.
    made: Condvar,
}

#[derive(Default)]
struct State {
    /// In the order in which they were first asked for.
    places: Vec<Place>,
    making: Vec<(Key, ThreadId)>,
    running: JoinSet<()>,
    shut_down: bool,
}

struct Place {
    key: Key,
    options: Comparable,
    /// A `SharedInformer<K>`, where `K` is the key's type.
    informer: Box<dyn Any + Send + Sync>,
    wait: WaitForSync,
    /// Taken by the start; an adopted informer has none.
    run: Option<Run>,
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.state.lock().places.len()
    }

    /// The informer of a place, made if there is none yet, or only one that has stopped.
    pub(super) fn get_or_make<K: Send + Sync + 'static>(
        &self,
        key: &Key,
        make: impl FnOnce() -> Made<K>,
    ) -> (SharedInformer<K>, Comparable) {
        let mut state = self.settled(key);
        if let Some(found) = state.find(key) {
            return found;
        }
        state.making.push((key.clone(), thread::current().id()));
        drop(state);
        let making = Making { places: self, key };
        let new = make();
        let mut state = self.state.lock();
        let (mut run, mut stopped) = (Some(new.run), None);
        // The constructor may have asked for its own place, which filled it.
        let found = if let Some(found) = state.find(key) {
            found
        } else {
            let found = (new.informer.clone(), new.options.clone());
            let run = run.take_if(|_| !state.shut_down);
            stopped = state.fill(key, new.informer, new.options, run);
            found
        };
        drop(state);
        drop(making);
        // Not under the lock: what is left over holds what is the user's.
        drop((run, stopped));
        found
    }

    /// Puts an informer into a place that is empty, or has this very informer already; whether it was.
    pub(super) fn adopt<K: Send + Sync + 'static>(
        &self,
        key: &Key,
        informer: SharedInformer<K>,
    ) -> bool {
        let mut state = self.settled(key);
        if let Some((found, _)) = state.find::<K>(key) {
            return found.is_same(&informer);
        }
        let replaced = state.fill(key, informer, Comparable::constructed(), None);
        drop(state);
        drop(replaced);
        true
    }

    pub(super) fn start(&self, stop: &watch::Sender<bool>) {
        let mut state = self.state.lock();
        let State {
            places, running, ..
        } = &mut *state;
        while running.try_join_next().is_some() {}
        for run in places.iter_mut().filter_map(|place| place.run.take()) {
            running.spawn(run(stop.subscribe()));
        }
    }

    /// Of each informer that has been started, or is run by others.
    pub(super) fn waits(&self) -> Vec<WaitForSync> {
        let state = self.state.lock();
        let started = state.places.iter().filter(|place| place.run.is_none());
        started.map(|place| place.wait.clone()).collect()
    }

    /// From now on nothing is run. Those that never were end here.
    pub(super) fn shut_down(&self) {
        let mut state = self.state.lock();
        state.shut_down = true;
        let never_ran: Vec<_> = state
            .places
            .iter_mut()
            .filter_map(|place| place.run.take())
            .collect();
        drop(state);
        drop(never_ran);
    }

    /// The state, once no other thread is making this place's informer.
    fn settled(&self, key: &Key) -> MutexGuard<'_, State> {
        let this = thread::current().id();
        let mut state = self.state.lock();
        self.made.wait_while(&mut state, |state| {
            let mut making = state.making.iter();
            making.any(|(other, thread)| other == key && *thread != this)
        });
        state
    }
}

impl State {
    fn find<K: 'static>(&self, key: &Key) -> Option<(SharedInformer<K>, Comparable)> {
        let place = self.places.iter().find(|place| place.key == *key)?;
        let informer = place.informer.downcast_ref::<SharedInformer<K>>()?;
        let replaceable = informer.is_stopped() && !self.shut_down;
        (!replaceable).then(|| (informer.clone(), place.options.clone()))
    }

    /// Fills a place, and returns the stopped informer that it had, to be dropped without the lock:
    /// its cache is full of the user's objects.
    fn fill<K: Send + Sync + 'static>(
        &mut self,
        key: &Key,
        informer: SharedInformer<K>,
        options: Comparable,
        run: Option<Run>,
    ) -> Option<Box<dyn Any + Send + Sync>> {
        let place = Place {
            key: key.clone(),
            options,
            wait: informer.wait_for_sync(),
            informer: Box::new(informer),
            run,
        };
        let taken = self.places.iter_mut().find(|place| place.key == *key);
        if let Some(stopped) = taken {
            return Some(std::mem::replace(stopped, place).informer);
        }
        self.places.push(place);
        None
    }
}

/// While it lives a constructor is at work; also one that panics ends.
struct Making<'a> {
    places: &'a Places,
    key: &'a Key,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let this = thread::current().id();
        let mut state = self.places.state.lock();
        let making = &mut state.making;
        let at = making
            .iter()
            .rposition(|(key, thread)| key == self.key && *thread == this);
        if let Some(at) = at {
            making.remove(at);
        }
        drop(state);
        self.places.made.notify_all();
    }
}
