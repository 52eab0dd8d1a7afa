//! The informers that a factory has: one per place, made once, run once.
//!
//! The lock is held for look-ups only. A constructor, which may be a user's, runs without it; whoever
//! asks for the same place meanwhile waits for its result, and everybody else goes on. No circle of
//! constructors that ask for each other's places stands still: the last one to ask does not wait.

use std::{
    any::{Any, TypeId},
    convert::Infallible,
    sync::Arc,
    thread::{self, ThreadId},
    time::Duration,
};

use futures_core::future::BoxFuture;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::{sync::watch, task::JoinSet};

use super::{
    options::Comparable,
    scope::Scope,
    term::{Demand, Term},
};
use crate::{
    shared_informer::SharedInformer,
    status::{InformerError, WaitForSync},
};

/// What makes two informers the same: the type (which says the representation), the names of the kind
/// for types that have many, and the scope.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) kind: TypeId,
    /// API version, kind and plural, for one of them alone may be a wrong guess.
    pub(super) names: [String; 3],
    pub(super) scope: Scope,
}

impl Key {
    fn kind(&self) -> &str {
        let [_, kind, _] = &self.names;
        kind
    }
}

/// Runs an informer until its term is over; holds the term until its last task has ended. Called
/// without the lock, for what the informer needs of others may be in places here.
pub(super) type Run = Box<dyn FnOnce(Term) -> BoxFuture<'static, ()> + Send + Sync>;

/// An informer that is about to run.
struct Begun {
    run: Run,
    term: Term,
}

/// What fills an empty place.
pub(super) struct Made<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) options: Comparable,
    /// Not of one that somebody else runs.
    pub(super) run: Option<Run>,
}

/// What is in a place.
pub(super) struct Found<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) options: Comparable,
    pub(super) id: PlaceId,
}

/// Tells apart what was in a place from what is in it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceId(u64);

/// For how long somebody wants what is in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// As long as the factory goes on, once it is started.
    Pinned,
    /// From now on until it is released.
    Held,
}

/// What became of an informer that was to end.
pub(super) enum Ending {
    /// It is not one of these, or all of them end anyway.
    NotHere,
    /// It does not run here. It has left its place; with it goes what was to run it, if that never
    /// happened, which ends it.
    Left(Option<Run>),
    /// It has been told; its last receiver goes with its last task.
    Told(Arc<watch::Sender<Demand>>),
}

pub(super) struct Places {
    state: Mutex<State>,
    /// Told when a constructor has ended.
    made: Condvar,
    /// So long an informer goes on that nobody holds any more.
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
    /// In the order in which they were first asked for.
    places: Vec<Place>,
    making: Vec<(Key, ThreadId)>,
    /// The threads that wait until others have made what they ask for; never in a circle.
    waiting: Vec<(ThreadId, Key)>,
    shut_down: bool,
    next_id: u64,
}

struct Place {
    id: PlaceId,
    key: Key,
    options: Comparable,
    /// A `SharedInformer<K>`, where `K` is the key's type.
    informer: Box<dyn Any + Send + Sync>,
    wait: WaitForSync,
    /// Taken by the start; an adopted informer has none.
    run: Option<Run>,
    demand: Arc<watch::Sender<Demand>>,
    pinned: bool,
    holds: usize,
}

impl Places {
    pub(super) fn new(idle_grace: Duration) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            made: Condvar::new(),
            idle_grace,
            stop: watch::Sender::new(false),
            failure: watch::Sender::new(None),
            running: Mutex::default(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().places.len()
    }

    /// The informer of a place, made if there is none yet, or only one that has ended or is ending.
    /// One that is to be held runs afterwards.
    pub(super) fn get_or_make<K: Send + Sync + 'static>(
        self: &Arc<Self>,
        key: &Key,
        want: Want,
        make: impl FnOnce() -> Made<K>,
    ) -> Found<K> {
        let Ok(found) = self.get_if_or_make(key, want, |_| Ok::<_, Infallible>(()), make);
        found
    }

    /// The same, if its options are accepted; else nothing has happened to it.
    pub(super) fn get_if_or_make<K: Send + Sync + 'static, E>(
        self: &Arc<Self>,
        key: &Key,
        want: Want,
        accept: impl Fn(&Comparable) -> Result<(), E>,
        make: impl FnOnce() -> Made<K>,
    ) -> Result<Found<K>, E> {
        let mut state = self.settled(key);
        if let Some(found) = state.find(key) {
            accept(&found.options)?;
            let begun = self.take(&mut state, found.id, want);
            drop(state);
            self.spawn(begun);
            return Ok(found);
        }
        state.making.push((key.clone(), thread::current().id()));
        drop(state);
        let making = Making(self);
        let mut new = make();
        let mut state = self.state.lock();
        // The constructor may have asked for its own place, which filled it.
        let (found, run, ended) = if let Some(found) = state.find(key) {
            (found, new.run, None)
        } else {
            let run = new.run.take_if(|_| state.shut_down);
            let (found, ended) = state.fill(key, new);
            (found, run, ended)
        };
        let accepted = accept(&found.options);
        let begun = accepted
            .is_ok()
            .then(|| self.take(&mut state, found.id, want));
        drop(state);
        self.spawn(begun.flatten());
        drop(making);
        // Not under the lock: what is left over holds what is the user's.
        drop((run, ended));
        accepted.map(|()| found)
    }

    /// Puts an informer into a place that is empty, or has this very informer already; whether it was.
    pub(super) fn adopt<K: Send + Sync + 'static>(
        &self,
        key: &Key,
        informer: SharedInformer<K>,
    ) -> bool {
        let mut state = self.settled(key);
        if let Some(found) = state.find::<K>(key) {
            return found.informer.is_same(&informer);
        }
        let adopted = Made {
            informer,
            options: Comparable::constructed(),
            run: None,
        };
        let (_, replaced) = state.fill(key, adopted);
        drop(state);
        drop(replaced);
        true
    }

    /// Runs every informer that is not running yet.
    pub(super) fn start(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let places = state.places.iter_mut();
        let begun: Vec<_> = places.filter_map(|place| self.begin(place)).collect();
        drop(state);
        self.spawn(begun);
    }

    /// What runs an informer, if it is not running yet.
    fn begin(self: &Arc<Self>, place: &mut Place) -> Option<Begun> {
        let run = place.run.take()?;
        let place = (Arc::downgrade(self), place.id, place.demand.subscribe());
        let term = Term::new(place, self.stop.subscribe(), self.idle_grace);
        Some(Begun { run, term })
    }

    fn spawn(&self, begun: impl IntoIterator<Item = Begun>) {
        let begun = begun.into_iter().map(|Begun { run, term }| run(term));
        let begun: Vec<_> = begun.collect();
        let mut running = self.running.lock();
        while running.try_join_next().is_some() {}
        for informer in begun {
            running.spawn(informer);
        }
    }

    /// Of each informer that has been started, or is run by others, and is not about to end.
    pub(super) fn waits(&self) -> Vec<WaitForSync> {
        let state = self.state.lock();
        let places = state.places.iter();
        let started = places.filter(|place| place.run.is_none() && !place.is_ending());
        started.map(|place| place.wait.clone()).collect()
    }

    /// From now on nothing is run, and everything that runs is told to end. Those that never ran end
    /// here.
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

    /// Tells an informer to end, and frees its place.
    pub(super) fn end<K: 'static>(&self, informer: &SharedInformer<K>) -> Ending {
        let mut state = self.state.lock();
        let at = state.places.iter().position(|place| {
            let there = place.informer.downcast_ref::<SharedInformer<K>>();
            there.is_some_and(|there| there.is_same(informer))
        });
        let Some(at) = at.filter(|_| !state.shut_down) else {
            return Ending::NotHere;
        };
        let place = &mut state.places[at];
        if place.demand.receiver_count() == 0 {
            let mut place = state.places.remove(at);
            drop(state);
            return Ending::Left(place.run.take());
        }
        place.demand.send_replace(Demand::Ended);
        Ending::Told(Arc::clone(&place.demand))
    }

    /// Somebody who holds it lets somebody else hold it too.
    pub(super) fn hold(self: &Arc<Self>, id: PlaceId) {
        let mut state = self.state.lock();
        let begun = self.take(&mut state, id, Want::Held);
        drop(state);
        self.spawn(begun);
    }

    /// The informer of a place, if there is one that has not ended.
    pub(super) fn look<K: 'static>(&self, key: &Key) -> Option<SharedInformer<K>> {
        let state = self.settled(key);
        state.find(key).map(|found| found.informer)
    }

    /// Somebody holds it no longer.
    pub(super) fn release(&self, id: PlaceId) {
        let mut state = self.state.lock();
        let Some(place) = state.place(id) else {
            return;
        };
        place.holds -= 1;
        if !place.is_wanted() {
            place
                .demand
                .send_if_modified(|demand| demand.becomes(Demand::Wanted, Demand::Idle));
        }
    }

    /// Frees the place of an informer that nobody wants any more; whether nobody does.
    pub(super) fn retire(&self, id: PlaceId) -> bool {
        let mut state = self.state.lock();
        if state.place(id).is_some_and(|place| place.is_wanted()) {
            return false;
        }
        let retired = state.remove(id);
        drop(state);
        drop(retired);
        true
    }

    /// Frees the place of an informer that was told to end, and has.
    pub(super) fn clear(&self, id: PlaceId) {
        let mut state = self.state.lock();
        let ended = state.place(id).is_some_and(|place| place.is_ending());
        let ended = ended.then(|| state.remove(id));
        drop(state);
        drop(ended);
    }

    /// Notes that somebody wants it, and gives what runs it if it is to run and does not yet.
    #[must_use = "it does not run until this is spawned"]
    fn take(self: &Arc<Self>, state: &mut State, id: PlaceId, want: Want) -> Option<Begun> {
        let place = state.place(id)?;
        match want {
            Want::Pinned => place.pinned = true,
            Want::Held => place.holds += 1,
        }
        place
            .demand
            .send_if_modified(|demand| demand.becomes(Demand::Idle, Demand::Wanted));
        // After the shutdown there is nothing to begin.
        (want == Want::Held).then(|| self.begin(place)).flatten()
    }

    /// The state, once no other thread is making this place's informer, or one does that waits for
    /// what this thread is making.
    fn settled(&self, key: &Key) -> MutexGuard<'_, State> {
        let this = thread::current().id();
        let mut state = self.state.lock();
        while state.makers(key, this).next().is_some() {
            if let Some(own) = state.wanted_for(key, this) {
                let (kind, own) = (key.kind(), own.kind());
                tracing::warn!(
                    kind,
                    own,
                    "constructors ask for each other's kinds; the usual informer takes the place"
                );
                break;
            }
            state.waiting.push((this, key.clone()));
            self.made.wait(&mut state);
            state.waiting.retain(|(thread, _)| *thread != this);
        }
        state
    }
}

impl State {
    fn find<K: 'static>(&self, key: &Key) -> Option<Found<K>> {
        let place = self.places.iter().find(|place| place.key == *key)?;
        let informer = place.informer.downcast_ref::<SharedInformer<K>>()?;
        let has_ended = informer.is_stopped() || place.is_ending();
        let is_replaceable = has_ended && !self.shut_down;
        (!is_replaceable).then(|| Found {
            informer: informer.clone(),
            options: place.options.clone(),
            id: place.id,
        })
    }

    /// The other threads that are making what is to fill this place.
    fn makers(&self, key: &Key, this: ThreadId) -> impl Iterator<Item = ThreadId> {
        let making = self.making.iter();
        making.filter_map(move |(made, by)| (made == key && *by != this).then_some(*by))
    }

    /// What this thread is making, if those who make what is to fill the place wait for it, be it
    /// through others.
    fn wanted_for(&self, key: &Key, this: ThreadId) -> Option<&Key> {
        self.makers(key, this).find_map(|maker| {
            let (_, wanted) = self.waiting.iter().find(|(thread, _)| *thread == maker)?;
            let mut making = self.making.iter();
            let own = making.find(|(made, by)| made == wanted && *by == this);
            own.map_or_else(|| self.wanted_for(wanted, this), |(own, _)| Some(own))
        })
    }

    fn place(&mut self, id: PlaceId) -> Option<&mut Place> {
        self.places.iter_mut().find(|place| place.id == id)
    }

    fn remove(&mut self, id: PlaceId) -> Option<Place> {
        let at = self.places.iter().position(|place| place.id == id)?;
        Some(self.places.remove(at))
    }

    /// Fills a place. What was there has ended or is ending, and is given back, to be dropped without
    /// the lock: its cache is full of the user's objects.
    fn fill<K: Send + Sync + 'static>(
        &mut self,
        key: &Key,
        new: Made<K>,
    ) -> (Found<K>, Option<Place>) {
        let id = PlaceId(self.next_id);
        self.next_id += 1;
        let found = Found {
            informer: new.informer.clone(),
            options: new.options.clone(),
            id,
        };
        let place = Place {
            id,
            key: key.clone(),
            options: new.options,
            wait: new.informer.wait_for_sync(),
            informer: Box::new(new.informer),
            run: new.run,
            demand: Arc::new(watch::Sender::new(Demand::Wanted)),
            pinned: false,
            holds: 0,
        };
        let taken = self.places.iter_mut().find(|place| place.key == *key);
        let replaced = if let Some(taken) = taken {
            Some(std::mem::replace(taken, place))
        } else {
            self.places.push(place);
            None
        };
        (found, replaced)
    }
}

impl Place {
    fn is_wanted(&self) -> bool {
        self.pinned || self.holds > 0
    }

    fn is_ending(&self) -> bool {
        *self.demand.borrow() == Demand::Ended
    }
}

/// While it lives a constructor is at work in this thread; also one that panics ends.
struct Making<'a>(&'a Places);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let this = thread::current().id();
        let mut state = self.0.state.lock();
        let making = &mut state.making;
        // Of several of one thread the last begun ends first.
        if let Some(at) = making.iter().rposition(|(_, thread)| *thread == this) {
            making.remove(at);
        }
        drop(state);
        self.0.made.notify_all();
    }
}

#[cfg(test)]
mod tests;
