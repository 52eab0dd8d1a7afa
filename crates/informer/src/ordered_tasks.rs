//! [`OrderedTasks`] runs computations on the workers of the runtime, and returns their results in the order
//! in which the computations were started.
//!
//! On a runtime with one thread, [`OrderedTasks::has_room`] always returns false, and the caller must do the
//! computations in its own task.

use std::{collections::VecDeque, panic::resume_unwind};

use tokio::task::{JoinSet, yield_now};

use crate::offload::width_here;

/// Maximum number of computations per worker. With 1 instead of 2, event delivery takes a seventh longer.
const PER_WORKER: usize = 2;

/// Number of items between two yields of a computation. Decoding eight pods takes a third of a millisecond.
const TURN: usize = 8;

/// A queue of computations, at most [`PER_WORKER`] per worker of the runtime. Dropping the queue cancels the
/// computations.
pub(crate) struct OrderedTasks<T> {
    width: usize,
    tasks: JoinSet<Option<(u64, Vec<T>)>>,
    /// The results of each computation, in the order in which the computations were started. An entry is
    /// `None` until its computation completes.
    results: VecDeque<Option<Vec<T>>>,
    /// Sequence number of the oldest computation in `results`. The first computation has number 0.
    oldest: u64,
}

impl<T: Send + 'static> OrderedTasks<T> {
    /// Creates an empty queue that uses the workers of the current runtime.
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

    /// Returns whether this queue accepts no computations, because the runtime has only one worker.
    pub(crate) fn is_without(&self) -> bool {
        self.width == 0
    }

    pub(crate) fn has_room(&self) -> bool {
        self.results.len() < self.width
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Starts a computation that calls `compute` for each of `items`, in order.
    ///
    /// The caller must first check [`has_room`](Self::has_room).
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
        // Other workers do not steal the task that a worker spawned last. This empty task occupies that
        // position, so other workers can steal the computation.
        self.tasks.spawn(std::future::ready(None));
    }

    /// Waits until the oldest computation completes, and removes the computation from the queue. Returns one
    /// result for each item of the computation.
    ///
    /// The future never completes if the queue is empty.
    ///
    /// # Panics
    /// Panics if a computation in the queue panicked, with the same panic payload.
    ///
    /// # Cancel safety
    /// Dropping the future loses no result.
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
                // There is no computation, or the runtime is shutting down.
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

    /// Cancels all computations and discards their results.
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
    async fn a_single_threaded_runtime_accepts_no_computation() {
        assert_eq!(width_here(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn results_arrive_in_order_and_a_dropped_wait_loses_none() {
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
    async fn cleared_computations_deliver_no_result() {
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
    async fn a_panic_resumes_in_the_task_that_awaits_the_result() {
        let mut tasks = OrderedTasks::<()>::here();
        tasks.begin(vec![()], |()| panic!("as it did"));
        tasks.next().await;
    }
}
