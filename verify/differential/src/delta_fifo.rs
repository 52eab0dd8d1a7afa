//! Compares the library's `DeltaFifo` with client-go's `cache.DeltaFIFO`, by running the same random
//! operations on both queues.
//!
//! If a test sequence has the option [`KNOWN`], both queues have a store of known objects, which client-go
//! calls `KnownObjects`. Otherwise, neither queue has such a store.

use harness::draw::Choose as _;
use kube_informer::{
    object::{Deleted, Known, ObjectName, SourceId},
    queue::{DeltaFifo, Popped, Replaced},
    reflector::{Delta, DeltaKind},
};

use crate::{
    cached::{self, K, Store},
    component::{Accepted, Component, Moment, nothing_more},
    draw::Draw,
    oracle::Version,
    planted::{Bug, Faulty, Fifo},
    sequence::{Answer, Operation, Sequence, Step},
};

/// The comparison of the library's `DeltaFifo` with client-go's `cache.DeltaFIFO`.
pub(crate) const COMPONENT: Component = Component {
    name: "delta_fifo",
    draw,
    versions,
    replay,
    counterpart: None,
    behaviours: BEHAVIOURS,
    recognise,
    must_not: nothing_more,
};

const KNOWN: &str = "known";
const EMIT_REPLACED: &str = "emit_replaced";
/// Option of a test sequence: some operations put popped deltas back into the queue. Only client-go 0.32
/// supports such operations.
const REQUEUE: &str = "requeue";
/// Option of a test sequence: `pop` operations call `pop_batch` instead of `pop_unit`.
const BATCHES: &str = "batches";

const DELETE_QUEUED: &str = "Delete of a queued key";
const DELETE_KNOWN: &str = "Delete of a key that only the store has";
const DELETE_NONE: &str = "Delete of a key that is neither queued nor known is ignored";
const DELETE_TWICE: &str = "Delete after a deletion: the older one stays";
const DELETE_AFTER_MISSED: &str = "Delete after a tombstone: the newer one stays";
const REPLACE_FIRST: &str = "Replace: the first list";
const REPLACE_FIRST_MISSES: &str = "Replace: the first list, and a known key is missing";
const REPLACE_LATE: &str = "Replace: a later list, or one after changes";
const REPLACE_EMPTY: &str = "Replace: an empty list";
const REPLACE_QUEUED: &str = "Replace: an item whose key is queued";
const REPLACE_KNOWN: &str = "Replace: an item that only the store has";
const REPLACE_NEW: &str = "Replace: an item that neither queue nor store has";
const REPLACE_TWICE: &str = "Replace: a name that is listed twice";
const REPLACE_MISSES_QUEUED: &str = "Replace: a queued key that is missing gets a tombstone";
const REPLACE_MISSES_DELETED: &str = "Replace: a queued deletion that is missing stays as it is";
const REPLACE_MISSES_TOMBSTONE: &str = "Replace: a queued tombstone that is missing is renewed";
const REPLACE_MISSES_KNOWN: &str = "Replace: a known key that is missing gets a tombstone";
const RESYNC_QUEUED: &str = "Resync skips a key with queued deltas";
const RESYNC_KNOWN: &str = "Resync of a key without queued deltas";
const RESYNC_NOTHING: &str = "Resync without a store does nothing";
const POP_NOTHING: &str = "Pop of an empty queue";
const POP_SEVERAL: &str = "Pop of several deltas of one key";
const POP_INITIAL: &str = "Pop of the initial list";
const POP_LATER: &str = "Pop after the initial list";
const POP_CLOSED: &str = "Pop of an empty queue that is closed";
const PUT_BACK: &str = "AddIfNotPresent of a unit without newer changes in the queue";
const PUT_BACK_OLDER: &str = "AddIfNotPresent of a unit with newer changes in the queue";
const SYNCED: &str = "HasSynced returns true";
const NOT_SYNCED: &str = "HasSynced returns false";

const BEHAVIOURS: &[&str] = &[
    "add",
    "update",
    "delete",
    "delete_missed",
    "replace",
    "resync",
    "know",
    "unknow",
    "pop",
    "pop_requeue",
    "put_back",
    "get",
    "list",
    "list_keys",
    "has_synced",
    "close",
    "delta Added",
    "delta Updated",
    "delta Deleted",
    "delta Deleted, a tombstone",
    "delta Replaced",
    "delta Sync",
    DELETE_QUEUED,
    DELETE_KNOWN,
    DELETE_NONE,
    DELETE_TWICE,
    DELETE_AFTER_MISSED,
    REPLACE_FIRST,
    REPLACE_FIRST_MISSES,
    REPLACE_LATE,
    REPLACE_EMPTY,
    REPLACE_QUEUED,
    REPLACE_KNOWN,
    REPLACE_NEW,
    REPLACE_TWICE,
    REPLACE_MISSES_QUEUED,
    REPLACE_MISSES_DELETED,
    REPLACE_MISSES_TOMBSTONE,
    REPLACE_MISSES_KNOWN,
    RESYNC_QUEUED,
    RESYNC_KNOWN,
    RESYNC_NOTHING,
    POP_NOTHING,
    POP_SEVERAL,
    POP_INITIAL,
    POP_LATER,
    POP_CLOSED,
    PUT_BACK,
    PUT_BACK_OLDER,
    SYNCED,
    NOT_SYNCED,
];

fn draw(draw: &mut Draw) -> Sequence {
    let flags = draw.subset(&[
        (70, KNOWN),
        (60, EMIT_REPLACED),
        (35, REQUEUE),
        (40, BATCHES),
    ]);
    let mut verbs = vec![
        (10, "add"),
        (10, "update"),
        (8, "delete"),
        (5, "delete_missed"),
        (6, "replace"),
        (5, "resync"),
        (3, "know"),
        (2, "unknow"),
        (24, "pop"),
        (4, "get"),
        (2, "list"),
        (2, "list_keys"),
        (6, "has_synced"),
        (1, "close"),
    ];
    if flags.contains(&REQUEUE) {
        verbs.extend([(6, "pop_requeue"), (6, "put_back")]);
    }
    // Informers start with a list, and some stores with previously known objects.
    let known = if draw.chance(40) {
        draw.number(1..=3)
    } else {
        0
    };
    let first = draw.chance(70).then_some("replace");
    let verbs = (0..known)
        .map(|_| "know")
        .chain(first)
        .map(|verb| vec![(1, verb)])
        .chain(std::iter::repeat(verbs));
    let length = draw.length();
    let operations = verbs
        .take(length)
        .map(|verbs| operation(draw, &verbs))
        .collect();
    Sequence {
        component: COMPONENT.name,
        flags,
        limiter: None,
        operations,
    }
}

fn operation(draw: &mut Draw, verbs: &[(u32, &'static str)]) -> Operation {
    let operation = Operation::new(draw.weighted(verbs));
    match operation.verb {
        "add" | "update" | "delete" | "delete_missed" | "know" => operation.about(draw.thing()),
        "get" | "unknow" => operation.text(draw.key()),
        "replace" => Operation {
            things: draw.things(),
            ..operation.text(draw.revision())
        },
        _ => operation,
    }
}

fn versions(sequence: &Sequence) -> &'static [Version] {
    if sequence.has(REQUEUE) {
        &[Version::V32]
    } else {
        &Version::ALL
    }
}

fn recognise(moment: &Moment<'_>) -> Option<Accepted> {
    let closed = moment.saw(POP_CLOSED)
        && moment
            .their()
            .is_some_and(|their| their.text() == Some("closed"));
    closed.then_some(Accepted::Here("a_queue_is_not_closed"))
}

fn replay(sequence: &Sequence, bug: Option<Bug>) -> Vec<Step> {
    let queue = DeltaFifo::new().emit_replaced(sequence.has(EMIT_REPLACED));
    match bug {
        None => Replay::over(queue, sequence),
        Some(bug) => Replay::over(Faulty::new(queue, bug), sequence),
    }
}

/// Runs one sequence of operations on a queue. `known` is the queue's store of known objects.
struct Replay<'a, Q> {
    queue: Q,
    sequence: &'a Sequence,
    known: Store,
    last: Option<Popped<K>>,
    /// Whether an earlier operation passed a delta or a list to the queue.
    populated: bool,
    closed: bool,
    seen: Vec<&'static str>,
}

impl<'a, Q: Fifo> Replay<'a, Q> {
    fn over(queue: Q, sequence: &'a Sequence) -> Vec<Step> {
        let mut replay = Self {
            queue,
            sequence,
            known: Store::default(),
            last: None,
            populated: false,
            closed: false,
            seen: Vec::new(),
        };
        let operations = sequence.operations.iter();
        let steps = operations.map(|operation| Step {
            answer: replay.step(operation),
            seen: std::mem::take(&mut replay.seen),
        });
        steps.collect()
    }

    fn step(&mut self, operation: &Operation) -> Answer {
        let one = || operation.thing.as_ref().expect("it has an object");
        match operation.verb {
            "add" => self.push(DeltaKind::Added(cached::object(one()))),
            "update" => self.push(DeltaKind::Updated(cached::object(one()))),
            "delete" => self.delete(cached::deleted(one())),
            "delete_missed" => self.delete(cached::missed(one())),
            "replace" => self.replace(operation),
            "resync" => self.resync(),
            "know" => {
                let object = cached::object(one());
                self.known.0.insert(object.object_name().clone(), object);
                Answer::ok()
            }
            "unknow" => {
                self.known.0.remove(&cached::name(&operation.text));
                Answer::ok()
            }
            "pop" => self.pop(false),
            "pop_requeue" => self.pop(true),
            "put_back" => self.put_back(),
            "close" => {
                self.closed = true;
                Answer::ok()
            }
            _ => self.read(operation),
        }
    }

    fn read(&mut self, operation: &Operation) -> Answer {
        let queue = self.queue.inner();
        match operation.verb {
            "get" => Answer::said(match queue.get(&cached::name(&operation.text)) {
                Some(deltas) => cached::show_unit(deltas, false),
                None => "nothing".to_owned(),
            }),
            "list" => Answer::Set(queue.list().map(cached::show_state).collect()),
            "list_keys" => Answer::Set(queue.keys().map(ToString::to_string).collect()),
            "has_synced" => {
                let synced = self.queue.synced();
                self.seen.push(if synced { SYNCED } else { NOT_SYNCED });
                Answer::is(synced)
            }
            other => unreachable!("{other} is not drawn for a delta FIFO"),
        }
    }

    /// Returns whether the queue has a store of known objects.
    fn keeps(&self) -> bool {
        self.sequence.has(KNOWN)
    }

    fn push(&mut self, kind: DeltaKind<K>) -> Answer {
        self.populated = true;
        let delta = Delta::new(SourceId::default(), kind);
        Answer::accepted(&if self.keeps() {
            self.queue.push(delta, &self.known)
        } else {
            self.queue.push(delta, &())
        })
    }

    fn delete(&mut self, deleted: Deleted<K>) -> Answer {
        let name = deleted.object_name();
        let newest = self.queue.inner().get(name).and_then(<[_]>::last);
        let known = self.keeps() && self.known.0.contains_key(name);
        self.seen.push(match newest.map(|newest| &newest.kind) {
            Some(DeltaKind::Deleted(Deleted::Known(_))) => DELETE_TWICE,
            Some(DeltaKind::Deleted(_)) => DELETE_AFTER_MISSED,
            Some(_) => DELETE_QUEUED,
            None if known => DELETE_KNOWN,
            None => DELETE_NONE,
        });
        self.push(DeltaKind::Deleted(deleted))
    }

    fn replace(&mut self, operation: &Operation) -> Answer {
        let objects: Vec<_> = operation.things.iter().map(cached::object).collect();
        let names: Vec<_> = objects
            .iter()
            .map(|object| object.object_name().clone())
            .collect();
        self.see_list(&names);
        let list = Replaced {
            source: SourceId::default(),
            objects,
            revision: operation.text.as_str().into(),
        };
        Answer::accepted(&if self.keeps() {
            self.queue.replace(list, &self.known)
        } else {
            self.queue.replace(list, &())
        })
    }

    /// Records the behaviors of a `replace` with the objects `names`, for the coverage report.
    ///
    /// Must be called before the `replace`.
    fn see_list(&mut self, names: &[ObjectName]) {
        let queue = self.queue.inner();
        let queued = |name: &ObjectName| queue.get(name).is_some();
        let keeps = self.keeps();
        let known = |name: &ObjectName| keeps && self.known.0.contains_key(name);
        let seen = &mut self.seen;
        let first = !std::mem::replace(&mut self.populated, true);
        seen.push(if first { REPLACE_FIRST } else { REPLACE_LATE });
        if names.is_empty() {
            seen.push(REPLACE_EMPTY);
        }
        for (at, name) in names.iter().enumerate() {
            seen.push(match (queued(name), known(name)) {
                _ if names[..at].contains(name) => REPLACE_TWICE,
                (true, _) => REPLACE_QUEUED,
                (false, true) => REPLACE_KNOWN,
                (false, false) => REPLACE_NEW,
            });
        }
        for key in queue.keys().filter(|key| !names.contains(key)) {
            let newest = queue.get(key).and_then(<[_]>::last);
            seen.push(match newest.map(|newest| &newest.kind) {
                Some(DeltaKind::Deleted(Deleted::Known(_))) => REPLACE_MISSES_DELETED,
                Some(DeltaKind::Deleted(_)) => REPLACE_MISSES_TOMBSTONE,
                _ => REPLACE_MISSES_QUEUED,
            });
        }
        let gone = |name: &&ObjectName| !names.contains(name) && !queued(name);
        if keeps && self.known.0.keys().any(|name| gone(&name)) {
            seen.push(REPLACE_MISSES_KNOWN);
            seen.extend(first.then_some(REPLACE_FIRST_MISSES));
        }
    }

    fn resync(&mut self) -> Answer {
        if !self.keeps() {
            self.seen.push(RESYNC_NOTHING);
            self.queue.resync(&());
            return Answer::ok();
        }
        let mut names = Vec::new();
        self.known
            .for_each(&mut |_, name, _| names.push(name.clone()));
        for name in names {
            let queued = self.queue.inner().get(&name).is_some();
            self.seen
                .push(if queued { RESYNC_QUEUED } else { RESYNC_KNOWN });
        }
        self.queue.resync(&self.known);
        Answer::ok()
    }

    /// Pops the deltas of one object and returns them as text.
    ///
    /// If `refuses` is true, puts the deltas back into the queue. This corresponds to `ErrRequeue` in
    /// client-go.
    fn pop(&mut self, refuses: bool) -> Answer {
        let Some(popped) = self.next() else {
            self.seen
                .push(if self.closed { POP_CLOSED } else { POP_NOTHING });
            return Answer::said("nothing");
        };
        let Popped {
            deltas,
            in_initial_list,
            ..
        } = &popped;
        self.seen.push(if *in_initial_list {
            POP_INITIAL
        } else {
            POP_LATER
        });
        if deltas.len() > 1 {
            self.seen.push(POP_SEVERAL);
        }
        self.seen.extend(deltas.iter().map(cached::delta_label));
        let shown = cached::show_unit(deltas, *in_initial_list);
        if refuses {
            self.queue.put_back(popped);
        } else {
            if self.keeps() {
                self.known.apply(deltas);
            }
            self.last = Some(popped);
        }
        Answer::said(shown)
    }

    fn next(&mut self) -> Option<Popped<K>> {
        if !self.sequence.has(BATCHES) {
            return self.queue.pop_unit();
        }
        loop {
            let batch = self.queue.pop_batch(usize::MAX)?;
            // An empty batch only reports the revision of the store.
            if let Some(first) = batch.deltas.first() {
                return Some(Popped {
                    name: first.object_name()?.clone(),
                    deltas: batch.deltas,
                    in_initial_list: batch.in_initial_list,
                });
            }
        }
    }

    fn put_back(&mut self) -> Answer {
        let Some(popped) = self.last.take() else {
            return Answer::said("nothing");
        };
        let back = self.queue.put_back(popped);
        self.seen.push(if back { PUT_BACK } else { PUT_BACK_OLDER });
        Answer::ok()
    }
}
