//! [`Beside`]: computations beside the task that needs their results, which come in order.
//!
//! On a runtime with one thread nothing is done beside, so a simulation decides everything itself.

use std::{collections::VecDeque, panic::resume_unwind};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{JoinSet, yield_now},
};

/// So many workers of the runtime are reckoned with beside the one of a task: more would only take turns with what
/// brings the work.
pub(crate) const WIDTH_MAX: usize = 8;

/// So many computations for each worker that takes part, the task's own too: a worker that finds none goes to
/// sleep, and wakes late and on another's processor. With one for each, events came a seventh slower.
const PER_WORKER: usize = 2;

/// After so many items a computation gives way to others: of pods, a third of a millisecond's work.
const TURN: usize = 8;

/// The computations under way, a few for each worker of the runtime: the task itself, if it has
/// nothing to do but to wait for them, leaves its worker to them. They are tasks of that runtime and
/// not threads beside it: those take turns, so that each finds its caches cold and frees memory
/// that another has allocated. Dropping it ends them.
pub(crate) struct Beside<T> {
    width: usize,
    tasks: JoinSet<Option<(u64, Vec<T>)>>,
    /// The results, from the oldest on, those that have come.
    results: VecDeque<Option<Vec<T>>>,
    /// The number of the oldest.
    oldest: u64,
}

impl<T: Send + 'static> Beside<T> {
    /// For the runtime that this is called in.
    pub(crate) fn here() -> Self {
        Self {
            width: match width_here() {
                0 => 0,
                others => PER_WORKER * (others + 1),
            },
            tasks: JoinSet::new(),
            results: VecDeque::new(),
            oldest: 0,
        }
    }

    /// Whether the runtime has only the task's own thread, so that no work is ever offloaded.
    pub(crate) fn is_without(&self) -> bool {
        self.width == 0
    }

    pub(crate) fn has_room(&self) -> bool {
        self.results.len() < self.width
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Begins to compute something of each item.
    pub(crate) fn begin<I: Send + 'static>(
        &mut self,
        items: Vec<I>,
        mut compute: impl FnMut(I) -> T + Send + 'static,
    ) {
        let number = self.oldest + self.results.len() as u64;
        self.results.push_back(None);
        self.tasks.spawn(async move {
            let mut results = Vec::with_capacity(items.len());
            for item in items {
                results.push(compute(item));
                if results.len().is_multiple_of(TURN) {
                    yield_now().await;
                }
            }
            Some((number, results))
        });
        // What a task has spawned last no other worker takes over, and this one has its task to go on with.
        self.tasks.spawn(std::future::ready(None));
    }

    /// The results of the oldest one; never, if there is none. Panics as it did.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Vec<T> {
        loop {
            if let Some(Some(_)) = self.results.front() {
                self.oldest += 1;
                return self.results.pop_front().flatten().unwrap_or_default();
            }
            match self.tasks.join_next().await {
                Some(Ok(Some((number, results)))) => self.came(number, results),
                Some(Ok(None)) => {}
                Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
                // There is none, or the runtime ends, and whoever waits with it.
                Some(Err(_)) | None => std::future::pending().await,
            }
        }
    }

    fn came(&mut self, number: u64, results: Vec<T>) {
        let at = usize::try_from(number - self.oldest).ok();
        if let Some(slot) = at.and_then(|at| self.results.get_mut(at)) {
            *slot = Some(results);
        }
    }

    /// Gives up what is under way.
    pub(crate) fn clear(&mut self) {
        self.tasks = JoinSet::new();
        self.oldest += self.results.len() as u64;
        self.results.clear();
    }
}

/// Objects from which on work on each of them is offloaded. It takes some microseconds an object, so that
/// fewer keep a thread for a millisecond or two; handing it over takes a twentieth of that.
pub(crate) const OFFLOADED_MIN: usize = 500;

/// Computes something on the runtime's pool for blocking work: for what keeps a thread for longer than the
/// other tasks of that thread can wait. Panics as the computation did, and waits for ever if the runtime
/// shuts down before it has begun.
///
/// # Cancel safety
/// Dropping the future does not end a computation that has begun: it runs to its end, and what it owns is
/// dropped there.
pub(crate) async fn offload<T: Send + 'static>(compute: impl FnOnce() -> T + Send + 'static) -> T {
    let mut tasks = JoinSet::new();
    tasks.spawn_blocking(compute);
    match tasks.join_next().await {
        Some(Ok(computed)) => computed,
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        Some(Err(_)) | None => std::future::pending().await,
    }
}

/// Runs a test in paused time on one thread, with a pool of one thread for blocking work. The argument of
/// the test occupies that pool until its result is dropped.
#[cfg(test)]
pub(crate) fn with_held_pool(test: impl AsyncFnOnce(fn() -> Held)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .max_blocking_threads(1)
        .build();
    runtime.unwrap().block_on(async { test(Held::new).await });
}

/// Occupies the pool: offloaded work starts when this is dropped.
#[cfg(test)]
pub(crate) struct Held(
    #[expect(dead_code, reason = "dropping it ends the wait")] std::sync::mpsc::Sender<()>,
);

#[cfg(test)]
impl Held {
    fn new() -> Self {
        let (held, let_go) = std::sync::mpsc::channel();
        Handle::current().spawn_blocking(move || let_go.recv());
        Self(held)
    }
}

/// Drops something on the runtime's pool for blocking work, because it takes long; at once, where there is
/// no runtime.
pub(crate) fn drop_offloaded(garbage: impl Send + 'static) {
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(garbage))),
        Err(_) => drop(garbage),
    }
}

/// How much may go on beside a task of the runtime that this is called in, so that each of its threads has
/// something to do; nothing, if it has one.
pub(crate) fn width_here() -> usize {
    let width = Handle::try_current().map_or(0, |handle| match handle.runtime_flavor() {
        RuntimeFlavor::CurrentThread => 0,
        _ => handle.metrics().num_workers() - 1,
    });
    width.min(WIDTH_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn with_one_thread_nothing_is_done_beside() {
        assert_eq!(width_here(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn results_come_in_order_and_none_is_lost_by_who_stops_waiting() {
        let mut beside = Beside::here();
        assert_eq!(width_here(), 3);
        let gate = Arc::new(Mutex::new(()));
        let shut = gate.lock();
        let first = Arc::clone(&gate);
        beside.begin(vec![1, 2], move |item| {
            drop(first.lock());
            item
        });
        beside.begin((3..100).collect(), |item| item);
        beside.begin(vec![100], |item| item);
        for _ in 3..4 * PER_WORKER {
            assert!(beside.has_room());
            beside.begin(Vec::new(), |item: i32| item);
        }
        assert!(!beside.has_room());
        assert!(
            beside.next().now_or_never().is_none(),
            "the first has not come"
        );
        drop(shut);
        assert_eq!(beside.next().await, [1, 2]);
        assert_eq!(beside.next().await, (3..100).collect::<Vec<_>>());
        assert_eq!(beside.next().await, [100]);
        assert!(beside.has_room() && !beside.is_empty());
        for _ in 3..4 * PER_WORKER {
            assert!(beside.next().await.is_empty());
        }
        assert!(beside.is_empty());
        assert!(beside.next().now_or_never().is_none());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn what_was_given_up_does_not_come_later() {
        let mut beside = Beside::here();
        beside.begin(vec![1], |item| item);
        beside.begin(vec![2], |item| item);
        assert_eq!(beside.next().await, [1]);
        beside.clear();
        beside.begin(vec![3], |item| item);
        assert_eq!(beside.next().await, [3]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    #[should_panic(expected = "as it did")]
    async fn a_panic_goes_on_where_the_result_is_wanted() {
        let mut beside = Beside::<()>::here();
        beside.begin(vec![()], |()| panic!("as it did"));
        beside.next().await;
    }
}
