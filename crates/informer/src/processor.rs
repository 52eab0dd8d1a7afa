//! Fans each change out to the listeners, and knows which of them is due a resync.
//!
//! Owned by the controller's task. A listener has its own buffer and its own task, so a slow handler
//! holds back nobody: [`Processor::distribute`] never waits. The one exception is chosen by the user:
//! while a `Block` buffer is full there is no [`Processor::room`], and the controller pops nothing but
//! what the informer needs to have synced.

mod buffer;
mod handler_status;
mod listener;
mod listener_buffer;
mod notification;
mod prefetch;
mod resync;
mod telling;
mod waiting;

pub(crate) use self::{
    buffer::{Buffer, Closing},
    listener::{Delivery, Listener, ListenerId, Listening, SyncReport, listen},
};
pub use self::{handler_status::HandlerStatus, listener_buffer::ListenerBuffer};

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::{sync::Notify, task::JoinSet, time::Instant};

use self::{notification::Notification, resync::Schedule};
use crate::{
    clock,
    event_handler::Event,
    indexer::{Change, Snapshot},
};

pub(crate) struct Processor<K> {
    listeners: Vec<Listener<K>>,
    tasks: JoinSet<()>,
    schedule: Schedule<ListenerId>,
    /// Who hears of resyncs and of unchanged objects, until the next tick.
    due: BTreeSet<ListenerId>,
    /// Wakes the controller when a full `Block` buffer has room again.
    room: Arc<Notify>,
}

impl<K> Processor<K>
where
    K: Send + Sync + 'static,
{
    pub(crate) fn new(default_resync: Duration, room: Arc<Notify>) -> Self {
        Self {
            listeners: Vec::new(),
            tasks: JoinSet::new(),
            schedule: Schedule::new(default_resync),
            due: BTreeSet::new(),
            room,
        }
    }

    /// Lets a listener join between two batches, and runs its task. It hears what the cache has, and then
    /// everything that comes after.
    pub(crate) fn add(
        &mut self,
        listener: Listener<K>,
        task: Option<BoxFuture<'static, ()>>,
        cache: Snapshot<K>,
        synced: bool,
    ) {
        self.schedule
            .add(listener.id, listener.resync, Instant::now());
        listener.join(cache, synced);
        self.listeners.push(listener);
        if let Some(task) = task {
            self.tasks.spawn(task);
        }
        while self.tasks.try_join_next().is_some() {}
    }

    /// Lets a listener go: the callback in progress ends, the rest is discarded.
    pub(crate) fn remove(&mut self, id: ListenerId) {
        self.schedule.remove(id);
        self.due.remove(&id);
        self.listeners.retain(|listener| listener.id != id);
    }

    /// Tells every listener what it has to hear of a batch that has just been applied. Each is woken as
    /// soon as its own buffer has all of it.
    pub(crate) async fn distribute(&self, changes: &[Change<K>]) {
        let now = Instant::now();
        let together = |one: &Change<K>, next: &Change<K>| is_single(one) && is_single(next);
        for changes in changes.chunk_by(together) {
            match changes {
                [
                    Change::Replaced {
                        old,
                        new,
                        changed,
                        in_initial_list,
                    },
                ] => {
                    let has_changes = changed.listed.iter().any(|(_, changed)| *changed)
                        || !changed.gone.is_empty();
                    for listener in &self.listeners {
                        let unchanged = listener.hears_unchanged(self.is_due(listener));
                        if has_changes || unchanged {
                            let replaced = Notification::Replaced {
                                old: old.clone(),
                                new: new.clone(),
                                changed: Arc::clone(changed),
                                in_initial_list: *in_initial_list,
                                unchanged,
                            };
                            listener.buffer.deliver([replaced], now).await;
                        }
                    }
                }
                [Change::Resync(snapshot)] => {
                    for listener in self.listeners.iter().filter(|one| self.is_due(one)) {
                        let resync = Notification::Resync(snapshot.clone());
                        listener.buffer.deliver([resync], now).await;
                    }
                }
                singles => {
                    for listener in &self.listeners {
                        let is_due = self.is_due(listener);
                        let events = singles.iter().filter_map(|one| listener.event(one, is_due));
                        let events = events.map(Notification::One);
                        listener.buffer.deliver(events, now).await;
                    }
                }
            }
        }
    }

    /// Every source's first list has been told.
    pub(crate) fn synced(&self) {
        let now = Instant::now();
        for listener in &self.listeners {
            let synced = Notification::One(Event::Synced);
            listener.buffer.push_all([synced], now);
        }
    }

    fn is_due(&self, listener: &Listener<K>) -> bool {
        self.due.contains(&listener.id)
    }

    /// How many single changes may be distributed now: 0 while a `Block` buffer is full.
    pub(crate) fn room(&self) -> usize {
        let rooms = self.listeners.iter().map(|listener| listener.buffer.room());
        rooms.min().unwrap_or(usize::MAX)
    }

    /// Resolves some time after a full `Block` buffer has got room.
    pub(crate) async fn room_made(&self) {
        self.room.notified().await;
    }

    /// The informer runs from now on: the resync timer begins.
    pub(crate) fn started(&mut self) {
        self.schedule.start(Instant::now());
    }

    /// Waits until some listener may be due a resync; for ever if none wants any.
    pub(crate) async fn next_resync(&self) {
        clock::until(self.schedule.next_tick()).await;
    }

    /// Marks who is due, until the next tick; whether anybody is. To be called when all of the last
    /// resync has been distributed.
    pub(crate) fn tick(&mut self) -> bool {
        let mut due = self.schedule.tick(Instant::now());
        // Who has not heard all of the last resync gets no other behind it: a handler that is slower
        // than its period would fall behind for ever.
        for listener in &self.listeners {
            if listener.buffer.is_resyncing() {
                due.remove(&listener.id);
            }
        }
        self.due = due;
        !self.due.is_empty()
    }

    /// Lets every listener end and waits for it; how many notifications nobody was told of.
    pub(crate) async fn close(mut self, closing: Closing) -> u64 {
        for listener in &self.listeners {
            listener.buffer.close(closing);
        }
        match closing {
            Closing::Drain(deadline) => {
                let drained = async { while self.tasks.join_next().await.is_some() {} };
                if tokio::time::timeout_at(deadline, drained).await.is_err() {
                    for listener in self.listeners.iter().filter(|listener| listener.has_task) {
                        listener.buffer.close(Closing::Discard);
                    }
                }
            }
            Closing::Discard => {}
        }
        while self.tasks.join_next().await.is_some() {}
        self.listeners
            .iter()
            .map(|listener| listener.buffer.status().discarded)
            .sum()
    }
}

/// Whether it is of one object.
fn is_single<K>(change: &Change<K>) -> bool {
    matches!(
        change,
        Change::Added { .. } | Change::Updated { .. } | Change::Deleted(_)
    )
}

#[cfg(test)]
mod tests;
