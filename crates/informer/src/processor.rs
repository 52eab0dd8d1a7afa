//! [`Processor`] delivers each change of the cache to all listeners of an informer, and schedules their
//! resyncs. A listener is one registered handler or subscription.
//!
//! Guarantees: every listener has its own buffer, and every handler has its own task. A slow handler
//! therefore does not delay other handlers. A full [`ListenerBuffer::Block`] buffer is the exception: it
//! blocks the informer.
//!
//! The controller's task owns the processor. The processor does not read the queue or write the store.

mod buffer;
mod calls;
mod handler_status;
mod listener;
mod listener_buffer;
mod notification;
mod resync;

mod waiting;

pub(crate) use self::{
    buffer::{Buffer, Closing},
    listener::{Delivery, Listener, ListenerId, Listening, SyncReport, listen},
    notification::{Events, Expansion, Notification},
};
pub use self::{handler_status::HandlerStatus, listener_buffer::ListenerBuffer};

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::{sync::Notify, task::JoinSet, time::Instant};

use self::resync::Schedule;
use crate::{
    clock,
    event_handler::Event,
    indexer::{Change, Snapshot},
};

pub(crate) struct Processor<K> {
    listeners: Vec<Listener<K>>,
    tasks: JoinSet<()>,
    schedule: Schedule<ListenerId>,
    /// Listeners that the last [`tick`](Self::tick) selected for a resync.
    due: BTreeSet<ListenerId>,
    /// Wakes the controller when a full `Block` buffer can accept a notification again.
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

    /// Adds a listener, and spawns `task`, which calls the listener's handler.
    ///
    /// A listener with [`Delivery::Changes`] first receives the objects of `cache`.
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

    /// Removes a listener and discards its waiting notifications. A running callback runs to the end.
    pub(crate) fn remove(&mut self, id: ListenerId) {
        self.schedule.remove(id);
        self.due.remove(&id);
        self.listeners.retain(|listener| listener.id != id);
    }

    /// Adds an applied batch's changes to the listeners' buffers, without waiting for handlers.
    ///
    /// Does not check the capacity of `Block` buffers. The caller limits each batch by [`room`](Self::room).
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

    /// Adds the `Synced` event to the buffers of all listeners.
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

    /// Returns how many single-object changes the fullest buffer can accept.
    pub(crate) fn room(&self) -> usize {
        let rooms = self.listeners.iter().map(|listener| listener.buffer.room());
        rooms.min().unwrap_or(usize::MAX)
    }

    /// Waits until [`room`](Self::room) may have increased: a listener has removed a notification from its
    /// `Block` buffer, or a listener's buffer has been closed.
    ///
    /// Returns immediately if this has happened since the last completed call.
    pub(crate) async fn room_made(&self) {
        self.room.notified().await;
    }

    /// Starts the resync timer.
    pub(crate) fn started(&mut self) {
        self.schedule.start(Instant::now());
    }

    /// Waits for the next tick of the resync timer. Never completes if no tick is scheduled.
    pub(crate) async fn next_resync(&self) {
        clock::until(self.schedule.next_tick()).await;
    }

    /// Selects the listeners that receive the next resync, and returns whether there are any.
    ///
    /// If the result is true, the caller must pass the resync's changes to [`distribute`](Self::distribute)
    /// before it calls `tick` again.
    pub(crate) fn tick(&mut self) -> bool {
        let mut due = self.schedule.tick(Instant::now());
        // A listener that still handles its last resync does not receive another. Otherwise the
        // backlog of a handler that is slower than its resync period would grow without limit.
        for listener in &self.listeners {
            if listener.buffer.is_resyncing() {
                due.remove(&listener.id);
            }
        }
        self.due = due;
        !self.due.is_empty()
    }

    /// Closes all buffers, waits for the handler tasks, and returns the number of discarded events.
    ///
    /// [`Closing::Drain`] delivers waiting events until its deadline. [`Closing::Discard`] discards them.
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

fn is_single<K>(change: &Change<K>) -> bool {
    matches!(
        change,
        Change::Added { .. } | Change::Updated { .. } | Change::Deleted(_)
    )
}

#[cfg(test)]
mod tests;
