//! Divides a write of many objects into steps, and yields between the steps.
//!
//! A [`FollowUp`] is work that follows a write and must be completed, such as the deletion of the objects in a
//! deleted namespace.
//!
//! Guarantees:
//! - a follow-up is completed even if its future is dropped, for example because the client disconnects;
//! - the events of one step fill at most half of a watcher's queue, if the queue can hold four events;
//! - after each step, the write waits until every watcher's queue for the collection is at most half full. A
//!   watcher whose client reads is therefore not closed;
//! - the wait lasts at most [`PATIENCE`]. A watcher whose queue is then still more than half full may be
//!   closed by a later step;
//! - during the wait, all earlier changes are durable or are being written to the disk.

use std::sync::Arc;
use std::time::Duration;

use crate::group_commit::Before;
use crate::resource::CollectionId;
use crate::shared::Shared;
use crate::status::ApiError;

/// Maximum number of objects per step, which take about 5 ms.
const STEP_MAX: usize = 250;

/// Minimum capacity of a watcher's queue per object of a step, in events.
///
/// A deletion can cause two events, so one step fills at most half of the queue. The rest is for other
/// writers.
const STEPS_PER_QUEUE: usize = 4;

/// Maximum time for which a long write waits for slow watchers after each step.
///
/// The value is the `refreshPerSecond` in kube-apiserver's `time_budget.go`, with which the `Cacher` limits
/// its waits for blocked watchers.
const PATIENCE: Duration = Duration::from_millis(50);

/// Interval at which a waiting write checks whether watchers are still behind.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Progress of one long write.
pub(crate) struct LongWrite {
    shared: Arc<Shared>,
    before: Before,
    step: usize,
    /// Number of objects written in the current step.
    written: usize,
}

impl LongWrite {
    pub(crate) fn new(shared: &Arc<Shared>) -> LongWrite {
        LongWrite {
            shared: Arc::clone(shared),
            before: shared.before_write(),
            step: (shared.settings.watcher_buffer / STEPS_PER_QUEUE).clamp(1, STEP_MAX),
            written: 0,
        }
    }

    /// Counts one written object of a collection. After the last object of a step, waits until the writes are
    /// durable, and then pauses.
    ///
    /// The pause ends when every watcher's queue for the collection is at most half full, and at the latest
    /// after [`PATIENCE`].
    ///
    /// # Errors
    ///
    /// Returns an error if a batch of writes has failed since the start of the long write.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future undoes no write.
    pub(crate) async fn wrote(&mut self, collection: CollectionId) -> Result<(), ApiError> {
        self.written += 1;
        if self.written < self.step {
            return Ok(());
        }
        self.written = 0;
        self.shared.settled(self.before).await?;
        tokio::task::yield_now().await;
        let mut waited = Duration::ZERO;
        while waited < PATIENCE && self.shared.lock().caches[collection.0].is_behind() {
            tokio::time::sleep(CHECK_INTERVAL).await;
            waited += CHECK_INTERVAL;
        }
        Ok(())
    }
}

/// Work that consists of writes.
pub(crate) trait Work {
    /// Description of the work in a warning.
    const NAME: &'static str;

    /// Deletes the next object, and returns the object's collection. May also change other objects.
    ///
    /// Returns `None` if nothing is left to do now.
    fn step(&mut self) -> Option<CollectionId>;
}

/// Work that follows a write. It starts when [`run`](FollowUp::run) or [`complete`](FollowUp::complete) is called.
///
/// If the value is dropped before the work is complete, the drop completes the work without yielding.
pub(crate) struct FollowUp<W: Work> {
    shared: Arc<Shared>,
    work: W,
    is_done: bool,
}

impl<W: Work> FollowUp<W> {
    pub(crate) fn new(shared: &Arc<Shared>, work: W) -> FollowUp<W> {
        FollowUp {
            shared: Arc::clone(shared),
            work,
            is_done: false,
        }
    }

    /// Completes the work. Yields to other tasks after every few objects, as [`LongWrite`] does.
    ///
    /// # Errors
    ///
    /// Returns an error if a write could not be stored on the disk.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the drop completes the work without yielding.
    pub(crate) async fn run(mut self) -> Result<(), ApiError> {
        let mut long = LongWrite::new(&self.shared);
        while let Some(collection) = self.work.step() {
            long.wrote(collection).await?;
        }
        self.is_done = true;
        Ok(())
    }

    /// Completes the work without yielding.
    pub(crate) fn complete(mut self) {
        while self.work.step().is_some() {}
        self.is_done = true;
    }
}

impl<W: Work> Drop for FollowUp<W> {
    fn drop(&mut self) {
        if self.is_done || std::thread::panicking() {
            return;
        }
        let before = self.shared.before_write();
        while self.work.step().is_some() {}
        if let Err(cause) = self.shared.settle(before) {
            tracing::warn!(%cause, "failed to store the rest of {}", W::NAME);
        }
    }
}
