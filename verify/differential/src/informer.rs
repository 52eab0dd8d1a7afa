//! Compares the library's `SharedInformer` with client-go's shared informers.
//!
//! Each of the two informers lists and watches a simulated server of its own. The operations of a test
//! sequence change both servers in the same way.
//!
//! In a sequence with the option [`DELTA_FIFO`], the library's informer uses a `DeltaFifo`. The informer is
//! compared with client-go 0.32. In all other sequences, the informer uses an `InOrder` queue. The informer
//! is compared with client-go 0.37, whose informers use `RealFIFO`.
//!
//! After each operation, the answers of the two informers are compared. An answer contains the new events of
//! each handler, and the changed properties of the informer. Examples of properties are `has_synced`, the
//! revision, and the objects of the store.
//!
//! Retry delays are not compared. The order of events of different objects is compared only after the
//! operations in [`IN_ORDER`].

mod listener;
mod shared;
mod source;

use std::collections::BTreeMap;

use harness::draw::Choose as _;

use crate::{
    component::{Accepted, Component, Moment},
    draw::Draw,
    oracle::Version,
    sequence::{Answer, Operation, Sequence, Step, Thing},
};

/// The comparison of `SharedInformer` with client-go's shared informers.
pub(crate) const COMPONENT: Component = Component {
    name: "informer",
    draw,
    versions: |sequence| {
        if sequence.has(DELTA_FIFO) {
            &[Version::V32]
        } else {
            &[Version::V37]
        }
    },
    replay: shared::replay,
    counterpart: None,
    behaviours: BEHAVIOURS,
    recognise,
    must_not,
};

/// Option of a test sequence: use `DeltaFifo`, and compare with client-go 0.32.
const DELTA_FIFO: &str = "delta_fifo";
/// Option of a test sequence: the simulated server supports streaming lists.
const STREAMING: &str = "streaming";
/// Option of a test sequence: the informer and some handlers resync periodically.
const RESYNC: &str = "resync";

/// Operations after which the order of events of different objects is compared.
///
/// After any other operation, client-go may deliver the events in the random order of a Go map. In sequences
/// with the option [`DELTA_FIFO`] or [`RESYNC`], the order is never compared.
const IN_ORDER: [&str; 6] = ["put", "remove", "recreate", "stray", "burst", "catch_up"];

/// Verbs of the operations that make a handler block in its next callback.
const HOLDS: [&str; 2] = ["hold", "add_held"];

const ADD_INITIAL: &str = "OnAdd, in the initial list";
const ADD_LATER: &str = "OnAdd, not in the initial list";
const UPDATE: &str = "OnUpdate of the same object";
const RECREATED: &str = "OnUpdate to another object of the same name";
const REPEATED: &str = "OnUpdate without a change";
const DELETE: &str = "OnDelete with the last state";
const TOMBSTONE: &str = "OnDelete with a tombstone";
const FILTER_BEGINS: &str = "OnAdd of an object that starts to match a filter";
const FILTER_CEASES: &str = "OnDelete of an object that stops matching a filter";
const JOIN_EARLY: &str = "a handler is added before the start";
const JOIN_LATE: &str = "a handler is added to a full cache";
const JOIN_STOPPED: &str = "a handler is added after the end";
const REMOVED_HELD: &str = "a handler is removed in its callback";
const HELD_UNSYNCED: &str = "a registration has not synced although the informer has";
const INDEX_LATE: &str = "AddIndexers while the informer runs";
const INDEX_TWICE: &str = "AddIndexers with an existing name";
const INDEX_UNKNOWN: &str = "ByIndex with a missing name";
const LIST_REFUSED: &str = "the first list is rejected";
const WATCH_REFUSED: &str = "a watch, and a list after it, are rejected";
const CLOSED_BEHIND: &str = "a watch ends without an error before it has delivered all events";
const RELIST_SAME: &str = "a relist without changes";
const RELIST_CHANGES: &str = "a relist with changes that the watch has not delivered";

const TOLD_TWICE: &str = "a handler receives Added for an object that it already has";
const OTHER_OLD: &str = "the old state of an update is not the last delivered one";
const UNKNOWN_DELETED: &str = "a handler receives the deletion of an object that it does not have";
const STALE_VIEW: &str = "the events of a handler do not lead to the state of the cache";
const UNCHANGED_TOLD: &str = "a handler without resyncs receives an unchanged object";

const PROMISED_NOT: [&str; 5] = [
    TOLD_TWICE,
    OTHER_OLD,
    UNKNOWN_DELETED,
    STALE_VIEW,
    UNCHANGED_TOLD,
];

const BEHAVIOURS: &[&str] = &[
    "put",
    "remove",
    "recreate",
    "burst",
    "stray",
    "lag",
    "catch_up",
    "bookmark",
    "close",
    "expire",
    "start",
    "stop",
    "pass",
    "add_handler",
    "add_held",
    "join_amid",
    "remove_handler",
    "hold",
    "release",
    "add_index",
    "by_index",
    ADD_INITIAL,
    ADD_LATER,
    UPDATE,
    RECREATED,
    REPEATED,
    DELETE,
    TOMBSTONE,
    FILTER_BEGINS,
    FILTER_CEASES,
    JOIN_EARLY,
    JOIN_LATE,
    JOIN_STOPPED,
    REMOVED_HELD,
    HELD_UNSYNCED,
    INDEX_LATE,
    INDEX_TWICE,
    INDEX_UNKNOWN,
    LIST_REFUSED,
    WATCH_REFUSED,
    CLOSED_BEHIND,
    RELIST_SAME,
    RELIST_CHANGES,
];

const BEFORE: &[(u32, &str)] = &[
    (6, "put"),
    (2, "remove"),
    (4, "add_handler"),
    (1, "add_held"),
    (1, "add_index"),
    (1, "hold"),
    (1, "remove_handler"),
    (1, "bookmark"),
    (1, "pass"),
];

const RUNNING: &[(u32, &str)] = &[
    (20, "put"),
    (8, "remove"),
    (4, "recreate"),
    (6, "burst"),
    (2, "stray"),
    (5, "lag"),
    (3, "catch_up"),
    (4, "bookmark"),
    (5, "close"),
    (6, "expire"),
    (5, "add_handler"),
    (2, "add_held"),
    (3, "join_amid"),
    (2, "remove_handler"),
    (3, "hold"),
    (5, "release"),
    (2, "add_index"),
    (4, "by_index"),
    (3, "pass"),
];

const ENDED: &[(u32, &str)] = &[
    (3, "put"),
    (2, "add_handler"),
    (1, "add_index"),
    (1, "by_index"),
    (1, "release"),
    (1, "pass"),
];

fn draw(draw: &mut Draw) -> Sequence {
    // The first revision is that of the empty collection.
    draw.revision();
    let flags = draw.subset(&[(45, DELTA_FIFO), (40, STREAMING), (35, RESYNC)]);
    // The times of resyncs are undefined after a failed or repeated list, or while a handler blocks. Most
    // sequences with resyncs avoid these operations.
    let resync = flags.contains(&RESYNC);
    let mut drawing = Drawing {
        resync,
        faults: !resync || draw.chance(30),
        holds: !resync || draw.chance(30),
        draw,
        handlers: 0,
    };
    let length = drawing.draw.length();
    let start = usize::try_from(drawing.draw.number(1..=8)).expect("it is at most 8");
    let ends = drawing.draw.chance(40);
    let stop = if ends { length * 9 / 10 } else { length };
    let operations = (0..length).map(|at| match at {
        _ if at == start => drawing.operation(&[(1, "start")]),
        _ if at == stop => drawing.operation(&[(1, "stop")]),
        _ if at < start => drawing.operation(BEFORE),
        _ if at > stop => drawing.operation(ENDED),
        _ => drawing.operation(RUNNING),
    });
    Sequence {
        component: COMPONENT.name,
        operations: operations.collect(),
        flags,
        limiter: None,
    }
}

struct Drawing<'a> {
    draw: &'a mut Draw,
    resync: bool,
    faults: bool,
    holds: bool,
    handlers: u64,
}

impl Drawing<'_> {
    fn operation(&mut self, verbs: &[(u32, &'static str)]) -> Operation {
        let mut verb = self.draw.weighted(verbs);
        if verb == "expire" && !self.faults || HOLDS.contains(&verb) && !self.holds {
            verb = "pass";
        }
        let operation = Operation::new(verb);
        match verb {
            "put" | "stray" => operation.about(self.thing(verb)),
            "remove" => operation.about(self.draw.thing()),
            "recreate" => operation.text(self.draw.revision()).about(self.thing(verb)),
            "burst" => self.burst(operation),
            "bookmark" => operation.text(self.draw.revision()),
            "start" | "close" | "expire" if self.faults && self.draw.chance(35) => {
                operation.number(self.draw.number(1..=3))
            }
            "pass" => operation.number(self.draw.number(1..=90)),
            "add_handler" | "add_held" | "join_amid" => self.handler(operation),
            "remove_handler" | "hold" | "release" => {
                let name = self.draw.number(1..=self.handlers.max(1));
                operation.text(format!("h{name}"))
            }
            "add_index" => Operation {
                index: self.draw.weighted(&[(1, "app"), (1, "tier")]),
                ..operation
            },
            "by_index" => Operation {
                index: self.draw.weighted(&[(2, "app"), (1, "tier")]),
                ..operation.text(*self.draw.one(&["x", "y"]))
            },
            _ => operation,
        }
    }

    fn thing(&mut self, verb: &str) -> Thing {
        let mut values = BTreeMap::new();
        for label in ["app", "tier"] {
            if self.draw.chance(70) {
                values.insert(label, (*self.draw.one(&["x", "y"])).to_owned());
            }
        }
        let mut thing = Thing {
            values,
            ..self.draw.thing()
        };
        if verb == "stray" {
            "z".clone_into(&mut thing.key);
        }
        thing
    }

    fn burst(&mut self, operation: Operation) -> Operation {
        let changes = self.draw.number(2..=6);
        let batch = (0..changes).map(|_| {
            let verb = self.draw.weighted(&[(3, "put"), (1, "remove")]);
            Operation::new(verb).about(self.thing(verb))
        });
        Operation {
            batch: batch.collect(),
            ..operation
        }
    }

    fn handler(&mut self, operation: Operation) -> Operation {
        self.handlers += 1;
        let operation = operation.text(format!("h{}", self.handlers));
        if operation.verb == "join_amid" {
            // Number of times that the other tasks run before the handler is registered.
            let turns = self.draw.number(0..=12);
            return self.burst(operation).number(turns);
        }
        let resync = self.resync && self.draw.chance(60);
        let period = *self.draw.one(&[5, 8, 20, 60]);
        Operation {
            index: if self.draw.chance(25) { "x" } else { "" },
            ..operation.number(if resync { period } else { 0 })
        }
    }
}

/// Returns the parts of an answer's text, without the events for which `differs` returns `true`.
///
/// The parts are separated by `; `. A part `handler: event, event` contains the events of one handler. This
/// part is omitted if no event remains.
///
/// The arguments of `differs` are a handler's name and an event.
fn without(answer: &Answer, differs: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let parts = answer.text().unwrap_or_default().split("; ");
    let left = parts.filter_map(|part| {
        let Some((handler, events)) = part.split_once(": ") else {
            return Some(part.to_owned());
        };
        let left: Vec<_> = events
            .split(", ")
            .filter(|event| !differs(handler, event))
            .collect();
        (!left.is_empty()).then(|| format!("{handler}: {}", left.join(", ")))
    });
    left.filter(|part| !part.is_empty()).collect()
}

/// Returns whether an event is an update without a change, such as `~a@1 a@1`.
///
/// In this example, the old and the new state of the object `a` both have revision 1.
fn is_repeated(event: &str) -> bool {
    let mut words = event.split(' ');
    let old = words.next().and_then(|word| word.strip_prefix('~'));
    old.is_some() && old == words.next()
}

fn recognise(moment: &Moment<'_>) -> Option<Accepted> {
    let (ours, theirs) = (moment.our(), moment.their()?);
    let so_far = &moment.sequence.operations[..=moment.at];
    let strays: Vec<_> = so_far
        .iter()
        .filter(|operation| operation.verb == "stray")
        .flat_map(|operation| &operation.thing)
        .map(|thing| format!("-{}@{}", thing.key, thing.revision))
        .collect();
    let is_stray = |event: &str| strays.iter().any(|stray| stray == event);
    // Whether the answers are equal except for strays and repeated events of these handlers.
    let agrees = |of: &dyn Fn(&str) -> bool| {
        let again = |handler: &str, event: &str| of(handler) && is_repeated(event);
        without(ours, again)
            == without(theirs, |handler, event| {
                is_stray(event) || again(handler, event)
            })
    };
    if agrees(&|_| false) {
        return Some(Accepted::Here("a_deletion_of_what_was_never_there"));
    }
    if !agrees(&|_| true) {
        return None;
    }
    let any = |wanted: &dyn Fn(&Operation) -> bool| so_far.iter().any(wanted);
    let failed = |operation: &Operation| operation.number > 0;
    let listed_again = any(&|it| it.verb == "expire" || (it.verb == "close" && failed(it)));
    if !moment.sequence.has(RESYNC) {
        let none_here = without(ours, |_, event| is_repeated(event)) == without(ours, |_, _| false);
        let is_known = listed_again && none_here;
        return is_known.then_some(Accepted::Here("a_list_tells_what_has_changed"));
    }
    let held = |handler: &str| any(&|it| HOLDS.contains(&it.verb) && it.text == handler);
    let passed = so_far
        .iter()
        .take_while(|it| it.verb != "start")
        .any(|it| it.verb == "pass");
    let name = if agrees(&held) {
        "one_resync_waits_for_a_handler"
    } else if listed_again || any(&|it| it.verb == "start" && failed(it)) {
        "resyncs_come_from_the_controllers_timer"
    } else if passed {
        "periods_count_from_the_start"
    } else {
        return None;
    };
    Some(Accepted::Here(name))
}

/// Returns the first forbidden behavior in [`PROMISED_NOT`] that occurred in this step, if any.
fn must_not(step: &Step) -> Option<&'static str> {
    PROMISED_NOT
        .into_iter()
        .find(|broken| step.seen.contains(broken))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stray(key: &str, revision: &str) -> Operation {
        let thing = Thing {
            key: key.to_owned(),
            revision: revision.to_owned(),
            ..Thing::default()
        };
        Operation::new("stray").about(thing)
    }

    /// Returns the intentional difference between the library's answer `ours` and client-go's answer
    /// `theirs`.
    ///
    /// Both are answers to the last operation.
    fn recognised(
        flags: &[&'static str],
        operations: Vec<Operation>,
        ours: &str,
        theirs: &str,
    ) -> Option<Accepted> {
        let at = operations.len() - 1;
        let sequence = Sequence {
            component: COMPONENT.name,
            flags: flags.to_vec(),
            limiter: None,
            operations,
        };
        let step = |answer: &str| Step {
            answer: Answer::said(answer),
            seen: Vec::new(),
        };
        let mut steps: Vec<_> = (0..at).map(|_| step("")).collect();
        steps.push(step(ours));
        let mut answers: Vec<_> = (0..at).map(|_| None).collect();
        answers.push(Some(Answer::said(theirs)));
        recognise(&Moment {
            sequence: &sequence,
            at,
            ours: &steps,
            theirs: &answers,
        })
    }

    #[test]
    fn only_the_deletion_of_a_stray_event_is_an_intentional_difference() {
        let of = |theirs| recognised(&[], vec![stray("z", "4")], "revision 4", theirs);
        let name = "a_deletion_of_what_was_never_there";
        assert_eq!(
            of("revision 4; h1: -z@4; h2: -z@4"),
            Some(Accepted::Here(name))
        );
        assert_eq!(of("revision 4; h1: -z@3"), None);
        assert_eq!(of("revision 5; h1: -z@4"), None);
    }

    #[test]
    fn only_an_unchanged_object_after_a_list_is_an_intentional_difference() {
        let of = |verb, ours, theirs| recognised(&[], vec![Operation::new(verb)], ours, theirs);
        let name = "a_list_tells_what_has_changed";
        let same = "h1: ~a@1 a@1";
        assert_eq!(of("expire", "", same), Some(Accepted::Here(name)));
        assert_eq!(of("put", "", same), None, "no list was sent");
        assert_eq!(of("expire", same, ""), None, "the library never repeats it");
        assert_eq!(of("expire", "", "h1: ~a@1 a@12"), None, "it has changed");
        assert_eq!(of("expire", "", "h1: +a@1"), None);
    }

    #[test]
    fn resyncs_may_differ_only_after_something_has_delayed_them() {
        let of = |verb| {
            let operations = vec![
                Operation::new(verb).text("h1"),
                Operation::new("start"),
                Operation::new("put"),
            ];
            recognised(&[RESYNC], operations, "h1: ~a@1 a@1 ×3", "h1: ~a@1 a@1 ×2")
        };
        let here = |name| Some(Accepted::Here(name));
        assert_eq!(
            of("expire"),
            here("resyncs_come_from_the_controllers_timer")
        );
        assert_eq!(of("hold"), here("one_resync_waits_for_a_handler"));
        assert_eq!(of("release"), None);
        assert_eq!(of("pass"), here("periods_count_from_the_start"));
        assert_eq!(of("put"), None);
    }
}
