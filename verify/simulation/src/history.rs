//! Records the events that a handler receives, and checks that the events of each object are consistent.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube_core::Resource;
use kube_informer::{Cause, Event, EventHandler, Object, ObjectName};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::{
    life::{Handler, Queue, Setting},
    truth::{State, States},
};

/// The events that one handler has received, and the first inconsistency.
#[derive(Clone)]
pub(crate) struct History(Arc<Mutex<Heard>>);

struct Heard {
    /// Last delivered state of each object that has not been deleted.
    state: States,
    /// Copy of `state` from the time of `Event::Synced`; `None` before that event.
    at_sync: Option<States>,
    /// Resync period of the handler; zero disables resyncs.
    every: Duration,
    /// Registration time, used to detect resyncs that are too early; `None` disables this check.
    since: Option<Instant>,
    /// Whether `Added` events before `Event::Synced` may have `in_initial_list: false`.
    ///
    /// True if the informer lists several namespaces separately, or if the handler has a filter.
    begins_early: bool,
    /// Whether an update may have equal old and new objects; see [`History::lied`].
    lied: bool,
    lines: Vec<String>,
    /// Description of the first inconsistent event.
    wrong: Option<String>,
    events: u32,
    /// Number of received resync events per object.
    resynced: BTreeMap<ObjectName, u32>,
    /// Whether a callback of the handler is running.
    telling: bool,
}

impl History {
    pub(crate) fn new(handler: &Handler, setting: &Setting) -> Self {
        Self(Arc::new(Mutex::new(Heard {
            state: States::new(),
            at_sync: None,
            every: Duration::from_secs(handler.resync),
            since: (setting.queue != Queue::DeltaFifo).then(Instant::now),
            begins_early: setting.sources() > 1 || handler.filtered,
            lied: false,
            lines: Vec::new(),
            wrong: None,
            events: 0,
            resynced: BTreeMap::new(),
            telling: false,
        })))
    }

    /// Returns an event handler with the settings in `handler`, which records its events in this history.
    pub(crate) fn listening(&self, handler: &Handler) -> Listening {
        Listening {
            history: self.clone(),
            pause: Duration::from_millis(handler.slow),
            panics: handler.panics,
        }
    }

    pub(crate) fn state(&self) -> States {
        self.0.lock().state.clone()
    }

    pub(crate) fn at_sync(&self) -> Option<States> {
        self.0.lock().at_sync.clone()
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.0.lock().at_sync.is_some()
    }

    /// Returns whether a callback of the handler is running.
    pub(crate) fn is_being_told(&self) -> bool {
        self.0.lock().telling
    }

    /// Returns the number of events that the handler has received.
    pub(crate) fn events(&self) -> u32 {
        self.0.lock().events
    }

    /// Returns how many resync events the handler has received for each object.
    pub(crate) fn resynced(&self) -> BTreeMap<ObjectName, u32> {
        self.0.lock().resynced.clone()
    }

    /// Permits updates whose old and new objects are equal.
    ///
    /// Must be called if a fault can cause such updates: wrong, repeated, lost or reordered events, or a
    /// return to an older state.
    pub(crate) fn lied(&self) {
        self.0.lock().lied = true;
    }

    pub(crate) fn wrong(&self) -> Option<String> {
        self.0.lock().wrong.clone()
    }

    pub(crate) fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().lines)
    }

    /// Records an `Added` event with `in_initial_list: true` that the informer has not delivered.
    ///
    /// The simulation calls this method to imitate a bug, which the checks must find.
    pub(crate) fn note<K: Resource>(&self, object: &Object<K>) {
        let event = Event::Added {
            object: object.clone(),
            in_initial_list: true,
        };
        self.0.lock().hear(&event);
    }
}

/// Event handler that records each event, and then sleeps for `pause`.
///
/// Panics after every `panics` events; 0 disables panics.
pub(crate) struct Listening {
    history: History,
    pause: Duration,
    panics: u32,
}

impl<K: Resource + Send + Sync + 'static> EventHandler<K> for Listening {
    async fn handle(&mut self, event: Event<K>) {
        let count = self.history.0.lock().hear(&event);
        let _telling = Telling::begin(&self.history);
        if !self.pause.is_zero() {
            sleep(self.pause).await;
        }
        assert!(
            self.panics == 0 || !count.is_multiple_of(self.panics),
            "as drawn"
        );
    }
}

/// Marks a callback of the handler as running until dropped.
struct Telling<'a>(&'a History);

impl<'a> Telling<'a> {
    fn begin(history: &'a History) -> Self {
        history.0.lock().telling = true;
        Self(history)
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.0.lock().telling = false;
    }
}

impl Heard {
    /// Records an event, and returns the number of events so far.
    ///
    /// Also records the description of the first inconsistent event.
    fn hear<K: Resource>(&mut self, event: &Event<K>) -> u32 {
        self.events += 1;
        let line = show(event);
        if let Err(wrong) = self.follow(event) {
            self.wrong.get_or_insert(format!("{wrong}: {line}"));
        }
        self.lines.push(line);
        self.events
    }

    /// Checks one event, and updates the last delivered state of the object.
    ///
    /// Returns the reason if the event does not fit the earlier events.
    fn follow<K: Resource>(&mut self, event: &Event<K>) -> Result<(), &'static str> {
        match event {
            Event::Synced if self.at_sync.is_some() => return Err("synced twice"),
            Event::Synced => self.at_sync = Some(self.state.clone()),
            Event::Added {
                object,
                in_initial_list,
            } => {
                if *in_initial_list && self.at_sync.is_some() {
                    return Err("flagged as initial after the marker");
                }
                if !*in_initial_list && self.at_sync.is_none() && !self.begins_early {
                    return Err("not flagged as initial before the marker");
                }
                let name = object.object_name().clone();
                if self.state.insert(name, State::of(object)).is_some() {
                    return Err("added twice");
                }
            }
            Event::Updated { old, new, cause } => {
                let name = new.object_name().clone();
                let told = self.state.insert(name, State::of(new));
                if told.as_ref() != Some(&State::of(old)) {
                    return Err("old is not the last delivered state");
                }
                let same = told == Some(State::of(new));
                let may_hear_again = !self.every.is_zero() && *cause != Cause::Watch;
                if same && !may_hear_again && !self.lied {
                    return Err("an unchanged object was delivered to a handler without resyncs");
                }
                if *cause == Cause::Resync && !same {
                    return Err("a resync with a changed object");
                }
                if *cause == Cause::Resync {
                    return self.hear_again(new.object_name());
                }
            }
            Event::Deleted(gone) => {
                if self.state.remove(gone.object_name()).is_none() {
                    return Err("deleted without having been added");
                }
                if gone.object().is_none() {
                    return Err("deleted without a last state");
                }
            }
        }
        Ok(())
    }

    /// Counts a resync event of an object.
    ///
    /// Returns an error if the object has had more resyncs than resync periods have passed since the
    /// handler's registration.
    fn hear_again(&mut self, name: &ObjectName) -> Result<(), &'static str> {
        let times = self.resynced.entry(name.clone()).or_default();
        *times += 1;
        let too_soon = |since: Instant| self.every * *times > since.elapsed();
        if self.since.is_some_and(too_soon) {
            return Err("a resync earlier than requested");
        }
        Ok(())
    }
}

fn show<K: Resource>(event: &Event<K>) -> String {
    let state = |object: &Object<K>| {
        let State { value, web, .. } = State::of(object);
        let app = if web { " web" } else { "" };
        format!("{object:?} v={value}{app}")
    };
    match event {
        Event::Added {
            object,
            in_initial_list,
        } => {
            let initial = if *in_initial_list { " (initial)" } else { "" };
            format!("add {}{initial}", state(object))
        }
        Event::Updated { old, new, cause } => {
            format!("update {} → {} ({cause:?})", state(old), state(new))
        }
        Event::Deleted(gone) => match gone.object() {
            Some(object) => format!("delete {}", state(object)),
            None => format!("delete {}", gone.object_name()),
        },
        Event::Synced => "synced".to_owned(),
    }
}
