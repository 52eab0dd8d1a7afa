//! Runs sequences of operations on the library's `SharedInformer` and its handlers, in paused tokio time.
//!
//! For each operation, this module returns the library's answer, which contains the changes since the
//! previous answer. The module does not compare the answers with those of client-go.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube_informer::{
    Controller, SharedInformer,
    event_handler::Event,
    indexer::Indexers,
    object::Object,
    queue::{DeltaFifo, InOrder},
    reflector::TimeoutConfig,
    shared_informer::Builder,
};
use parking_lot::Mutex;
use tokio::{
    runtime,
    sync::{oneshot, watch},
    task::{JoinSet, yield_now},
    time::sleep,
};

use super::{
    CLOSED_BEHIND, DELTA_FIFO, HELD_UNSYNCED, IN_ORDER, INDEX_LATE, INDEX_TWICE, INDEX_UNKNOWN,
    JOIN_EARLY, JOIN_LATE, JOIN_STOPPED, LIST_REFUSED, RELIST_CHANGES, RELIST_SAME, REMOVED_HELD,
    REPEATED, RESYNC, STALE_VIEW, STREAMING, UNCHANGED_TOLD, WATCH_REFUSED,
    listener::{Handler, Listener, Told},
    source::Source,
};
use crate::{
    cached::{K, show},
    planted::{Bug, Restless},
    sequence::{Answer, Operation, Sequence, Step},
};

/// Virtual time that passes after each operation while the informer runs.
///
/// Resyncs occur at whole seconds. The start takes 2.5 s ([`START`]), so no later operation ends at the time
/// of a resync.
const OPERATION: Duration = Duration::from_secs(2);
const START: Duration = Duration::from_millis(2500);
/// Virtual time that passes after a fault, so that the library and client-go recover before the next
/// operation.
///
/// The library and client-go make at most four retries, with pauses of at most one minute.
const RECOVERY: Duration = Duration::from_secs(300);
/// Virtual time that is long enough for all ready tasks to run.
const SETTLING: Duration = Duration::from_millis(1);
/// Default resync period of the informer in a sequence with the option [`RESYNC`].
const DEFAULT_RESYNC: Duration = Duration::from_secs(20);
/// A duration longer than any sequence. Used as watch timeout, and as the resync period of sequences without
/// resyncs.
const NEVER: Duration = Duration::from_secs(10_000 * 3600);

/// Runs a sequence on a new informer, and returns one [`Step`] per operation.
pub(super) fn replay(sequence: &Sequence, bug: Option<Bug>) -> Vec<Step> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without an I/O driver can be built");
    runtime.block_on(async {
        let mut informer = Shared::new(sequence, bug);
        let mut steps = Vec::with_capacity(sequence.operations.len());
        for operation in &sequence.operations {
            steps.push(informer.step(operation).await);
        }
        steps
    })
}

struct Shared<'a> {
    sequence: &'a Sequence,
    bug: Option<Bug>,
    source: Source,
    informer: SharedInformer<K>,
    controller: Option<Controller<K>>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinSet<()>,
    listeners: Vec<Listener>,
    /// Last reported value of each property of the informer, such as `revision`.
    said: BTreeMap<String, String>,
    seen: Vec<&'static str>,
}

/// Sets the type of queue that the sequence selects. For the bug `UnchangedToldToAll`, wraps the queue in
/// [`Restless`].
fn with_queue(builder: Builder<K>, sequence: &Sequence, bug: Option<Bug>) -> Builder<K> {
    let restless = bug == Some(Bug::UnchangedToldToAll);
    match (sequence.has(DELTA_FIFO), restless) {
        (true, true) => builder.queue(Restless::new(DeltaFifo::new())),
        (true, false) => builder.queue(DeltaFifo::new()),
        (false, true) => builder.queue(Restless::new(InOrder::new())),
        (false, false) => builder.queue(InOrder::new()),
    }
}

impl<'a> Shared<'a> {
    fn new(sequence: &'a Sequence, bug: Option<Bug>) -> Self {
        let source = Source::new(sequence.has(STREAMING));
        let resync = if sequence.has(RESYNC) {
            DEFAULT_RESYNC
        } else {
            NEVER
        };
        // A watch may be silent, and stay open, during the whole sequence.
        let timeouts = TimeoutConfig {
            silence: NEVER,
            ..TimeoutConfig::default()
        };
        let builder = SharedInformer::builder(source.clone())
            .resync(resync)
            .watch_timeout_min(NEVER)
            .timeouts(timeouts);
        let (informer, controller) = with_queue(builder, sequence, bug).rng_seed(1).build();
        Self {
            sequence,
            bug,
            source,
            informer,
            controller: Some(controller),
            stop: None,
            running: JoinSet::new(),
            listeners: Vec::new(),
            said: BTreeMap::new(),
            seen: Vec::new(),
        }
    }

    async fn step(&mut self, operation: &Operation) -> Step {
        self.see(operation);
        let result = self.carry_out(operation).await;
        sleep(self.duration(operation)).await;
        let answer = Answer::said(self.say(operation, result));
        self.see_listeners();
        Step {
            answer,
            seen: std::mem::take(&mut self.seen),
        }
    }

    fn duration(&self, operation: &Operation) -> Duration {
        match operation.verb {
            "pass" => Duration::from_secs(operation.number),
            // The resync periods of a handler start now or when the informer starts, which is the same time.
            _ if self.controller.is_some() => SETTLING,
            "expire" => RECOVERY,
            "close" if operation.number > 0 => RECOVERY,
            "start" if operation.number > 0 => START + RECOVERY,
            "start" => START,
            _ => OPERATION,
        }
    }

    async fn carry_out(&mut self, operation: &Operation) -> String {
        let ok = |is: bool| if is { "ok" } else { "error" }.to_owned();
        match operation.verb {
            "start" => self.start(operation.number),
            "stop" => {
                for listener in &self.listeners {
                    listener.held.send_replace(false);
                }
                sleep(SETTLING).await;
                drop(self.stop.take());
            }
            "pass" => {}
            "add_handler" | "add_held" => return ok(self.add(operation, false)),
            "join_amid" => return ok(self.join_amid(operation).await),
            "remove_handler" => self.remove(&operation.text),
            "hold" | "release" => {
                let held = operation.verb == "hold";
                if let Some(listener) = self.find(&operation.text) {
                    listener.held.send_replace(held);
                }
            }
            "add_index" => {
                let label = operation.index;
                let indexers = Indexers::new().with(label, move |object: &K| {
                    let labels = object.metadata.labels.as_ref();
                    labels.and_then(|labels| labels.get(label)).cloned()
                });
                return ok(self.informer.add_indexers(indexers).await.is_ok());
            }
            "by_index" => {
                let snapshot = self.informer.indexer().snapshot();
                return match snapshot.by_index(operation.index, &operation.text) {
                    Ok(objects) => list(objects.into_iter().map(show)),
                    Err(_) => "error".to_owned(),
                };
            }
            _ => self.source.carry_out(operation),
        }
        "ok".to_owned()
    }

    fn start(&mut self, refusals: u64) {
        let Some(controller) = self.controller.take() else {
            return;
        };
        self.source.refuse(refusals);
        let (stop, stopped) = oneshot::channel::<()>();
        self.stop = Some(stop);
        let running = controller.run(async { drop(stopped.await) });
        self.running.spawn(async {
            running.await.expect("the informer does not fail");
        });
    }

    /// Registers a handler, and returns whether the informer accepted the handler.
    ///
    /// If `amid` is true, the watch delivers changes during the registration, so the number of events depends
    /// on timing. The answer to the operation then contains object states instead of events.
    fn add(&mut self, operation: &Operation, amid: bool) -> bool {
        let told = Arc::new(Mutex::new(Told {
            amid,
            ..Told::default()
        }));
        self.register(operation, told, false)
    }

    fn register(
        &mut self,
        operation: &Operation,
        told: Arc<Mutex<Told>>,
        skips_initial: bool,
    ) -> bool {
        let (held, until_released) = watch::channel(operation.verb == "add_held");
        let handler = self.informer.handler(Handler {
            told: Arc::clone(&told),
            held: until_released,
            skips_initial,
        });
        let handler = match operation.number {
            0 => handler,
            seconds => handler.resync(Duration::from_secs(seconds)),
        };
        let filtered = !operation.index.is_empty();
        let registered = if filtered {
            let wanted = operation.index;
            let passes = move |object: &Object<K>| object.labels().get("app") == Some(wanted);
            handler.filter(passes).register()
        } else {
            handler.register()
        };
        let Ok(registration) = registered else {
            return false;
        };
        self.listeners.push(Listener {
            name: operation.text.clone(),
            filtered,
            told,
            held,
            registration,
        });
        true
    }

    /// Registers a handler while the watch delivers changes, and returns whether it was accepted.
    async fn join_amid(&mut self, operation: &Operation) -> bool {
        self.source.carry_out(operation);
        for _ in 0..operation.number {
            yield_now().await;
        }
        let operation = Operation {
            number: 0,
            ..operation.clone()
        };
        if self.bug != Some(Bug::LateWithoutBarrier) {
            return self.add(&operation, true);
        }
        let mut told = Told {
            amid: true,
            ..Told::default()
        };
        for object in self.informer.indexer().snapshot().iter() {
            told.note(&Event::Added {
                object: object.clone(),
                in_initial_list: true,
            });
        }
        sleep(SETTLING).await;
        self.register(&operation, Arc::new(Mutex::new(told)), true)
    }

    fn remove(&mut self, name: &str) {
        let Some(at) = self
            .listeners
            .iter()
            .position(|listener| listener.name == name)
        else {
            return;
        };
        let listener = self.listeners.remove(at);
        self.seen.extend(listener.is_held().then_some(REMOVED_HELD));
        listener.held.send_replace(false);
        self.running.spawn(listener.registration.remove());
    }

    fn find(&self, name: &str) -> Option<&Listener> {
        self.listeners.iter().find(|listener| listener.name == name)
    }

    fn say(&mut self, operation: &Operation, result: String) -> String {
        let mut parts = Vec::new();
        parts.extend((result != "ok").then_some(result));
        let informer = &self.informer;
        let snapshot = informer.indexer().snapshot();
        let store = list(snapshot.iter().map(show));
        let revision = informer.last_sync_resource_version().to_string();
        let said = &mut self.said;
        parts.extend(fact(said, "synced", when(informer.has_synced())));
        parts.extend(fact(said, "stopped", when(informer.is_stopped())));
        parts.extend(fact(said, "revision", revision));
        parts.extend(fact(said, "store", store));
        let has = |flag| self.sequence.has(flag);
        let ordered = !has(DELTA_FIFO) && !has(RESYNC) && IN_ORDER.contains(&operation.verb);
        for listener in &self.listeners {
            let events = listener.take(ordered);
            let name = &listener.name;
            parts.extend((!events.is_empty()).then(|| format!("{name}: {events}")));
            let synced = match self.bug {
                Some(Bug::SyncedBeforeLastItem) => informer.has_synced(),
                _ => listener.registration.has_synced(),
            };
            parts.extend(fact(said, &format!("{name} synced"), when(synced)));
        }
        parts.join("; ")
    }

    /// Records the name of the case that `operation` exercises, for the coverage report.
    ///
    /// Must be called before the operation runs.
    fn see(&mut self, operation: &Operation) {
        let runs = self.stop.is_some();
        let seen = match operation.verb {
            "add_handler" | "add_held" if self.controller.is_some() => Some(JOIN_EARLY),
            "add_handler" | "add_held" if !runs => Some(JOIN_STOPPED),
            "add_handler" | "add_held" if !self.informer.indexer().is_empty() => Some(JOIN_LATE),
            "start" if operation.number > 0 => Some(LIST_REFUSED),
            "close" if runs && operation.number > 0 => Some(WATCH_REFUSED),
            "close" if runs && self.source.is_behind() => Some(CLOSED_BEHIND),
            "expire" if runs && self.source.is_behind() => Some(RELIST_CHANGES),
            "expire" if runs => Some(RELIST_SAME),
            "add_index" | "by_index" => {
                let names = self.informer.indexer().snapshot().index_names();
                let is_known = names.iter().any(|name| **name == *operation.index);
                match (operation.verb, is_known) {
                    ("add_index", true) => Some(INDEX_TWICE),
                    ("add_index", false) if runs => Some(INDEX_LATE),
                    ("by_index", false) => Some(INDEX_UNKNOWN),
                    _ => None,
                }
            }
            _ => None,
        };
        self.seen.extend(seen);
    }

    /// Records, for the coverage report, the cases that occurred in the events of all handlers.
    ///
    /// Also records an error for each handler whose events do not match the store.
    fn see_listeners(&mut self) {
        let snapshot = self.informer.indexer().snapshot();
        let store: BTreeMap<_, _> = snapshot
            .iter()
            .map(|object| (object.object_name().to_string(), show(object)))
            .collect();
        for listener in &self.listeners {
            let mut told = listener.told.lock();
            self.seen.append(&mut told.seen);
            let complete = !listener.is_held() && !listener.filtered && self.stop.is_some();
            if complete && listener.registration.has_synced() && told.view != store {
                self.seen.push(STALE_VIEW);
            }
            if self.informer.has_synced() && !listener.registration.has_synced() {
                self.seen.push(HELD_UNSYNCED);
            }
        }
        if self.seen.contains(&REPEATED) && !self.sequence.has(RESYNC) {
            self.seen.push(UNCHANGED_TOLD);
        }
    }
}

/// Records `value` in `said` as the value of the property `name`.
///
/// If the value has changed, returns the name and the value as text. Initially, each value is empty.
fn fact(said: &mut BTreeMap<String, String>, name: &str, value: String) -> Option<String> {
    let before = said.get(name).map_or("", String::as_str);
    if before == value {
        return None;
    }
    let text = format!("{name} {value}").trim_end().to_owned();
    said.insert(name.to_owned(), value);
    Some(text)
}

fn when(is: bool) -> String {
    if is { "now" } else { "" }.to_owned()
}

fn list(shown: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<_> = shown.collect();
    shown.sort_unstable();
    format!("[{}]", shown.join(" "))
}
