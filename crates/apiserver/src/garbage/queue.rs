//! The tasks of the graph: each waits once, and a failed task waits before it is tried again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::node::NodeId;

/// Wait after the first failure of a task, which doubles with each further failure.
///
/// This value and the next are those of `DefaultTypedControllerRateLimiter` in client-go.
const WAIT_MIN: Duration = Duration::from_millis(5);

const WAIT_MAX: Duration = Duration::from_secs(1_000);

/// A node about which something has to be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// Look for an owner that was not observed.
    Verify(NodeId),
    /// Delete the object if no owner is left, or end its deletion if no dependent is left.
    Attempt(NodeId),
    /// Remove the references of the dependents from this one on, and then the finalizer of the owner.
    Orphan { owner: NodeId, from: NodeId },
    /// Report that a dependent refers to an owner in another namespace.
    Report { dependent: NodeId, owner: NodeId },
}

impl Task {
    /// Returns the task after a failure: an orphaning starts again.
    fn again(self) -> Task {
        match self {
            Task::Orphan { owner, .. } => Task::Orphan {
                owner,
                from: NodeId(0),
            },
            other => other,
        }
    }
}

/// The tasks, oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Task>,
    known: BTreeSet<Task>,
    /// How often each task has failed since it last succeeded.
    failures: BTreeMap<Task, u32>,
    /// The failed tasks that are not in the queue, with the times from which they are tried again.
    dues: BTreeSet<(Instant, Task)>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn add(&mut self, task: Task) {
        if self.known.insert(task) {
            self.waiting.push_back(task);
        }
    }

    pub(super) fn has(&self, task: Task) -> bool {
        self.known.contains(&task)
    }

    pub(super) fn pop(&mut self) -> Option<Task> {
        let task = self.waiting.pop_front()?;
        self.known.remove(&task);
        Some(task)
    }

    /// Forgets the failures of a task.
    pub(super) fn succeeded(&mut self, task: Task) {
        self.failures.remove(&task.again());
    }

    /// Queues the task again after a wait. Returns how often it has failed.
    pub(super) fn failed(&mut self, task: Task, now: Instant) -> u32 {
        let task = task.again();
        let failures = self.failures.entry(task).or_default();
        let wait = (WAIT_MIN * 2_u32.pow((*failures).min(20))).min(WAIT_MAX);
        *failures += 1;
        self.dues.insert((now + wait, task));
        *failures
    }

    /// Queues the failed tasks whose wait is over.
    pub(super) fn retry_due(&mut self, now: Instant) {
        while self.has_due(now) {
            if let Some((_, task)) = self.dues.pop_first() {
                self.add(task);
            }
        }
    }

    /// Queues all failed tasks.
    pub(super) fn retry_all(&mut self) {
        for (_, task) in std::mem::take(&mut self.dues) {
            self.add(task);
        }
    }

    pub(super) fn has_due(&self, now: Instant) -> bool {
        self.dues.first().is_some_and(|(due, _)| *due <= now)
    }
}
