//! Runs sequences of operations on the library's work queue, in paused tokio time. Worker tasks receive
//! items, and drain tasks shut the queue down.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::{Future as _, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use kube_informer::workqueue::{Item, RateLimitingQueue};
use parking_lot::Mutex;
use tokio::{
    runtime,
    task::{JoinSet, yield_now},
    time::{Instant, advance, sleep_until},
};

use super::{
    ADD_IN_WORK, ADD_NEW, ADD_QUEUED, ADD_SHUT, COMES_BACK, DELAY_EARLIER, DELAY_LATER, DELAY_NEW,
    DELAY_NONE, DONE_AGAIN, DONE_LAST, DRAIN_IDLE, DRAIN_IN_WORK, DRAIN_QUEUED, DRAIN_RELEASED,
    DRAIN_RETURNS, DRAIN_STUCK, DRAIN_TWICE, DRAIN_WAITS, GET_AT_ONCE, GET_ENDS, GET_WAITS,
    HANDED_WHEN_DUE, ITEMS, NOT_HELD, RETURNED_EARLY, SEVERAL_WAIT, SHUT_DELAYED, SHUT_WAITING,
    WORKER_LEFT, WORKER_SENT_OFF, WORKER_STUCK,
};
use crate::{
    planted::Bug,
    rate_limiter::{Boxed, build},
    sequence::{Answer, Operation, Sequence, Step},
};

/// Time by which the virtual clock advances before each operation.
///
/// Delays are whole milliseconds, and a sequence has fewer than 1,000 operations. The additional microsecond
/// per operation therefore ensures that the delays of two operations never end at the same time.
const TURN: Duration = Duration::from_micros(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Number of times that an operation yields to the other tasks. One time is not enough, because a woken task
/// may wake another task.
const SETTLING: usize = 8;

/// Runs a sequence on a new work queue, with the deliberate bug `bug`, if any.
pub(crate) fn replay(sequence: &Sequence, bug: Option<Bug>) -> Vec<Step> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without an I/O driver can be built");
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

/// The work queue under test, its tasks, and the behaviors of the current operation.
struct Workers {
    queue: RateLimitingQueue<String>,
    begin: Instant,
    told: Arc<Mutex<Told>>,
    waiting: JoinSet<()>,
    /// Number of started tasks that call `shut_down_with_drain`.
    drains: usize,
    /// Whether the latest shutdown call was `shut_down`. Such a call ends all pending `shut_down_with_drain`
    /// calls.
    released: bool,
    /// Items that were added again while a worker processes them.
    again: BTreeSet<String>,
    bug: Option<Bug>,
    seen: Vec<&'static str>,
}

/// The events that the worker and drain tasks record, and the items that workers are processing.
///
/// An event is recorded when a worker receives an item or the end of the queue, and when a drain completes.
#[derive(Default)]
struct Told {
    events: Vec<(u128, String)>,
    held: BTreeMap<String, Item<String>>,
    /// Number of workers that currently wait for an item.
    idle: usize,
    drained: usize,
}

impl Told {
    /// Records an event with the time since `since`, rounded up to whole milliseconds.
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
        let delayed = self.delayed_in_work();
        let mut answer = self.carry_out(operation).await;
        settle().await;
        let events = std::mem::take(&mut self.told.lock().events);
        self.see_events(operation.verb, &events, &before);
        self.see_again(operation, &delayed);
        self.see_drains(operation.verb, before.drained);
        let ended = events.iter().any(|(_, text)| text == "end");
        self.seen
            .extend((ended && self.seen.contains(&COMES_BACK)).then_some(WORKER_SENT_OFF));
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
                // Starts the shutdown without waiting for its end.
                let mut drain = pin!(queue.shut_down_with_drain());
                poll_fn(|context| Poll::Ready(drain.as_mut().poll(context).is_ready())).await;
            } else {
                queue.shut_down_with_drain().await;
            }
            let mut told = told.lock();
            told.drained += 1;
            told.tell(begin, "drained".to_owned());
        });
    }

    /// Advances the paused clock by `time`, so that workers receive due items.
    async fn pass(&self, time: Duration) {
        let begun = self.begin.elapsed();
        let until = begun + time;
        advance(MILLISECOND.saturating_sub(part(begun))).await;
        settle().await;
        sleep_until(self.begin + until - part(until)).await;
        settle().await;
        advance(part(until)).await;
        self.queue.len();
    }

    /// Records for the coverage report which behaviors `operation` shows.
    ///
    /// Must be called before the operation changes the queue's state.
    fn see(&mut self, operation: &Operation) {
        let item = &operation.text;
        let delayed = self.queue.delayed();
        let held = self.told.lock().held.contains_key(item);
        let shut = self.queue.is_shutting_down();
        let seen = match operation.verb {
            "add" | "add_after" | "add_rate_limited" if shut => Some(ADD_SHUT),
            "add" | "add_after" if held && operation.number == 0 => Some(ADD_IN_WORK),
            "add_after" if operation.number == 0 => Some(DELAY_NONE),
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

    /// Records the effect of an operation for the coverage report.
    ///
    /// The operation `verb` caused `events`. `before` is the state before the operation.
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

    /// Returns the items that wait for a delayed addition while a worker is processing them.
    fn delayed_in_work(&self) -> Vec<String> {
        let delayed = self.queue.delayed().into_iter().map(|(item, _)| item);
        let held = &self.told.lock().held;
        delayed.filter(|item| held.contains_key(item)).collect()
    }

    /// Updates `again`, the set of items that were added again while a worker processes them.
    ///
    /// `delayed_before` is the result of [`Self::delayed_in_work`] before the operation. The queue has added
    /// such an item again if the delay has ended since then.
    fn see_again(&mut self, operation: &Operation, delayed_before: &[String]) {
        let held = &self.told.lock().held;
        match operation.verb {
            "add" | "add_after" if operation.number == 0 && self.seen.contains(&ADD_IN_WORK) => {
                self.again.insert(operation.text.clone());
            }
            "pass" => {
                let delayed = self.queue.delayed();
                let due = |item: &&String| {
                    held.contains_key(*item) && delayed.iter().all(|(other, _)| other != *item)
                };
                self.again
                    .extend(delayed_before.iter().filter(due).cloned());
            }
            "done" | "done_forget" | "retry" | "retry_after" => {
                self.again.remove(&operation.text);
            }
            _ => {}
        }
    }

    /// Records which situations occur, for example that two drain tasks wait. Also records violated
    /// guarantees, for example that a worker waits although an item is queued.
    ///
    /// Must be called after the operation `verb`. `drained_before` is the number of drain tasks that had
    /// ended before the operation.
    fn see_drains(&mut self, verb: &str, drained_before: usize) {
        let (queued, in_work) = (self.queue.len(), self.queue.processing());
        let Count { idle, drained, .. } = self.count();
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
            (DRAIN_STUCK, waiting > 0 && queued + in_work == 0),
            (WORKER_STUCK, idle > 0 && queued > 0),
            (WORKER_LEFT, idle > 0 && self.released),
        ];
        let shown = shown.into_iter().filter(|(_, is)| *is);
        self.seen.extend(shown.map(|(shown, _)| shown));
    }
}

/// Numbers of queued items, waiting workers and ended drain tasks.
struct Count {
    queued: usize,
    idle: usize,
    drained: usize,
}

/// Returns the remainder of `time` after division by one millisecond.
fn part(time: Duration) -> Duration {
    Duration::from_nanos(u64::from(time.subsec_nanos() % 1_000_000))
}

async fn settle() {
    for _ in 0..SETTLING {
        yield_now().await;
    }
}

fn show(mut events: Vec<(u128, String)>) -> String {
    // The order of events at the same time is undefined.
    events.sort_unstable();
    let events = events.iter().map(|(at, text)| format!("[{at} ms: {text}]"));
    events.collect()
}
