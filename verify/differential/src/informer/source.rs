//! Simulates an API server for the library's informer. The objects of the server change only through the
//! operations of a test sequence.
//!
//! The Go programs in `verify/differential/oracle` contain an equivalent server for client-go.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::stream::{self, poll_fn};
use kube_informer::transport::{ByteStream, Class, Error, ListOptions, ListerWatcher, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::sequence::{Operation, Thing};

/// Capacity of the channel for watch events, which is larger than any sequence needs.
const MANY: usize = 4096;

/// The simulated server; clones share one state.
#[derive(Clone)]
pub(super) struct Source {
    state: Arc<Mutex<State>>,
    /// Whether the server supports streaming lists.
    streams: bool,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    /// All watch events since the start of the sequence, each with its revision.
    history: Vec<(u64, Value)>,
    revision: u64,
    /// Revision of the last compaction; watches from earlier revisions are rejected as expired.
    compacted: u64,
    /// Number of upcoming list and watch requests that the server still rejects.
    refusals: u64,
    /// Whether the server currently withholds events from the watch.
    lags: bool,
    watcher: Option<mpsc::Sender<Bytes>>,
    /// Index in `history` of the next event to send to the current watch.
    told: usize,
}

impl Source {
    pub(super) fn new(streams: bool) -> Self {
        // A collection has a revision before it has objects.
        let state = State {
            revision: 1,
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            streams,
        }
    }

    /// Executes an operation on the server, and sends the resulting events to the watch.
    pub(super) fn carry_out(&self, operation: &Operation) {
        let mut state = self.state.lock();
        state.carry_out(operation);
        state.tell();
    }

    /// Makes the server reject the next `requests` list and watch requests, except lists with `limit=1`.
    pub(super) fn refuse(&self, requests: u64) {
        self.state.lock().refusals = requests;
    }

    /// Returns whether the server currently withholds at least one event from the watch.
    pub(super) fn is_behind(&self) -> bool {
        let state = self.state.lock();
        state.lags && state.told < state.history.len()
    }
}

impl State {
    fn carry_out(&mut self, operation: &Operation) {
        let thing = || operation.thing.as_ref().expect("it has an object");
        match operation.verb {
            "put" => self.put(thing()),
            "remove" => self.remove(&thing().key, number(&thing().revision)),
            "recreate" => {
                self.remove(&thing().key, number(&operation.text));
                self.put(thing());
            }
            "stray" => self.note(number(&thing().revision), "DELETED", &object(thing(), "")),
            "burst" | "join_amid" => {
                for one in &operation.batch {
                    self.carry_out(one);
                }
            }
            "bookmark" => {
                self.revision = number(&operation.text);
                if !self.lags {
                    let bookmark = event("BOOKMARK", &bookmark(self.revision));
                    self.send(bookmark);
                }
            }
            "lag" => self.lags = true,
            "catch_up" => self.lags = false,
            "close" => self.end(operation.number),
            "expire" => {
                self.compacted = self.revision;
                let status = json!({"kind": "Status", "code": 410, "reason": "Expired"});
                self.send(event("ERROR", &status));
                self.end(operation.number);
            }
            other => unreachable!("{other} is not drawn for an informer"),
        }
    }

    fn end(&mut self, refusals: u64) {
        self.refusals = refusals;
        self.lags = false;
        self.watcher = None;
    }

    fn put(&mut self, thing: &Thing) {
        let old = self.objects.get(&thing.key);
        let kind = if old.is_some() { "MODIFIED" } else { "ADDED" };
        let born = || format!("born at {}", thing.revision);
        let uid = old.and_then(|old| old["metadata"]["uid"].as_str());
        let new = object(thing, &uid.map_or_else(born, ToOwned::to_owned));
        self.note(number(&thing.revision), kind, &new);
        self.objects.insert(thing.key.clone(), new);
    }

    fn remove(&mut self, key: &str, revision: u64) {
        if let Some(mut last) = self.objects.remove(key) {
            last["metadata"]["resourceVersion"] = json!(revision.to_string());
            self.note(revision, "DELETED", &last);
        }
    }

    fn note(&mut self, revision: u64, kind: &str, object: &Value) {
        self.revision = revision;
        self.history
            .push((revision, json!({"type": kind, "object": object})));
    }

    /// Sends pending events to the open watch, unless the server withholds events.
    fn tell(&mut self) {
        if self.lags || self.watcher.is_none() {
            return;
        }
        for at in self.told..self.history.len() {
            let line = line(&self.history[at].1);
            self.send(line);
        }
        self.told = self.history.len();
    }

    fn send(&self, line: Bytes) {
        if let Some(watcher) = &self.watcher {
            // A closed watch receives nothing.
            let _ = watcher.try_send(line);
        }
    }

    fn refuses(&mut self) -> Result<(), Error> {
        if self.refusals == 0 {
            return Ok(());
        }
        self.refusals -= 1;
        Err(Error::new(Class::Server, "refused"))
    }

    fn list(&mut self, options: &ListOptions) -> Result<Response, Error> {
        // client-go sends no list with limit 1, so the library's lists with limit 1 are not rejected.
        if options.limit != Some(1) {
            self.refuses()?;
        }
        let items: Vec<_> = self.objects.values().collect();
        let list = json!({
            "metadata": {"resourceVersion": self.revision.to_string()},
            "items": items,
        });
        let body: ByteStream = Box::pin(stream::iter([Ok(line(&list))]));
        Ok(body.into())
    }

    fn watch(&mut self, options: &ListOptions) -> Result<Response, Error> {
        self.refuses()?;
        let (watcher, mut events) = mpsc::channel(MANY);
        if options.send_initial_events == Some(true) {
            self.watcher = Some(watcher);
            for object in self.objects.values() {
                self.send(event("ADDED", object));
            }
            let mut end = bookmark(self.revision);
            end["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            self.send(event("BOOKMARK", &end));
            self.told = self.history.len();
        } else {
            let revision = number(&options.resource_version.to_string());
            if revision < self.compacted {
                return Err(Error::new(Class::Expired, "expired"));
            }
            self.watcher = Some(watcher);
            self.told = self.history.partition_point(|(at, _)| *at <= revision);
        }
        self.tell();
        let body: ByteStream = Box::pin(poll_fn(move |context| {
            events.poll_recv(context).map(|line| line.map(Ok))
        }));
        Ok(body.into())
    }
}

impl ListerWatcher for Source {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let list = self.state.lock().list(options);
        Box::pin(std::future::ready(list))
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let watch = self.state.lock().watch(options);
        Box::pin(std::future::ready(watch))
    }

    fn streams_lists(&self) -> bool {
        self.streams
    }
}

fn number(revision: &str) -> u64 {
    revision.parse().expect("every revision is a number")
}

fn object(thing: &Thing, uid: &str) -> Value {
    let (namespace, name) = match thing.key.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, thing.key.as_str()),
    };
    json!({"metadata": {
        "namespace": namespace,
        "name": name,
        "uid": uid,
        "resourceVersion": thing.revision,
        "labels": thing.values,
    }})
}

fn bookmark(revision: u64) -> Value {
    json!({"metadata": {"resourceVersion": revision.to_string()}})
}

fn event(kind: &str, object: &Value) -> Bytes {
    line(&json!({"type": kind, "object": object}))
}

fn line(value: &Value) -> Bytes {
    Bytes::from(format!("{value}\n"))
}
