//! Compares the list and watch requests of the library's reflector with those of client-go's reflector.
//!
//! Each reflector uses its own embedded server. Both servers receive the same changes and faults, so their
//! revisions are equal.
//!
//! A test sequence consists of operations, which change objects or inject faults. The answer to an operation
//! contains all requests that the reflector sent after the operation, and the content of the store. For each
//! request, the answer contains the response and the pause before the request. Only the minimum length of a
//! pause is compared, because both reflectors add a random time to each pause.

mod alignment;
mod conversation;
mod host;
mod line;
mod reflector;
mod trigger;
use harness::draw::Choose as _;

use crate::{
    component::{Accepted, Component, Moment, nothing_more},
    draw::Draw,
    oracle::Version,
    sequence::{Operation, Sequence},
};

use self::{alignment::Alignment, conversation::Conversation, line::SEEN};

/// The comparison of the library's reflector with client-go's reflector.
pub(crate) const COMPONENT: Component = Component {
    name: "requests",
    draw,
    versions: |sequence| {
        if sequence.has(OLD) {
            &[Version::V32]
        } else {
            &[Version::V37]
        }
    },
    replay: reflector::replay,
    counterpart: Some(|sequence| Box::new(Conversation::new(sequence))),
    behaviours: BEHAVIOURS,
    recognise,
    must_not: nothing_more,
};

/// Option of a test sequence: both reflectors request lists as streaming lists.
const STREAMING: &str = "streaming";
/// Option of a test sequence: compare with client-go 0.32 instead of 0.37.
const OLD: &str = "old";
/// Option of a test sequence: both reflectors request lists in pages.
const PAGES: &str = "pages";

const VERBS: [&str; 20] = [
    "put",
    "remove",
    "elsewhere",
    "bookmark",
    "start",
    "close",
    "close_at_once",
    "break",
    "cut_amid",
    "gone",
    "internal",
    "unavailable",
    "throttled",
    "garbage",
    "restart",
    "compaction",
    "spoil",
    "end_early",
    "end_never",
    "unsupported",
];

/// Names that the coverage report of a run must contain.
///
/// They are the operation names in [`VERBS`] and the behavior names in [`SEEN`].
const BEHAVIOURS: &[&str] = &{
    let mut behaviours = [""; VERBS.len() + SEEN.len()];
    let mut at = 0;
    while at < behaviours.len() {
        behaviours[at] = if at < VERBS.len() {
            VERBS[at]
        } else {
            SEEN[at - VERBS.len()].2
        };
        at += 1;
    }
    behaviours
};

const CHANGES: &[(u32, &str)] = &[
    (14, "put"),
    (5, "remove"),
    (3, "elsewhere"),
    (5, "bookmark"),
];

const ENDS: &[(u32, &str)] = &[
    (6, "close"),
    (2, "close_at_once"),
    (2, "break"),
    (2, "cut_amid"),
    (10, "gone"),
    (2, "internal"),
    (2, "unavailable"),
    (2, "throttled"),
    (2, "garbage"),
    (2, "restart"),
    (3, "compaction"),
    (2, "spoil"),
];

const ENDS_OF_STREAMS: &[(u32, &str)] = &[(2, "end_early"), (1, "end_never"), (2, "unsupported")];

/// Failures that the server can inject: error statuses and a connection reset.
///
/// client-go's REST client itself retries a request after these failures, except after the first
/// [`UNREPEATED`] entries.
const REFUSALS: [&str; 9] = [
    "410",
    "429",
    "500",
    "503",
    "403",
    "504 too-large",
    "429 retry-after=20",
    "503 retry-after=20",
    "reset",
];

/// Number of entries at the start of [`REFUSALS`] that client-go's REST client does not retry.
const UNREPEATED: usize = 6;

/// Error statuses with which the server rejects watch requests, but not lists.
///
/// The server also rejects watch requests with the failures in [`REFUSALS`].
const WATCH_REFUSALS: [&str; 2] = ["401", "502"];

fn draw(draw: &mut Draw) -> Sequence {
    // A page of a list at a revision has exactly the state of that revision, and a streaming list may be
    // newer. The states would differ whenever one reflector lists and the other uses a streaming list.
    let mut flags = match draw.number(0..=3) {
        0 | 1 => vec![STREAMING],
        2 => vec![PAGES],
        _ => Vec::new(),
    };
    flags.extend(draw.chance(45).then_some(OLD));
    // An operation can lead to many requests, so sequences are shorter than those of other components.
    let length = draw.length().min(45);
    let start = usize::try_from(draw.number(1..=6)).expect("it is at most 6");
    let operations = (0..length).map(|at| match at {
        _ if at < start => operation(draw, &flags, CHANGES),
        _ if at == start => operation(draw, &flags, &[(1, "start")]),
        _ if draw.chance(55) => operation(draw, &flags, CHANGES),
        _ if flags.contains(&STREAMING) && draw.chance(15) => {
            operation(draw, &flags, ENDS_OF_STREAMS)
        }
        _ => operation(draw, &flags, ENDS),
    });
    Sequence {
        component: COMPONENT.name,
        operations: operations.collect(),
        flags: flags.clone(),
        limiter: None,
    }
}

fn operation(draw: &mut Draw, flags: &[&str], verbs: &[(u32, &'static str)]) -> Operation {
    let mut verb = draw.weighted(verbs);
    if verb == "restart" && flags.contains(&PAGES) && draw.chance(90) {
        // After a restart client-go may list the same pages forever, which takes too much time.
        verb = "compaction";
    }
    let operation = Operation::new(verb);
    match verb {
        "put" | "remove" | "elsewhere" | "spoil" => operation.about(draw.thing()),
        "compaction" => changes(draw, operation),
        "close" | "restart" => {
            let operation = if draw.chance(40) {
                changes(draw, operation)
            } else {
                operation
            };
            refusals(draw, flags, operation)
        }
        "start" => refusals(draw, flags, operation),
        "gone" => {
            // Otherwise the watch expires at the same revision as before.
            let operation = if draw.chance(70) {
                operation.about(draw.thing())
            } else {
                operation
            };
            refusals(draw, flags, operation)
        }
        "end_early" => {
            let times = draw.number(1..=3);
            operation.text(format!("watch configmaps: cut after 1 events x{times}"))
        }
        _ => operation,
    }
}

/// Adds random object changes to an operation that ends the watch.
///
/// The reflector can receive these changes only through a list or a new watch.
fn changes(draw: &mut Draw, operation: Operation) -> Operation {
    let changes = draw.number(1..=4);
    let batch = (0..changes).map(|_| {
        let verb = draw.weighted(&[(3, "put"), (1, "remove"), (1, "elsewhere")]);
        Operation::new(verb).about(draw.thing())
    });
    Operation {
        batch: batch.collect(),
        ..operation
    }
}

/// Adds random failures of the requests that follow an operation.
fn refusals(draw: &mut Draw, flags: &[&str], operation: Operation) -> Operation {
    let streaming = flags.contains(&STREAMING);
    // A probe is a list too, and would receive an error meant for a list. No list is rejected where a probe
    // may precede it, or where the list may follow a reset.
    let lists = !["close", "restart"].contains(&operation.verb);
    if lists && flags.contains(&PAGES) && draw.chance(15) {
        return operation.text("list configmaps: 410 skip=1 x1");
    }
    match draw.number(0..=9) {
        0 => operation,
        1 => operation.number(draw.number(1..=3)),
        // No other list is sent unless a streaming list is rejected.
        2..=6 if lists && !streaming => operation.text(refusal(draw, "list", &REFUSALS)),
        8 | 9 if lists => {
            let watch = watch_refusal(draw);
            // Three failed streaming lists also lead to a list.
            if watch.contains("reset") || streaming && watch.ends_with("x3") {
                return operation.text(watch);
            }
            // client-go's REST client retries a list after these errors. The library starts with a streaming
            // list again.
            let known = if streaming {
                UNREPEATED
            } else {
                REFUSALS.len()
            };
            let list = refusal(draw, "list", &REFUSALS[..known]);
            operation.text(format!("{watch}; {list}"))
        }
        _ => operation.text(watch_refusal(draw)),
    }
}

fn watch_refusal(draw: &mut Draw) -> String {
    let all = [&REFUSALS[..], &WATCH_REFUSALS].concat();
    refusal(draw, "watch", &all)
}

fn refusal(draw: &mut Draw, verb: &str, with: &[&str]) -> String {
    let with = draw.one(with);
    // With more errors, the pauses of the backoff would exceed the server's `Retry-After`.
    let most = if with.ends_with("retry-after=20") {
        2
    } else {
        3
    };
    let times = draw.number(1..=most);
    format!("{verb} configmaps: {with} x{times}")
}

/// Separator in an answer, between the requests in the first and in the second turn of an operation.
///
/// An operation has one or two turns. In a turn, the test changes objects or injects faults, and then virtual
/// time passes. Only the first turn changes objects.
const THEN: &str = "then";

/// Returns an operation's answer: the requests that followed, and the store's content.
fn join(mut said: Vec<String>, store: &str) -> String {
    said.push(format!("store {store}"));
    said.join("; ")
}

fn recognise(moment: &Moment<'_>) -> Option<Accepted> {
    let Alignment { mut names, parts } = alignment::align(moment)?;
    names.sort_unstable();
    names.dedup();
    if parts {
        return names.first().map(|name| Accepted::FromHere(name));
    }
    Some(Accepted::Several(names))
}
