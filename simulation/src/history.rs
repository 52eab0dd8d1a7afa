//! A handler that checks while it listens that what it hears makes sense.

use std::{sync::Arc, time::Duration};

use kube_core::Resource;
use kube_informer::{Cause, Event, EventHandler, Object};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::{
    life::{Handler, Setting},
    truth::{State, States},
};

/// What one handler has heard.
#[derive(Clone)]
pub(crate) struct History(Arc<Mutex<Heard>>);

struct Heard {
    /// What was told last of each object.
    state: States,
    /// What had been told when everything from the beginning was.
    at_sync: Option<States>,
    /// Whether it asked to hear of unchanged objects.
    resyncs: bool,
    /// Whether what it is told of can begin to be there before it has heard the marker: the informer has
    /// several sources, of which one can be past its first list before all are, or the handler has a
    /// filter, which an object can begin to pass.
    begins_early: bool,
    /// Whether the server has sent an event twice, or was put back, after which a state can be told that
    /// looks like the last one.
    lied: bool,
    lines: Vec<String>,
    /// The first thing that made no sense.
    wrong: Option<String>,
    events: u32,
}

impl History {
    pub(crate) fn new(handler: &Handler, setting: &Setting) -> Self {
        Self(Arc::new(Mutex::new(Heard {
            state: States::new(),
            at_sync: None,
            resyncs: handler.resync > 0,
            begins_early: setting.sources() > 1 || handler.filtered,
            lied: false,
            lines: Vec::new(),
            wrong: None,
            events: 0,
        })))
    }

    /// A handler that writes this history.
    pub(crate) fn listening(&self, handler: &Handler) -> Listening {
        Listening {
            history: self.clone(),
            pause: Duration::from_millis(handler.slow),
            panics: handler.panics,
        }
    }

    /// What was told of every object, by the end.
    pub(crate) fn state(&self) -> States {
        self.0.lock().state.clone()
    }

    /// What had been told when the marker came; `None` before.
    pub(crate) fn at_sync(&self) -> Option<States> {
        self.0.lock().at_sync.clone()
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.0.lock().at_sync.is_some()
    }

    /// From now on the server may say again what it has said.
    pub(crate) fn lied(&self) {
        self.0.lock().lied = true;
    }

    pub(crate) fn wrong(&self) -> Option<String> {
        self.0.lock().wrong.clone()
    }

    pub(crate) fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().lines)
    }

    /// Tells it of an object that its handler was not told of by the informer.
    pub(crate) fn note<K: Resource>(&self, object: &Object<K>) {
        let event = Event::Added {
            object: object.clone(),
            in_initial_list: true,
        };
        self.0.lock().hear(&event);
    }
}

/// Writes a history.
pub(crate) struct Listening {
    history: History,
    pause: Duration,
    panics: u32,
}

impl<K: Resource + Send + Sync + 'static> EventHandler<K> for Listening {
    async fn handle(&mut self, event: Event<K>) {
        let count = self.history.0.lock().hear(&event);
        if !self.pause.is_zero() {
            sleep(self.pause).await;
        }
        assert!(
            self.panics == 0 || !count.is_multiple_of(self.panics),
            "as drawn"
        );
    }
}

impl Heard {
    /// How many events that makes.
    fn hear<K: Resource>(&mut self, event: &Event<K>) -> u32 {
        self.events += 1;
        let line = show(event);
        if let Err(wrong) = self.follow(event) {
            self.wrong.get_or_insert(format!("{wrong}: {line}"));
        }
        self.lines.push(line);
        self.events
    }

    /// Per object: added, any number of updates, deleted; `old` is always what was told last; what
    /// was there at the beginning comes flagged, before the marker, and only then.
    fn follow<K: Resource>(&mut self, event: &Event<K>) -> Result<(), &'static str> {
        match event {
            Event::Synced if self.at_sync.is_some() => return Err("synced twice"),
            Event::Synced => self.at_sync = Some(self.state.clone()),
            Event::Added {
                object,
                in_initial_list,
            } => {
                if *in_initial_list && self.at_sync.is_some() {
                    return Err("flagged as initial behind the marker");
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
                    return Err("old is not what was told last");
                }
                let same = told == Some(State::of(new));
                let may_hear_again = self.resyncs && *cause != Cause::Watch;
                if same && !may_hear_again && !self.lied {
                    return Err("told of an unchanged object without having asked");
                }
                if *cause == Cause::Resync && !same {
                    return Err("a resync that brings a change");
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
