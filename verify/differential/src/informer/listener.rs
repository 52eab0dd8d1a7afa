//! Defines the event handler that the comparison registers with the library's informer.
//!
//! The handler records its events. If an event contradicts earlier events of the same object, the handler
//! also records a violated guarantee. An example is an update with a wrong old state.

use std::{collections::BTreeMap, sync::Arc};

use kube_informer::{
    event_handler::{Event, EventHandler},
    object::{Deleted, Object},
    shared_informer::Registration,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    ADD_INITIAL, ADD_LATER, DELETE, FILTER_BEGINS, FILTER_CEASES, OTHER_OLD, RECREATED, REPEATED,
    TOLD_TWICE, TOMBSTONE, UNKNOWN_DELETED, UPDATE,
};
use crate::cached::{K, show};

/// A handler of the library's informer, and the record of its events.
pub(super) struct Listener {
    pub(super) name: String,
    pub(super) filtered: bool,
    pub(super) told: Arc<Mutex<Told>>,
    pub(super) held: watch::Sender<bool>,
    pub(super) registration: Registration<K>,
}

/// The events that one handler has received, and the resulting object states.
#[derive(Default)]
pub(super) struct Told {
    /// Formatted events since the last call of [`Listener::take`], each with the object's name.
    pub(super) events: Vec<(String, String)>,
    /// Formatted current state of each object, by the object's name.
    pub(super) view: BTreeMap<String, String>,
    /// Whether the next call of [`Listener::take`] returns the states in `view` instead of the events.
    ///
    /// Set if the watch delivers changes during the registration of the handler. The events then depend on
    /// timing, but the final states do not.
    pub(super) amid: bool,
    /// Names of the received event types and of the violated guarantees.
    pub(super) seen: Vec<&'static str>,
}

impl Told {
    /// Records an event in `events`, `seen` and `view`, unless it is `Event::Synced`.
    pub(super) fn note(&mut self, event: &Event<K>) {
        let Some(name) = event.object_name() else {
            return;
        };
        let key = name.to_string();
        let text = match event {
            Event::Added {
                object,
                in_initial_list,
            } => self.added(&key, object, *in_initial_list),
            Event::Updated { old, new, .. } => self.updated(&key, old, new),
            Event::Deleted(deleted) => self.deleted(&key, deleted),
            Event::Synced => return,
        };
        self.events.push((key, text));
    }

    fn added(&mut self, key: &str, object: &Object<K>, initial: bool) -> String {
        self.seen
            .push(if initial { ADD_INITIAL } else { ADD_LATER });
        if self.view.insert(key.to_owned(), show(object)).is_some() {
            self.seen.push(TOLD_TWICE);
        }
        let born = format!("born at {}", object.revision());
        if !initial && object.uid() != born {
            self.seen.push(FILTER_BEGINS);
        }
        let initial = if initial { " initial" } else { "" };
        format!("+{}{initial}", show(object))
    }

    fn updated(&mut self, key: &str, old: &Object<K>, new: &Object<K>) -> String {
        self.seen.push(if old.revision() == new.revision() {
            REPEATED
        } else if old.uid() == new.uid() {
            UPDATE
        } else {
            RECREATED
        });
        if self.view.insert(key.to_owned(), show(new)) != Some(show(old)) {
            self.seen.push(OTHER_OLD);
        }
        format!("~{} {}", show(old), show(new))
    }

    fn deleted(&mut self, key: &str, deleted: &Deleted<K>) -> String {
        let known = self.view.remove(key);
        let last = deleted.object().map_or_else(|| "nothing".into(), show);
        let is_tombstone = matches!(deleted, Deleted::FinalStateUnknown { .. });
        self.seen.push(match &known {
            None => UNKNOWN_DELETED,
            _ if is_tombstone => TOMBSTONE,
            // A deletion has a revision of its own.
            Some(known) if *known == last => FILTER_CEASES,
            Some(_) => DELETE,
        });
        if is_tombstone {
            format!("-?{key}({last})")
        } else {
            format!("-{last}")
        }
    }
}

impl Listener {
    /// Removes the events since the last call, and returns them as text.
    ///
    /// If `ordered` is false, sorts the events by object name, because their order is undefined. If
    /// [`Told::amid`] is true, returns the current states of all objects instead of the events.
    pub(super) fn take(&self, ordered: bool) -> String {
        let mut told = self.told.lock();
        let mut events = std::mem::take(&mut told.events);
        if std::mem::take(&mut told.amid) {
            let now: Vec<_> = told.view.values().map(String::as_str).collect();
            return format!("joined [{}]", now.join(" "));
        }
        if !ordered {
            events.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        let repeats = events.chunk_by(|one, other| one == other).map(|same| {
            let text = &same[0].1;
            match same.len() {
                1 => text.clone(),
                times => format!("{text} ×{times}"),
            }
        });
        repeats.collect::<Vec<_>>().join(", ")
    }

    /// Returns whether the handler's callbacks are blocked.
    pub(super) fn is_held(&self) -> bool {
        *self.held.borrow()
    }
}

/// The event handler of a [`Listener`].
pub(super) struct Handler {
    pub(super) told: Arc<Mutex<Told>>,
    pub(super) held: watch::Receiver<bool>,
    /// Whether the handler ignores the initial `Added` events. True only for the bug
    /// `Bug::LateWithoutBarrier`.
    pub(super) skips_initial: bool,
}

impl EventHandler<K> for Handler {
    async fn handle(&mut self, event: Event<K>) {
        let initial = matches!(
            event,
            Event::Added {
                in_initial_list: true,
                ..
            }
        );
        if event.object_name().is_none() || (initial && self.skips_initial) {
            return;
        }
        // The wait ends when the handler is released or removed. An event is recorded when its callback ends,
        // because the event that blocks a handler depends on earlier events that may be merged.
        drop(self.held.wait_for(|held| !held).await);
        self.told.lock().note(&event);
    }
}
