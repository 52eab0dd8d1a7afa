//! Fans each change out to the listeners, and knows which of them is due a resync.
//!
//! Owned by the controller's task. A listener has its own buffer and its own task, so a slow handler
//! holds back nobody: [`Processor::distribute`] never waits. The one exception is chosen by the user:
//! while a `Block` buffer is full there is no [`Processor::room`], and the controller pops nothing but
//! what the informer needs to have synced.

mod ahead;
mod buffer;
mod handler_status;
mod listener;
mod listener_buffer;
mod notification;
mod resync;
mod waiting;

pub(crate) use self::{
    buffer::{Buffer, Closing},
    listener::{EndGuard, listen},
    notification::Expansion,
};
pub use self::{handler_status::HandlerStatus, listener_buffer::ListenerBuffer};

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::{sync::Notify, task::JoinSet, time::Instant};

use self::{notification::Notification, resync::Schedule};
use crate::{
    event_handler::Event,
    indexer::{Cause, Change, Snapshot},
};

/// Tells the listeners of one informer apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListenerId(pub(crate) u64);

/// What a listener hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// What changes; what a list or a resync brings back as it was, only when due. It hears the cache
    /// when it joins.
    News,
    /// Also every item of a list and every resync. It hears nothing when it joins: what the cache has
    /// then, it knew before.
    Everything,
}

/// A listener that wants to join.
pub(crate) struct NewListener<K> {
    pub(crate) id: ListenerId,
    pub(crate) buffer: Arc<Buffer<K>>,
    /// The resync period it asks for; `None` for the informer's default.
    pub(crate) resync: Option<Duration>,
    pub(crate) tells: Tells,
    /// What tells the handler, to be run as a task; `None` if somebody polls the buffer.
    pub(crate) task: Option<BoxFuture<'static, ()>>,
    pub(crate) closer: Closer<K>,
}

/// Closes a buffer when nobody can fill it any more: its listener was removed, or never joined, or
/// the informer is gone.
pub(crate) struct Closer<K>(Option<Arc<Buffer<K>>>);

impl<K> Closer<K> {
    pub(crate) fn new(buffer: &Arc<Buffer<K>>) -> Self {
        Self(Some(Arc::clone(buffer)))
    }
}

impl<K> Drop for Closer<K> {
    fn drop(&mut self) {
        if let Some(buffer) = self.0.take() {
            buffer.close(Closing::Discard);
        }
    }
}

pub(crate) struct Processor<K> {
    listeners: Vec<Listener<K>>,
    tasks: JoinSet<()>,
    schedule: Schedule<ListenerId>,
    /// Who hears of resyncs and of unchanged objects, until the next tick.
    due: BTreeSet<ListenerId>,
    /// Wakes the controller when a full `Block` buffer has room again.
    room: Arc<Notify>,
}

struct Listener<K> {
    id: ListenerId,
    buffer: Arc<Buffer<K>>,
    tells: Tells,
    /// Whether the informer runs it, or somebody polls its buffer.
    has_task: bool,
    closer: Closer<K>,
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

    /// Lets a listener join between two batches. It hears what the cache has, and then everything
    /// that comes after.
    pub(crate) fn add(&mut self, new: NewListener<K>, cache: Snapshot<K>, synced: bool) {
        let NewListener {
            id,
            buffer,
            resync,
            tells,
            task,
            closer,
        } = new;
        self.schedule.add(id, resync, Instant::now());
        if cache.told_after(None).is_some() && tells == Tells::News {
            buffer.push(Notification::Join(cache));
        }
        if synced {
            buffer.push(Notification::One(Event::Synced));
        }
        self.listeners.push(Listener {
            id,
            buffer,
            tells,
            has_task: task.is_some(),
            closer,
        });
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
                    let news = changed.listed.iter().any(|(_, changed)| *changed)
                        || !changed.gone.is_empty();
                    for listener in &self.listeners {
                        let unchanged = self.hears_unchanged(listener);
                        if news || unchanged {
                            let replaced = Notification::Replaced {
                                old: old.clone(),
                                new: new.clone(),
                                changed: Arc::clone(changed),
                                in_initial_list: *in_initial_list,
                                unchanged,
                            };
                            let replaced = std::iter::once(replaced);
                            listener.buffer.deliver(replaced, now).await;
                        }
                    }
                }
                [Change::Resync(snapshot)] => {
                    for listener in self.listeners.iter().filter(|l| self.due.contains(&l.id)) {
                        let resync = Notification::Resync(snapshot.clone());
                        let resync = std::iter::once(resync);
                        listener.buffer.deliver(resync, now).await;
                    }
                }
                singles => {
                    for listener in &self.listeners {
                        let events = singles.iter().filter_map(|one| self.event(listener, one));
                        listener
                            .buffer
                            .deliver(events.map(Notification::One), now)
                            .await;
                    }
                }
            }
        }
    }

    /// What a listener hears of a change of one object, if it has to hear of it.
    fn event(&self, listener: &Listener<K>, change: &Change<K>) -> Option<Event<K>> {
        match change {
            Change::Added {
                object,
                in_initial_list,
            } => Some(Event::Added {
                object: object.clone(),
                in_initial_list: *in_initial_list,
            }),
            Change::Updated { old, new, cause } => {
                // What a list or a resync brings back as it was is told to those who asked for it.
                let hears = match cause {
                    Cause::Resync => self.due.contains(&listener.id),
                    Cause::Relist if old.is_unchanged(new) => self.hears_unchanged(listener),
                    Cause::Relist | Cause::Watch => true,
                };
                hears.then(|| Event::Updated {
                    old: old.clone(),
                    new: new.clone(),
                    cause: *cause,
                })
            }
            Change::Deleted(deleted) => Some(Event::Deleted(deleted.clone())),
            Change::Replaced { .. } | Change::Resync(_) | Change::Listed(_) => None,
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
        match self.schedule.next_tick() {
            Some(tick) => tokio::time::sleep_until(tick).await,
            None => std::future::pending().await,
        }
    }

    /// Marks who is due, until the next tick; whether anybody is. To be called when all of the last
    /// resync has been distributed.
    pub(crate) fn tick(&mut self) -> bool {
        let mut due = self.schedule.tick(Instant::now());
        // Who has not heard all of the last resync gets no other behind it: a handler that is slower
        // than its period would fall behind for ever.
        for Listener { id, buffer, .. } in &self.listeners {
            if buffer.is_resyncing() {
                due.remove(id);
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
                // What somebody polls for ends when it is empty, however long that takes.
                for listener in self
                    .listeners
                    .iter_mut()
                    .filter(|listener| !listener.has_task)
                {
                    listener.closer.0 = None;
                }
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
            .map(|listener| listener.buffer.discarded())
            .sum()
    }

    fn hears_unchanged(&self, listener: &Listener<K>) -> bool {
        listener.tells == Tells::Everything || self.due.contains(&listener.id)
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
