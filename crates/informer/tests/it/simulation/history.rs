//! A handler that checks while it listens that what it hears makes sense.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Cause, Event, EventHandler, ObjectName};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::setting::show;

/// What one handler has heard.
#[derive(Clone)]
pub(super) struct History(Arc<Mutex<Heard>>);

struct Heard {
    name: String,
    began: Instant,
    /// Object → the revision told last.
    state: BTreeMap<ObjectName, String>,
    synced: bool,
    resyncs: bool,
    lines: Vec<String>,
    /// The first thing that made no sense.
    wrong: Option<String>,
}

impl History {
    /// `resyncs`: whether this handler asked for resyncs, and may hear of unchanged objects.
    pub(super) fn new(name: impl Into<String>, resyncs: bool) -> Self {
        Self(Arc::new(Mutex::new(Heard {
            name: name.into(),
            began: Instant::now(),
            state: BTreeMap::new(),
            synced: false,
            resyncs,
            lines: Vec::new(),
            wrong: None,
        })))
    }

    /// A handler that writes this history, taking `pause` for each event.
    pub(super) fn handler(&self, pause: Duration) -> impl EventHandler<Pod> + use<> {
        Listening {
            history: self.clone(),
            pause,
        }
    }

    /// What was told of every object, by the end.
    pub(super) fn state(&self) -> BTreeMap<ObjectName, String> {
        self.0.lock().state.clone()
    }

    pub(super) fn check(&self) {
        let heard = self.0.lock();
        assert_eq!(heard.wrong, None, "{}", heard.name);
        assert!(heard.synced, "{} has never synced", heard.name);
    }

    pub(super) fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().lines)
    }
}

struct Listening {
    history: History,
    pause: Duration,
}

impl EventHandler<Pod> for Listening {
    async fn handle(&mut self, event: Event<Pod>) {
        self.history.0.lock().hear(&event);
        if !self.pause.is_zero() {
            sleep(self.pause).await;
        }
    }
}

impl Heard {
    fn hear(&mut self, event: &Event<Pod>) {
        let at = self.began.elapsed();
        self.lines
            .push(format!("{at:?} {} {}", self.name, show(event)));
        if let Err(wrong) = self.follow(event) {
            self.wrong
                .get_or_insert(format!("{wrong}: {}", show(event)));
        }
    }

    /// Per object: added, any number of updates, deleted; `old` is always what was told last; what
    /// was there at the beginning comes flagged, before the marker, and only then.
    fn follow(&mut self, event: &Event<Pod>) -> Result<(), &'static str> {
        match event {
            Event::Synced if self.synced => return Err("synced twice"),
            Event::Synced => self.synced = true,
            Event::Added {
                object,
                in_initial_list,
            } => {
                if *in_initial_list == self.synced {
                    return Err("flagged as initial behind the marker, or not before it");
                }
                let (name, revision) =
                    (object.object_name().clone(), object.revision().to_string());
                if self.state.insert(name, revision).is_some() {
                    return Err("added twice");
                }
            }
            Event::Updated { old, new, cause } => {
                let told = self
                    .state
                    .insert(new.object_name().clone(), new.revision().to_string());
                if told != Some(old.revision().to_string()) {
                    return Err("old is not what was told last");
                }
                let same = old.revision() == new.revision();
                if same && (!self.resyncs || *cause == Cause::Watch) {
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
