//! Compares the library's `InOrder` queue with client-go's `cache.RealFIFO`, by running the same random
//! operations on both queues.
//!
//! If a test sequence has the option [`ATOMIC`], `RealFIFO` stores a whole list or resync as one queue entry,
//! as in client-go's informers. Without this option, `RealFIFO` handles lists, resyncs and bookmarks
//! differently from `InOrder`. The sequence then contains none of them.

use harness::draw::Choose as _;
use kube_informer::{
    object::SourceId,
    queue::{BATCH, InOrder, Replaced},
    reflector::{Delta, DeltaKind, DeltaType},
};

use crate::{
    cached::{self, K},
    component::{Accepted, Component, Moment},
    draw::Draw,
    oracle::Version,
    planted::{Bug, Faulty, Ordered},
    sequence::{Answer, Operation, Sequence, Step, Thing},
};

/// The comparison of the library's `InOrder` queue with client-go's `cache.RealFIFO`.
pub(crate) const COMPONENT: Component = Component {
    name: "in_order",
    draw,
    // 0.32 has no such queue.
    versions: |_| &[Version::V37],
    replay,
    counterpart: None,
    behaviours: BEHAVIOURS,
    recognise,
    must_not: |step| step.seen.contains(&RESYNC_TWICE).then_some(RESYNC_TWICE),
};

/// Option of a test sequence: `RealFIFO` stores a whole list or resync as one entry, as in client-go's
/// informers.
const ATOMIC: &str = "atomic";

const RESYNC_WAITING: &str = "Resync while one is queued";
const RESYNC_TWICE: &str = "a second resync is queued while one is queued";
const RESYNC_AGAIN: &str = "Resync while none is queued";
const REPLACE_FIRST: &str = "Replace: the first list";
const REPLACE_AGAIN: &str = "Replace: a later list";
const REPLACE_EMPTY: &str = "Replace: an empty list";
const REPLACE_TWICE: &str = "Replace: a name that is listed twice";
const REPLACE_BEHIND: &str = "Replace: the first list, after bookmarks or a resync";
const POP_NOTHING: &str = "Pop of an empty queue";
const POP_CLOSED: &str = "Pop of an empty queue that is closed";
const POP_INITIAL: &str = "Pop of the initial list";
const POP_LATER: &str = "Pop after the initial list";
const BATCH_OF_SEVERAL: &str = "PopBatch of several changes";
const BATCH_ENDS_AT_NAME: &str = "PopBatch ends before a name that it contains";
const BATCH_ENDS_AT_WHOLE: &str = "PopBatch ends before a list, a resync or a bookmark";
const BATCH_FULL: &str = "PopBatch ends at 1,000 changes";
const SYNCED: &str = "HasSynced returns true";
const NOT_SYNCED: &str = "HasSynced returns false";

const BEHAVIOURS: &[&str] = &[
    "add",
    "update",
    "delete",
    "delete_missed",
    "burst",
    "replace",
    "resync",
    "bookmark",
    "pop",
    "pop_batch",
    "pop_all",
    "has_synced",
    "close",
    "delta Added",
    "delta Updated",
    "delta Deleted",
    "delta Deleted, a tombstone",
    "delta ReplacedAll",
    "delta SyncAll",
    "delta Bookmark",
    RESYNC_WAITING,
    RESYNC_AGAIN,
    REPLACE_FIRST,
    REPLACE_AGAIN,
    REPLACE_EMPTY,
    REPLACE_TWICE,
    REPLACE_BEHIND,
    POP_NOTHING,
    POP_CLOSED,
    POP_INITIAL,
    POP_LATER,
    BATCH_OF_SEVERAL,
    BATCH_ENDS_AT_NAME,
    BATCH_ENDS_AT_WHOLE,
    BATCH_FULL,
    SYNCED,
    NOT_SYNCED,
];

fn draw(draw: &mut Draw) -> Sequence {
    let flags = draw.subset(&[(85, ATOMIC)]);
    let mut verbs = vec![
        (12, "add"),
        (12, "update"),
        (8, "delete"),
        (4, "delete_missed"),
        (10, "pop"),
        (14, "pop_batch"),
        (5, "has_synced"),
        (1, "close"),
    ];
    let mut begin = Vec::new();
    if flags.contains(&ATOMIC) {
        verbs.extend([(5, "replace"), (4, "resync"), (5, "bookmark")]);
        // Bookmarks and resyncs may precede the first list, because they do not count as changes.
        begin.extend(std::iter::repeat_n(
            "bookmark",
            usize::from(draw.chance(15)),
        ));
        begin.extend(std::iter::repeat_n("resync", usize::from(draw.chance(15))));
        begin.extend(std::iter::repeat_n("replace", usize::from(draw.chance(75))));
    }
    let burst = draw.chance(12).then(|| draw.number(10..=30));
    // client-go queues a second resync while one is queued, and the library does not. The states differ
    // afterwards, so most sequences avoid a second resync.
    let repeats = draw.chance(10);
    let length = draw.length();
    let mut operations: Vec<Operation> = Vec::new();
    let mut resync_waits = false;
    while operations.len() < length {
        let at = operations.len();
        let verb = match begin.get(at) {
            Some(verb) => verb,
            None if burst.is_some_and(|burst| burst == at as u64) => "burst",
            None => draw.weighted(&verbs),
        };
        if verb == "resync" && resync_waits && !repeats {
            operations.push(Operation::new("pop_all"));
        }
        resync_waits |= verb == "resync";
        operations.push(operation(draw, verb));
    }
    Sequence {
        component: COMPONENT.name,
        flags,
        limiter: None,
        operations,
    }
}

fn operation(draw: &mut Draw, verb: &'static str) -> Operation {
    let operation = Operation::new(verb);
    match verb {
        "add" | "update" | "delete" | "delete_missed" => operation.about(draw.thing()),
        "bookmark" => operation.text(draw.revision()),
        "burst" => operation
            .number(draw.number(BATCH as u64 - 5..=BATCH as u64 + 20))
            .text(draw.revision()),
        "replace" => Operation {
            things: draw.things(),
            ..operation.text(draw.revision())
        },
        _ => operation,
    }
}

fn recognise(moment: &Moment<'_>) -> Option<Accepted> {
    let their = moment.their()?.text()?;
    if moment.saw(POP_CLOSED) && their == "closed" {
        return Some(Accepted::Here("an_ordered_queue_is_not_closed"));
    }
    // client-go pops the resync that the library has not queued, either alone or at the end of a batch.
    let before = &moment.ours[..moment.at];
    let repeated = before
        .iter()
        .any(|step| step.seen.contains(&RESYNC_WAITING));
    let popped = ["[SyncAll]", "[SyncAll] initial"].contains(&their);
    let batch = their
        .strip_suffix(']')
        .filter(|_| moment.verb() == "pop_batch");
    let ended = batch.is_some_and(|batch| {
        let our = moment.our().text().unwrap_or_default();
        our.strip_prefix(batch)
            .is_some_and(|rest| rest.starts_with(", "))
    });
    (repeated && (popped || ended)).then_some(Accepted::FromHere("one_resync_waits"))
}

fn replay(sequence: &Sequence, bug: Option<Bug>) -> Vec<Step> {
    match bug {
        None => Replay::over(InOrder::new(), sequence),
        Some(bug) => Replay::over(Faulty::new(InOrder::new(), bug), sequence),
    }
}

struct Replay<Q> {
    queue: Q,
    /// Type and object name of each queued delta, oldest first; lists, resyncs and bookmarks have no name.
    waiting: std::collections::VecDeque<(DeltaType, String)>,
    listed: bool,
    closed: bool,
    seen: Vec<&'static str>,
}

impl<Q: Ordered> Replay<Q> {
    fn over(queue: Q, sequence: &Sequence) -> Vec<Step> {
        let mut replay = Self {
            queue,
            waiting: std::collections::VecDeque::new(),
            listed: false,
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
            "delete" => self.push(DeltaKind::Deleted(cached::deleted(one()))),
            "delete_missed" => self.push(DeltaKind::Deleted(cached::missed(one()))),
            "bookmark" => self.push(DeltaKind::Bookmark {
                revision: operation.text.as_str().into(),
            }),
            "burst" => {
                for number in 0..operation.number {
                    let thing = Thing {
                        key: format!("many{number}"),
                        revision: operation.text.clone(),
                        ..Thing::default()
                    };
                    self.push(DeltaKind::Added(cached::object(&thing)));
                }
                Answer::ok()
            }
            "replace" => self.replace(operation),
            "resync" => self.resync(),
            "pop" => self.pop(1),
            "pop_batch" => self.pop(usize::MAX),
            "pop_all" => self.pop_all(),
            "has_synced" => {
                let synced = self.queue.synced();
                self.seen.push(if synced { SYNCED } else { NOT_SYNCED });
                Answer::is(synced)
            }
            "close" => {
                self.closed = true;
                Answer::ok()
            }
            other => unreachable!("{other} is not drawn for a queue in order"),
        }
    }

    fn push(&mut self, kind: DeltaKind<K>) -> Answer {
        let delta = Delta::new(SourceId::default(), kind);
        let name = delta.object_name().map(ToString::to_string);
        self.waiting
            .push_back((delta.delta_type(), name.unwrap_or_default()));
        self.listed |= delta.delta_type() != DeltaType::Bookmark;
        Answer::accepted(&self.queue.push(delta, &()))
    }

    fn replace(&mut self, operation: &Operation) -> Answer {
        let things = &operation.things;
        if things.is_empty() {
            self.seen.push(REPLACE_EMPTY);
        }
        let twice =
            |(at, thing): (usize, &Thing)| things[..at].iter().any(|other| other.key == thing.key);
        if things.iter().enumerate().any(twice) {
            self.seen.push(REPLACE_TWICE);
        }
        let first = !std::mem::replace(&mut self.listed, true);
        self.seen
            .push(if first { REPLACE_FIRST } else { REPLACE_AGAIN });
        if first && !self.waiting.is_empty() {
            self.seen.push(REPLACE_BEHIND);
        }
        let list = Replaced {
            source: SourceId::default(),
            objects: things.iter().map(cached::object).collect(),
            revision: operation.text.as_str().into(),
        };
        self.waiting
            .push_back((DeltaType::ReplacedAll, String::new()));
        Answer::accepted(&self.queue.replace(list, &()))
    }

    fn resync(&mut self) -> Answer {
        let waits = self
            .waiting
            .iter()
            .any(|(kind, _)| *kind == DeltaType::SyncAll);
        self.seen
            .push(if waits { RESYNC_WAITING } else { RESYNC_AGAIN });
        if !waits {
            self.waiting.push_back((DeltaType::SyncAll, String::new()));
        }
        let before = self.queue.len();
        self.queue.resync(&());
        let twice = waits && self.queue.len() > before;
        self.seen.extend(twice.then_some(RESYNC_TWICE));
        Answer::ok()
    }

    fn pop_all(&mut self) -> Answer {
        let mut units = Vec::new();
        while !self.queue.is_empty() {
            units.push(self.pop(usize::MAX).to_string());
        }
        Answer::said(units.join("; "))
    }

    fn pop(&mut self, room: usize) -> Answer {
        let Some(batch) = self.queue.pop_batch(room) else {
            self.seen
                .push(if self.closed { POP_CLOSED } else { POP_NOTHING });
            return Answer::said("nothing");
        };
        self.seen.push(if batch.in_initial_list {
            POP_INITIAL
        } else {
            POP_LATER
        });
        self.seen
            .extend(batch.deltas.iter().map(cached::delta_label));
        self.waiting
            .drain(..batch.deltas.len().min(self.waiting.len()));
        if batch.deltas.len() > 1 {
            self.seen.push(BATCH_OF_SEVERAL);
        }
        if room > 1 {
            let has = |name: &str| {
                batch
                    .deltas
                    .iter()
                    .any(|delta| delta.object_name().is_some_and(|own| own.as_str() == name))
            };
            self.seen.extend(match self.waiting.front() {
                Some(_) if batch.deltas.len() == BATCH => Some(BATCH_FULL),
                Some((_, name)) if name.is_empty() => Some(BATCH_ENDS_AT_WHOLE),
                Some((_, name)) if has(name) => Some(BATCH_ENDS_AT_NAME),
                _ => None,
            });
        }
        Answer::said(cached::show_unit(&batch.deltas, batch.in_initial_list))
    }
}
