//! `RateLimitingQueue` against client-go's rate limiting queue, with several workers, in virtual time.
//!
//! A microsecond passes between two operations, so that no two delays end at the same moment. Which of
//! several workers is given an item is not compared: which item is given to any, and when, is.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kube_informer::workqueue::{Item, RateLimitingQueue};
use parking_lot::Mutex;
use tokio::{
    runtime,
    task::{JoinSet, yield_now},
    time::{Instant, advance, sleep_until, timeout},
};

use crate::{
    compare::Moment,
    component::{Accepted, Component},
    draw::Draw,
    oracle::Version,
    planted::Bug,
    rate_limiter::{Boxed, build},
    sequence::{Answer, Limiter, Operation, Sequence, Step},
};

/// See the module.
pub const COMPONENT: Component = Component {
    name: "workqueue",
    draw,
    versions: |_| &Version::ALL,
    replay,
    behaviours: BEHAVIOURS,
    recognise,
    must_not,
};

/// What passes between two operations.
const TURN: Duration = Duration::from_micros(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// So often everybody else is let run after an operation: a worker that is woken looks, waits again or
/// tells, and may have woken another one.
const SETTLING: usize = 8;

const ITEMS: [&str; 4] = ["a", "b", "c", "d"];

const GET_WAITS: &str = "Get waits";
const GET_AT_ONCE: &str = "Get of what is queued";
const GET_ENDS: &str = "Get after a shut-down, when nothing is left";
const HANDED_WHEN_DUE: &str = "a delayed item reaches a worker";
const SEVERAL_WAIT: &str = "several workers wait";
const ADD_QUEUED: &str = "Add of an item that is queued";
const ADD_IN_WORK: &str = "Add of an item that is in work";
const ADD_NEW: &str = "Add of an item that is neither";
const ADD_SHUT: &str = "Add after a shut-down";
const DELAY_EARLIER: &str = "AddAfter: earlier than the item's delay";
const DELAY_LATER: &str = "AddAfter: not earlier than the item's delay";
const DELAY_NEW: &str = "AddAfter of an item without a delay";
const DONE_AGAIN: &str = "Done of an item that was added in work";
const DONE_LAST: &str = "Done of an item that was not";
const NOT_HELD: &str = "Done of an item that nobody has";
const SHUT_DELAYED: &str = "a shut-down drops delayed items";
const SHUT_WAITING: &str = "a shut-down wakes workers";
const DRAIN_IDLE: &str = "a drain of an idle queue returns";
const DRAIN_IN_WORK: &str = "a drain waits for what is in work";
const DRAIN_QUEUED: &str = "a drain waits for what is queued";
const DRAIN_RETURNS: &str = "a drain returns when all is done";
const DRAIN_TWICE: &str = "two drains wait";
const DRAIN_RELEASED: &str = "ShutDown releases a drain";
const DRAIN_WAITS: &str = "a drain waits";
const COMES_BACK: &str = "an item in work comes back while a drain waits";
const RETURNED_EARLY: &str = "a drain returns although something is left";

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
    // Whole milliseconds, so that the turns between operations tell all delays apart.
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
        "add_after" | "retry_after" => operation.text(item).number(draw.number(1..=30)),
        _ => operation.text(item),
    }
}

/// What an answer says, apart from drains that returned, and how many of those there are.
fn without_drains(answer: &Answer) -> (String, usize) {
    let text = answer.text().unwrap_or_default();
    let (drained, other): (Vec<_>, Vec<_>) = text
        .split_inclusive(']')
        .partition(|event| event.ends_with("ms: drained]"));
    (other.concat(), drained.len())
}

/// How many drains have returned, up to and including this step.
fn returned<'a>(answers: impl Iterator<Item = &'a Answer>) -> usize {
    answers.map(|answer| without_drains(answer).1).sum()
}

fn recognise(moment: &Moment<'_>) -> Option<Accepted> {
    let (ours, drained_here) = without_drains(moment.our());
    let (theirs, drained_there) = without_drains(moment.their()?);
    if ours != theirs {
        return other_difference(moment, &ours, &theirs);
    }
    let here = returned(moment.ours[..=moment.at].iter().map(|step| &step.answer));
    let there = returned(moment.theirs[..=moment.at].iter().flatten());
    let waits = moment.saw(DRAIN_WAITS);
    // A drain that has not been woken there returns later, or never; one that waits here returned before.
    if waits && drained_there > drained_here {
        Some(Accepted::Here("a_drain_waits_for_what_is_queued"))
    } else if waits {
        None
    } else if drained_there > drained_here || there < here {
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
    // Workers are told the end there, while here they wait for what comes back.
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

/// A drain that returns too early does what client-go's does.
fn must_not(step: &Step) -> Option<&'static str> {
    step.seen
        .contains(&RETURNED_EARLY)
        .then_some(RETURNED_EARLY)
}

fn replay(sequence: &Sequence, bug: Option<Bug>) -> Vec<Step> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without a driver for I/O asks nothing of the system");
    let limiter = sequence
        .limiter
        .as_ref()
        .expect("a limiter is always drawn");
    runtime.block_on(async {
        let mut workers = Workers::new(RateLimitingQueue::new(Boxed(build(limiter))), bug);
        let mut steps = Vec::with_capacity(sequence.operations.len());
        for operation in &sequence.operations {
            advance(TURN).await;
            steps.push(workers.step(operation).await);
        }
        steps
    })
}

/// The queue, with those who wait for it.
struct Workers {
    queue: RateLimitingQueue<String>,
    begin: Instant,
    told: Arc<Mutex<Told>>,
    waiting: JoinSet<()>,
    /// How many drains have begun.
    drains: usize,
    /// Whether the last shut-down was a plain one, which lets drains go.
    released: bool,
    /// Items in work that were added again since.
    again: BTreeSet<String>,
    bug: Option<Bug>,
    seen: Vec<&'static str>,
}

/// What workers and drains have told.
#[derive(Default)]
struct Told {
    events: Vec<(u128, String)>,
    held: BTreeMap<String, Item<String>>,
    /// Workers that wait for an item.
    idle: usize,
    drained: usize,
}

impl Told {
    /// Notes what happens, up to the next whole millisecond: timers are as fine as that.
    fn tell(&mut self, since: Instant, text: String) {
        let millisecond = since.elapsed().as_nanos().div_ceil(MILLISECOND.as_nanos());
        self.events.push((millisecond, text));
    }
}

impl Workers {
    fn new(queue: RateLimitingQueue<String>, bug: Option<Bug>) -> Self {
        Self {
            queue,
            begin: Instant::now(),
            told: Arc::default(),
            waiting: JoinSet::new(),
            drains: 0,
            released: false,
            again: BTreeSet::new(),
            bug,
            seen: Vec::new(),
        }
    }

    async fn step(&mut self, operation: &Operation) -> Step {
        self.see(operation);
        let before = self.count();
        let delayed = self.queue.delayed();
        let mut answer = self.carry_out(operation).await;
        settle().await;
        let events = std::mem::take(&mut self.told.lock().events);
        self.see_events(operation.verb, &events, &before);
        self.see_again(operation, &delayed);
        self.see_drains(operation.verb, before.drained);
        answer += &show(events);
        Step {
            answer: Answer::said(answer),
            seen: std::mem::take(&mut self.seen),
        }
    }

    fn count(&self) -> Count {
        let told = self.told.lock();
        Count {
            queued: self.queue.len(),
            idle: told.idle,
            drained: told.drained,
        }
    }

    async fn carry_out(&mut self, operation: &Operation) -> String {
        let item = &operation.text;
        let delay = Duration::from_millis(operation.number);
        match operation.verb {
            "add" => self.add(item),
            "add_after" => self.queue.add_after(item.clone(), delay),
            "add_rate_limited" => self.queue.add_rate_limited(item.clone()),
            "forget" => self.queue.forget(item),
            "requeues" => return self.queue.num_requeues(item).to_string(),
            "len" => return self.queue.len().to_string(),
            "shutting_down" => return Answer::is(self.queue.is_shutting_down()).to_string(),
            "shut_down" => {
                self.released = true;
                self.queue.shut_down();
            }
            "drain" => self.drain(),
            "get" => self.get(),
            "pass" => self.pass(delay).await,
            verb => {
                let Some(item) = self.told.lock().held.remove(item) else {
                    return "not held".to_owned();
                };
                match verb {
                    "done" => item.done(),
                    "done_forget" => item.forget(),
                    "retry" => item.retry(),
                    "retry_after" => item.retry_after(delay),
                    other => unreachable!("{other} is not drawn for a work queue"),
                }
            }
        }
        String::new()
    }

    fn add(&self, item: &str) {
        let lost =
            self.bug == Some(Bug::AddedInWorkLost) && self.told.lock().held.contains_key(item);
        if !lost {
            self.queue.add(item.to_owned());
        }
    }

    fn get(&mut self) {
        let (queue, told, begin) = (self.queue.clone(), Arc::clone(&self.told), self.begin);
        self.told.lock().idle += 1;
        self.waiting.spawn(async move {
            let item = queue.get().await;
            let mut told = told.lock();
            told.idle -= 1;
            told.tell(
                begin,
                item.as_ref()
                    .map_or_else(|| "end".to_owned(), |item| item.key().clone()),
            );
            if let Some(item) = item {
                told.held.insert(item.key().clone(), item);
            }
        });
    }

    fn drain(&mut self) {
        self.drains += 1;
        self.released = false;
        let (queue, told, begin) = (self.queue.clone(), Arc::clone(&self.told), self.begin);
        let early = self.bug == Some(Bug::DrainReturnsEarly);
        self.waiting.spawn(async move {
            if early {
                // The shut-down begins, and nobody waits for its end.
                let _ = timeout(Duration::ZERO, queue.shut_down_with_drain()).await;
            } else {
                queue.shut_down_with_drain().await;
            }
            let mut told = told.lock();
            told.drained += 1;
            told.tell(begin, "drained".to_owned());
        });
    }

    /// Lets time pass.
    ///
    /// A paused clock goes on by as many whole milliseconds as the next timer needs, so it is set to a
    /// whole one first; nothing comes due on the way, for delays began before now in their millisecond.
    /// What comes due behind the last whole one would wake somebody only at the next, so the queue is
    /// asked for it.
    async fn pass(&self, time: Duration) {
        let begun = self.begin.elapsed();
        let until = begun + time;
        advance(MILLISECOND - part(begun)).await;
        settle().await;
        sleep_until(self.begin + until - part(until)).await;
        settle().await;
        advance(part(until)).await;
        self.queue.len();
    }

    /// What is about to be shown by an operation.
    fn see(&mut self, operation: &Operation) {
        let item = &operation.text;
        let delayed = self.queue.delayed();
        let held = self.told.lock().held.contains_key(item);
        let shut = self.queue.is_shutting_down();
        let seen = match operation.verb {
            "add" | "add_after" | "add_rate_limited" if shut => Some(ADD_SHUT),
            "add" if held => Some(ADD_IN_WORK),
            "add_after" => {
                let delay = delayed.iter().find(|(other, _)| other == item);
                Some(match delay {
                    None => DELAY_NEW,
                    Some((_, left)) if left.as_millis() > u128::from(operation.number) => {
                        DELAY_EARLIER
                    }
                    Some(_) => DELAY_LATER,
                })
            }
            "done" | "done_forget" | "retry" | "retry_after" if !held => Some(NOT_HELD),
            "shut_down" | "drain" if !delayed.is_empty() => Some(SHUT_DELAYED),
            _ => None,
        };
        self.seen.extend(seen);
        self.seen
            .extend((self.told.lock().idle > 1).then_some(SEVERAL_WAIT));
    }

    /// What has been shown.
    fn see_events(&mut self, verb: &str, events: &[(u128, String)], before: &Count) {
        let handed = |(_, text): &&(u128, String)| ITEMS.contains(&text.as_str());
        let items = events.iter().filter(handed).count();
        let ended = events.iter().any(|(_, text)| text == "end");
        let now = self.count();
        let grown = now.queued + items > before.queued;
        let known = !self.seen.iter().all(|seen| *seen == SEVERAL_WAIT);
        let seen = match verb {
            "get" if ended => GET_ENDS,
            "get" if now.idle > before.idle => GET_WAITS,
            "get" => GET_AT_ONCE,
            "pass" if items > 0 => HANDED_WHEN_DUE,
            "shut_down" | "drain" if ended => SHUT_WAITING,
            "add" if !known => {
                if grown {
                    ADD_NEW
                } else {
                    ADD_QUEUED
                }
            }
            "done" | "done_forget" | "retry" | "retry_after" if !known => {
                if grown {
                    DONE_AGAIN
                } else {
                    DONE_LAST
                }
            }
            _ => return,
        };
        self.seen.push(seen);
    }

    /// What is added in work, at once or because its delay has ended.
    fn see_again(&mut self, operation: &Operation, delayed_before: &[(String, Duration)]) {
        let held = &self.told.lock().held;
        self.again.retain(|item| held.contains_key(item));
        match operation.verb {
            "add" if self.seen.contains(&ADD_IN_WORK) => {
                self.again.insert(operation.text.clone());
            }
            "pass" => {
                let delayed = self.queue.delayed();
                let due = |item: &&String| !delayed.iter().any(|(other, _)| other == *item);
                let items = delayed_before.iter().map(|(item, _)| item).filter(due);
                self.again
                    .extend(items.filter(|item| held.contains_key(*item)).cloned());
            }
            _ => {}
        }
    }

    /// What has become of drains.
    fn see_drains(&mut self, verb: &str, drained_before: usize) {
        let (queued, in_work) = (self.queue.len(), self.queue.processing());
        let drained = self.count().drained;
        let waiting = self.drains - drained;
        let returned = drained > drained_before;
        let shown = [
            (DRAIN_WAITS, waiting > 0),
            (DRAIN_TWICE, waiting > 1),
            (DRAIN_IN_WORK, waiting > 0 && in_work > 0),
            (DRAIN_QUEUED, waiting > 0 && queued > 0),
            (COMES_BACK, waiting > 0 && !self.again.is_empty()),
            (DRAIN_RELEASED, returned && verb == "shut_down"),
            (DRAIN_IDLE, returned && verb == "drain"),
            (
                DRAIN_RETURNS,
                returned && !["shut_down", "drain"].contains(&verb),
            ),
            (
                RETURNED_EARLY,
                returned && !self.released && queued + in_work > 0,
            ),
        ];
        let shown = shown.into_iter().filter(|(_, is)| *is);
        self.seen.extend(shown.map(|(shown, _)| shown));
    }
}

/// What changes with an operation.
struct Count {
    queued: usize,
    idle: usize,
    drained: usize,
}

/// What is behind the last whole millisecond.
fn part(time: Duration) -> Duration {
    Duration::from_nanos(u64::from(time.subsec_nanos() % 1_000_000))
}

async fn settle() {
    for _ in 0..SETTLING {
        yield_now().await;
    }
}

fn show(mut events: Vec<(u128, String)>) -> String {
    // At one moment several may be told something, in no order.
    events.sort_unstable();
    let events = events.iter().map(|(at, text)| format!("[{at} ms: {text}]"));
    events.collect()
}
