//! Compares the library's `RateLimitingQueue` with client-go's rate limiting queue. Several workers receive
//! items in virtual time.
//!
//! The comparison checks which items the workers receive, and at which times. It does not check which worker
//! receives an item.

mod workers;
use harness::draw::Choose as _;

use crate::{
    component::{Accepted, Component, Moment},
    draw::Draw,
    oracle::Version,
    sequence::{Answer, Limiter, Operation, Sequence, Step},
};

/// The functions that generate sequences of queue operations, run them on the library, and check the results.
pub(crate) const COMPONENT: Component = Component {
    name: "workqueue",
    draw,
    versions: |_| &Version::ALL,
    replay: workers::replay,
    counterpart: None,
    behaviours: BEHAVIOURS,
    recognise,
    must_not,
};

const ITEMS: [&str; 4] = ["a", "b", "c", "d"];

const GET_WAITS: &str = "Get waits";
const GET_AT_ONCE: &str = "Get of a queued item";
const GET_ENDS: &str = "Get after a shutdown, with nothing queued";
const HANDED_WHEN_DUE: &str = "a delayed item reaches a worker";
const SEVERAL_WAIT: &str = "several workers wait";
const ADD_QUEUED: &str = "Add of a queued item";
const ADD_IN_WORK: &str = "Add of an item that is being processed";
const ADD_NEW: &str = "Add of an item that is neither queued nor being processed";
const ADD_SHUT: &str = "Add after a shutdown";
const DELAY_EARLIER: &str = "AddAfter: earlier than the item's delay";
const DELAY_LATER: &str = "AddAfter: not earlier than the item's delay";
const DELAY_NONE: &str = "AddAfter with a delay of zero";
const DELAY_NEW: &str = "AddAfter of an item without a delay";
const DONE_AGAIN: &str = "Done of an item that was added while it was processed";
const DONE_LAST: &str = "Done of an item that was not added while it was processed";
const NOT_HELD: &str = "Done of an item that no worker holds";
const SHUT_DELAYED: &str = "a shutdown drops delayed items";
const SHUT_WAITING: &str = "a shutdown wakes workers";
const DRAIN_IDLE: &str = "a drain of an idle queue returns";
const DRAIN_IN_WORK: &str = "a drain waits for items that are being processed";
const DRAIN_QUEUED: &str = "a drain waits for queued items";
const DRAIN_RETURNS: &str = "a drain returns when all items are done";
const DRAIN_TWICE: &str = "two drains wait";
const DRAIN_RELEASED: &str = "ShutDown releases a drain";
const DRAIN_WAITS: &str = "a drain waits";
const COMES_BACK: &str = "an item is added again while it is processed and a drain waits";

const RETURNED_EARLY: &str = "a drain returned although items are left";
const DRAIN_STUCK: &str = "a drain waits although no items are left";
const WORKER_STUCK: &str = "a worker waits although an item is queued";
const WORKER_LEFT: &str = "a worker waits after a shutdown without a drain";
const WORKER_SENT_OFF: &str = "Get ended although an item in processing was added again";

const PROMISED_NOT: [&str; 5] = [
    RETURNED_EARLY,
    DRAIN_STUCK,
    WORKER_STUCK,
    WORKER_LEFT,
    WORKER_SENT_OFF,
];

const BEHAVIOURS: &[&str] = &[
    "add",
    "add_after",
    "add_rate_limited",
    "forget",
    "requeues",
    "len",
    "shutting_down",
    "shut_down",
    "drain",
    "get",
    "done",
    "done_forget",
    "retry",
    "retry_after",
    "pass",
    GET_WAITS,
    GET_AT_ONCE,
    GET_ENDS,
    HANDED_WHEN_DUE,
    SEVERAL_WAIT,
    ADD_QUEUED,
    ADD_IN_WORK,
    ADD_NEW,
    ADD_SHUT,
    DELAY_EARLIER,
    DELAY_LATER,
    DELAY_NEW,
    DELAY_NONE,
    DONE_AGAIN,
    DONE_LAST,
    NOT_HELD,
    SHUT_DELAYED,
    SHUT_WAITING,
    DRAIN_IDLE,
    DRAIN_IN_WORK,
    DRAIN_QUEUED,
    DRAIN_RETURNS,
    DRAIN_TWICE,
    DRAIN_RELEASED,
    DRAIN_WAITS,
    COMES_BACK,
];

fn draw(draw: &mut Draw) -> Sequence {
    let running = [
        (12, "add"),
        (8, "add_after"),
        (6, "add_rate_limited"),
        (2, "forget"),
        (3, "requeues"),
        (5, "len"),
        (1, "shutting_down"),
        (18, "get"),
        (6, "done"),
        (4, "done_forget"),
        (5, "retry"),
        (3, "retry_after"),
        (12, "pass"),
    ];
    let ending = [
        (3, "add"),
        (2, "add_after"),
        (2, "add_rate_limited"),
        (1, "requeues"),
        (3, "len"),
        (1, "shutting_down"),
        (6, "get"),
        (8, "done"),
        (2, "retry"),
        (1, "retry_after"),
        (3, "pass"),
        (2, "drain"),
        (1, "shut_down"),
    ];
    let length = draw.length();
    let end = length * 2 / 3;
    let mut operations: Vec<_> = (0..end).map(|_| operation(draw, &running)).collect();
    operations.push(operation(draw, &[(3, "drain"), (1, "shut_down")]));
    operations.extend((end + 1..length).map(|_| operation(draw, &ending)));
    // Delays are whole milliseconds, so that the microseconds between operations make their ends distinct.
    let millisecond = 1_000_000;
    let exponential = Limiter {
        kind: "exponential",
        first: millisecond * draw.number(1..=8),
        second: millisecond * draw.number(20..=2000),
        ..Limiter::default()
    };
    let fast_slow = Limiter {
        kind: "fast_slow",
        first: millisecond * draw.number(1..=5),
        second: millisecond * draw.number(10..=50),
        count: 2,
        ..Limiter::default()
    };
    let both = Limiter {
        kind: "max_of",
        inner: vec![exponential.clone(), fast_slow.clone()],
        ..Limiter::default()
    };
    Sequence {
        component: COMPONENT.name,
        flags: Vec::new(),
        limiter: Some(draw.one(&[exponential, fast_slow, both]).clone()),
        operations,
    }
}

fn operation(draw: &mut Draw, verbs: &[(u32, &'static str)]) -> Operation {
    let operation = Operation::new(draw.weighted(verbs));
    let item = *draw.one(&ITEMS);
    match operation.verb {
        "get" | "len" | "shutting_down" | "shut_down" | "drain" => operation,
        "pass" => {
            let longest = *draw.one(&[3, 10, 40, 3000]);
            operation.number(draw.number(1..=longest))
        }
        "add_after" | "retry_after" => operation.text(item).number(draw.number(0..=30)),
        _ => operation.text(item),
    }
}

/// Returns the answer's text without its `drained` events, and the number of these events.
///
/// Each of these events records that a call of `ShutDownWithDrain` returned.
fn without_drains(answer: &Answer) -> (String, usize) {
    let text = answer.text().unwrap_or_default();
    let (drained, other): (Vec<_>, Vec<_>) = text
        .split_inclusive(']')
        .partition(|event| event.ends_with("ms: drained]"));
    (other.concat(), drained.len())
}

/// Returns how many calls of `ShutDownWithDrain` have returned, according to the events in `answers`.
fn returned<'a>(answers: impl Iterator<Item = &'a Answer>) -> usize {
    answers.map(|answer| without_drains(answer).1).sum()
}

fn recognise(moment: &Moment<'_>) -> Option<Accepted> {
    let (ours, back_here) = without_drains(moment.our());
    let (theirs, returned_there) = without_drains(moment.their()?);
    if ours != theirs {
        return other_difference(moment, &ours, &theirs);
    }
    let here = returned(moment.ours[..=moment.at].iter().map(|step| &step.answer));
    let there = returned(moment.theirs[..=moment.at].iter().flatten());
    let waits = moment.saw(DRAIN_WAITS);
    let busy = moment.saw(DRAIN_QUEUED) || moment.saw(DRAIN_IN_WORK);
    // In client-go a drain can return while items are queued, and a drain that is not woken returns late or
    // never.
    if waits && busy && returned_there > back_here {
        Some(Accepted::Here("a_drain_waits_for_what_is_queued"))
    } else if waits {
        None
    } else if returned_there > back_here || there < here {
        let shut = moment.sequence.operations[..=moment.at].iter();
        let times = shut.filter(|done| done.verb == "shut_down").count();
        Some(Accepted::Here(if times > 1 {
            "each_shut_down_releases_drains"
        } else {
            "all_drains_end_together"
        }))
    } else {
        Some(Accepted::Here("a_drain_waits_for_what_is_queued"))
    }
}

fn other_difference(moment: &Moment<'_>, ours: &str, theirs: &str) -> Option<Accepted> {
    let number = |text: &str| text.parse::<u64>().ok();
    if moment.verb() == "requeues" && moment.after(&["shut_down", "drain"]) {
        let fewer = number(ours)? < number(theirs)?;
        return fewer.then_some(Accepted::Here("the_limiter_is_not_asked_after_a_shut_down"));
    }
    // client-go ends these workers; the library's workers wait for the items that are added again.
    let without_ends = |text: &str| {
        let events = text
            .split_inclusive(']')
            .filter(|event| !event.ends_with("ms: end]"));
        events.collect::<String>()
    };
    let kept = without_ends(ours) == without_ends(theirs) && ours.len() < theirs.len();
    (kept && moment.saw(COMES_BACK)).then_some(Accepted::FromHere(
        "a_drain_keeps_workers_for_what_comes_back",
    ))
}

/// Returns the first behavior in [`PROMISED_NOT`] that occurred in the step, or `None`.
fn must_not(step: &Step) -> Option<&'static str> {
    PROMISED_NOT
        .into_iter()
        .find(|broken| step.seen.contains(broken))
}
