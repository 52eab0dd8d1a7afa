//! [`OrderedTasks`]: computations on other workers of the runtime, whose results come in order.
//!
//! On a runtime with one thread there are none, so that a simulation decides everything itself.

use std::{collections::VecDeque, panic::resume_unwind};

use tokio::task::{JoinSet, yield_now};

use crate::offload::width_here;

/// So many computations for each worker that takes part, the task's own too: a worker that finds none goes to
/// sleep, and wakes late and on another's processor. With one for each, events came a seventh slower.
const PER_WORKER: usize = 2;

/// After so many items a computation gives way to others: of pods, a third of a millisecond's work.
const TURN: usize = 8;

/// The computations under way, a few for each worker of the runtime: the task itself, if it has
/// nothing to do but to wait for them, leaves its worker to them. They are tasks of that runtime and
/// not threads: those take turns, so that each finds its caches cold and frees memory
/// that another has allocated. Dropping it ends them.
pub(crate) struct OrderedTasks<T> {
    width: usize,
    tasks: JoinSet<Option<(u64, Vec<T>)>>,
    /// The results, from the oldest on, those that have come.
    results: VecDeque<Option<Vec<T>>>,
    /// The number of the oldest.
    oldest: u64,
}

impl<T: Send + 'static> OrderedTasks<T> {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn with_one_thread_there_is_no_room_for_any() {
        assert_eq!(width_here(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn results_come_in_order_and_none_is_lost_by_who_stops_waiting() {
        let mut tasks = OrderedTasks::here();
        assert_eq!(width_here(), 3);
        let gate = Arc::new(Mutex::new(()));
        let shut = gate.lock();
        let first = Arc::clone(&gate);
        tasks.begin(vec![1, 2], move |item| {
            drop(first.lock());
            item
        });
        tasks.begin((3..100).collect(), |item| item);
        tasks.begin(vec![100], |item| item);
        for _ in 3..4 * PER_WORKER {
            assert!(tasks.has_room());
            tasks.begin(Vec::new(), |item: i32| item);
        }
        assert!(!tasks.has_room());
        assert!(
            tasks.next().now_or_never().is_none(),
            "the first has not ended"
        );
        drop(shut);
        assert_eq!(tasks.next().await, [1, 2]);
        assert_eq!(tasks.next().await, (3..100).collect::<Vec<_>>());
        assert_eq!(tasks.next().await, [100]);
        assert!(tasks.has_room() && !tasks.is_empty());
        for _ in 3..4 * PER_WORKER {
            assert!(tasks.next().await.is_empty());
        }
        assert!(tasks.is_empty());
        assert!(tasks.next().now_or_never().is_none());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn what_was_given_up_does_not_come_later() {
        let mut tasks = OrderedTasks::here();
        tasks.begin(vec![1], |item| item);
        tasks.begin(vec![2], |item| item);
        assert_eq!(tasks.next().await, [1]);
        tasks.clear();
        tasks.begin(vec![3], |item| item);
        assert_eq!(tasks.next().await, [3]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    #[should_panic(expected = "as it did")]
    async fn a_panic_goes_on_where_the_result_is_wanted() {
        let mut tasks = OrderedTasks::<()>::here();
        tasks.begin(vec![()], |()| panic!("as it did"));
        tasks.next().await;
    }
}
