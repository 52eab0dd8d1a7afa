//! Counts the behaviors that simulated runs exercise, and reports required behaviors that occurred too
//! rarely.
//!
//! A behavior is, for example, an injected fault, a fault that affected a request, or an action of a user.

use std::collections::BTreeSet;

use harness::{
    coverage::{self, Counts},
    seeds::Origin,
};
use kube_informer::{InitialList, status::Activity};

use crate::{
    fault,
    life::{Act, Change, End, Queue, Scope, Setting, Step, Store},
};

/// Number of occurrences of each behavior, by name, such as `user: add index`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Counts<String>);

impl Seen {
    fn count(&mut self, table: &'static str, name: &str) {
        self.0.count(what(table, name));
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0.add_all(other.0);
    }

    pub(crate) fn setting(&mut self, setting: &Setting) {
        self.count("store", store(setting.store));
        self.count("bodies", bodies(setting));
        let encoding = if setting.protobuf { "protobuf" } else { "json" };
        self.count("encoding", encoding);
        self.count("scope", scope(setting.scope));
        self.count("queue", queue(setting.queue));
        self.count("initial list", initial_list(setting.initial_list));
        self.count("end", end(setting.end));
        let cache = setting.watch_cache.is_some();
        self.count("watch cache", if cache { "on" } else { "off" });
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Pass(_) => {}
            Step::Change(change) => self.count("change", name_of_change(change)),
            Step::Fault(fault) => self.count("fault", fault.name()),
            Step::User(act) => {
                self.count("user", name_of_act(act));
                if let Act::Join(handler) = act {
                    self.count("buffer", handler.policy());
                    for (is, name) in [
                        (handler.resync > 0, "resyncs"),
                        (handler.slow > 0, "is slow"),
                        (handler.panics > 0, "panics"),
                        (handler.filtered, "is filtered"),
                    ] {
                        if is {
                            self.count("handler", name);
                        }
                    }
                }
            }
        }
    }

    /// Counts the faults that affected a request, by name.
    ///
    /// The name omits each word that contains a digit, except a status code at the start. For example, the
    /// name of `cut after 20 bytes` is `cut after bytes`, and the name of `429 retry-after=2` is `429`.
    pub(crate) fn hits(&mut self, faults: &[String]) {
        for fault in faults {
            let is_status = |word: &str| word.parse::<u16>().is_ok_and(|status| status >= 400);
            let has_figure = |word: &str| word.contains(|c: char| c.is_ascii_digit());
            let words = fault.split_whitespace().enumerate();
            let words =
                words.filter(|(at, word)| (*at == 0 && is_status(word)) || !has_figure(word));
            let words: Vec<_> = words.map(|(_, word)| word).collect();
            self.count("hit by", &words.join(" "));
        }
    }

    pub(crate) fn edge(&mut self, from: &'static str, to: &'static str) {
        if from != to {
            self.count("activity", &format!("{from} → {to}"));
        }
    }

    pub(crate) fn checked(&mut self, what: &'static str) {
        self.count("checked", what);
    }

    /// Returns a line of text for each behavior, with its number of occurrences.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let counts = self.0.iter();
        counts.map(|(what, times)| format!("{times:>9} × {what}"))
    }

    /// Returns a sentence with the number of required behaviors, and the rarest one.
    pub(crate) fn summary(&self) -> String {
        let required = required();
        let times = required.iter().map(|what| (self.0.of(what), what));
        let (least, what) = times.min().expect("something is required");
        let count = required.len();
        format!("{count} things are required; the rarest is {what}, seen {least} times")
    }

    /// Returns a line for each required behavior that was too rare in `lives` simulated runs.
    pub(crate) fn missing(&self, origin: Origin, lives: usize) -> Vec<String> {
        self.0.rare(&required(), coverage::required(origin, lives))
    }
}

fn what(table: &str, name: &str) -> String {
    format!("{table}: {name}")
}

/// Returns the names of all required behaviors, such as `user: add index`.
fn required() -> BTreeSet<String> {
    let names: [(&str, &[&str]); 12] = [
        ("store", &["typed", "dynamic", "metadata"]),
        ("bodies", &["packed", "lazy", "decoded"]),
        ("encoding", &["json", "protobuf"]),
        ("scope", &["everywhere", "two namespaces", "labelled"]),
        ("queue", &["in order", "per object"]),
        ("initial list", &["list", "streaming"]),
        ("watch cache", &["on", "off"]),
        ("buffer", &["grow", "coalesce", "block"]),
        ("handler", &["resyncs", "is slow", "panics", "is filtered"]),
        (
            "change",
            &["write", "delete", "recreate", "burst", "delete namespace"],
        ),
        (
            "user",
            &[
                "join",
                "leave",
                "add index",
                "remove index",
                "stop and restart",
                "drop and restart",
                "write and read",
                "delete and read",
            ],
        ),
        (
            "checked",
            &[
                "cache compared at its revision",
                "final state",
                "old object sent again",
                "read of an own write",
                "resync received",
            ],
        ),
    ];
    let names = names.into_iter();
    let names = names.flat_map(|(table, names)| names.iter().map(move |name| what(table, name)));
    let faults = fault::KINDS.iter().map(|kind| what("fault", kind.name));
    let edges = EDGES.iter().map(|edge| what("activity", edge));
    let hits = HITS.iter().map(|hit| what("hit by", hit));
    names.chain(faults).chain(edges).chain(hits).collect()
}

/// Changes from one [`Activity`] to the next that must occur in the simulated runs.
const EDGES: [&str; 14] = [
    "idle → opening",
    "idle → listing",
    "opening → streaming",
    "opening → watching",
    "opening → listing",
    "opening → backing off",
    "streaming → backing off",
    "streaming → watching",
    "streaming → listing",
    "listing → opening",
    "listing → backing off",
    "backing off → listing",
    "backing off → opening",
    "watching → opening",
];

/// Faults that must affect requests in the simulated runs, named as in [`Seen::hits`].
const HITS: [&str; 28] = [
    "401",
    "410",
    "429",
    "429 plain",
    "500",
    "502",
    "503",
    "504",
    "504 too-large",
    "break",
    "break after bytes",
    "close",
    "cut",
    "cut after bytes",
    "delay answer",
    "delay each event",
    "drop bookmarks",
    "drop end-bookmark",
    "drop event",
    "duplicate event",
    "freeze",
    "garble event",
    "refuse streaming",
    "reset",
    "retype event",
    "spoil event",
    "split randomly",
    "swap event",
];

/// Returns the name of a reflector's activity in [`EDGES`], such as `listing` or `backing off`.
pub(crate) fn edge(activity: Activity) -> &'static str {
    match activity {
        Activity::Idle => "idle",
        Activity::Listing { .. } => "listing",
        Activity::Streaming { .. } => "streaming",
        Activity::Opening => "opening",
        Activity::Watching => "watching",
        Activity::BackingOff { .. } => "backing off",
        Activity::Stopped => "stopped",
        _ => "another",
    }
}

fn bodies(setting: &Setting) -> &'static str {
    match (setting.packed, setting.lazy) {
        (Some(_), _) => "packed",
        (None, true) => "lazy",
        (None, false) => "decoded",
    }
}

fn store(store: Store) -> &'static str {
    match store {
        Store::Typed => "typed",
        Store::Dynamic => "dynamic",
        Store::Metadata => "metadata",
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Everywhere => "everywhere",
        Scope::TwoNamespaces => "two namespaces",
        Scope::Labelled => "labelled",
    }
}

fn queue(queue: Queue) -> &'static str {
    match queue {
        Queue::InOrder(_) => "in order",
        Queue::DeltaFifo => "per object",
    }
}

fn initial_list(how: InitialList) -> &'static str {
    match how {
        InitialList::List => "list",
        InitialList::Pages => "pages",
        _ => "streaming",
    }
}

fn end(end: End) -> &'static str {
    match end {
        End::Heal => "healed",
        End::Stop => "stopped",
        End::Kill => "dropped",
    }
}

fn name_of_change(change: &Change) -> &'static str {
    match change {
        Change::Write(_) => "write",
        Change::Delete(_) => "delete",
        Change::Recreate(_) => "recreate",
        Change::Burst(_) => "burst",
        Change::DeleteNamespace(_) => "delete namespace",
    }
}

fn name_of_act(act: &Act) -> &'static str {
    match act {
        Act::Join(_) => "join",
        Act::Leave(_) => "leave",
        Act::AddIndex => "add index",
        Act::RemoveIndex => "remove index",
        Act::Restart { kill: false } => "stop and restart",
        Act::Restart { kill: true } => "drop and restart",
        Act::WriteAndRead(_) => "write and read",
        Act::DeleteAndRead(_) => "delete and read",
    }
}
