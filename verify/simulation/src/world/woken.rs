//! Simulates a controller that reads objects through the overlay of local writes ([`MutationCache`]).
//!
//! The controller reads an object in three cases only:
//! - The controller receives an event of the object.
//! - The controller has written or deleted the object.
//! - The overlay reports that the entry of the object has expired.

use std::sync::Arc;

use kube_informer::{Event, MutationCache, ObjectName, SharedInformer};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::{
    planted::Bug,
    stored::Stored,
    truth::{State, States},
};

pub(super) struct Woken<K> {
    view: View<K>,
    _task: JoinSet<()>,
}

struct View<K> {
    overlay: MutationCache<K>,
    read: Arc<Mutex<States>>,
}

impl<K> Clone for View<K> {
    fn clone(&self) -> Self {
        Self {
            overlay: self.overlay.clone(),
            read: Arc::clone(&self.read),
        }
    }
}

impl<K: Stored> Woken<K> {
    pub(super) fn new(
        informer: &SharedInformer<K>,
        overlay: MutationCache<K>,
        bug: Option<Bug>,
    ) -> Self {
        let view = View {
            overlay,
            read: Arc::default(),
        };
        let mut task = JoinSet::new();
        task.spawn(read_when_woken(informer.clone(), view.clone(), bug));
        Self { view, _task: task }
    }

    /// Reads an object that the controller has written or deleted, and records the result for
    /// [`Self::states`].
    pub(super) fn wrote(&self, name: &ObjectName) {
        self.view.look(name);
    }

    /// Returns the state that the controller last read of each object.
    ///
    /// Omits objects that the last read did not find.
    pub(super) fn states(&self) -> States {
        self.view.read.lock().clone()
    }
}

impl<K: Stored> View<K> {
    fn look(&self, name: &ObjectName) {
        let found = self.overlay.find(name);
        let mut read = self.read.lock();
        match found {
            Some(object) => drop(read.insert(name.clone(), State::of(&object))),
            None => drop(read.remove(name)),
        }
    }
}

async fn read_when_woken<K: Stored>(informer: SharedInformer<K>, view: View<K>, bug: Option<Bug>) {
    let Ok(mut events) = informer.subscribe() else {
        return;
    };
    let mut lapsed = view.overlay.lapsed();
    let listens = bug != Some(Bug::LapseUnreported);
    loop {
        let name = tokio::select! {
            biased;
            event = events.next() => match event {
                Some(Event::Added { object, .. }) => object.object_name().clone(),
                Some(Event::Updated { new, .. }) => new.object_name().clone(),
                Some(Event::Deleted(deleted)) => deleted.object_name().clone(),
                Some(_) => continue,
                None => return,
            },
            Some(name) = lapsed.next(), if listens => name,
        };
        view.look(&name);
    }
}
