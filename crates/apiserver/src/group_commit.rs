//! Writes the accepted changes of a server to its data directory, in batches (group commit).
//!
//! Guarantees:
//! - a write is neither visible nor acknowledged before it is on the disk;
//! - writes that arrive while a batch is being stored form the next batch, and share one disk
//!   sync;
//! - there is no dedicated thread: the blocking pool of the tokio runtime writes to the disk, or the calling
//!   thread if there is no runtime;
//! - an accepted write is stored even if its caller drops the future.
//!
//! Without a data directory, a write is visible immediately.

use std::sync::Arc;

use crate::shared::{Shared, State};
use crate::status::ApiError;
use crate::storage::{Batch, Entry, Ticket, Write};

/// The number of failed batches, recorded before a write. If the number is higher after the write, the write
/// may have failed.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    failures: u64,
}

/// Guard that writes the pending batch to the disk when dropped.
///
/// A blocking task can own the guard. If the runtime shuts down before it runs the task, the batch is still
/// written.
struct FlushOnDrop(Option<Arc<Shared>>);

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        let Some(shared) = self.0.take() else { return };
        let flushed = shared.flush();
        // Dropped before the callers receive the result: after the last response, a caller may drop the
        // server and reopen its data directory.
        drop(shared);
        if let Some(flushed) = flushed {
            flushed.tell();
        }
    }
}

/// A batch and the result of its write. The waiting callers have not yet received this result.
#[must_use = "the callers wait for the result"]
struct Flushed {
    batch: Batch,
    outcome: Result<(), ApiError>,
}

impl Flushed {
    fn tell(self) {
        self.batch.outcome.send_replace(Some(self.outcome));
    }
}

impl Shared {
    /// Returns the number of batches that have failed so far.
    pub(crate) fn before_write(&self) -> Before {
        Before {
            failures: self.lock().pending.failures(),
        }
    }

    /// Waits until all writes that the server has accepted are durable and visible.
    ///
    /// # Errors
    ///
    /// Returns an error if a batch of writes has failed since `before`.
    ///
    /// # Cancel safety
    ///
    /// The server stores the writes even if the future is dropped after its first poll. If the future is
    /// never polled, the server stores the writes together with the next write.
    pub(crate) async fn settled(self: &Arc<Shared>, before: Before) -> Result<(), ApiError> {
        let Some((mut ticket, first)) = self.ticket(before)? else {
            return Ok(());
        };
        if first {
            let flush = FlushOnDrop(Some(Arc::clone(self)));
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(move || drop(flush))),
                Err(_) => drop(flush),
            }
        }
        match ticket.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            Err(_) => Err(ApiError::not_stored("the data directory was closed")),
        }
    }

    /// Blocks until all writes that the server has accepted are durable and visible.
    ///
    /// # Errors
    ///
    /// Returns an error if a batch of writes has failed since `before`.
    pub(crate) fn settle(&self, before: Before) -> Result<(), ApiError> {
        if self.ticket(before)?.is_none() {
            return Ok(());
        }
        // The current owner of the disk has either written this call's batch or leaves it to this call.
        if let Some(flushed) = self.flush() {
            flushed.tell();
        }
        Shared::check(before, &self.lock())
    }

    /// Returns an error if any batch of writes has failed since `before`.
    fn check(before: Before, state: &State) -> Result<(), ApiError> {
        if state.pending.failures() == before.failures {
            return Ok(());
        }
        let error = state.pending.last_failure().cloned();
        Err(error.unwrap_or_else(|| ApiError::not_stored("an earlier write failed")))
    }

    fn ticket(&self, before: Before) -> Result<Option<(Ticket, bool)>, ApiError> {
        let mut state = self.lock();
        Shared::check(before, &state)?;
        Ok(state.pending.ticket())
    }

    /// Restores the store to the older `revision`, in memory and in the data directory, if there is one.
    ///
    /// The closure `change` restores the state in memory. This method writes the restored state to the disk.
    ///
    /// Accepted writes that are not yet on the disk fail. A failure to write the restored state to the disk
    /// is not an error. The next write to the disk then contains the restored state too.
    ///
    /// # Errors
    ///
    /// Returns the error of `change`. In this case, nothing is written.
    pub(crate) fn go_back(
        &self,
        revision: u64,
        change: impl FnOnce(&mut State) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let Some(disk) = self.disk.get() else {
            return change(&mut self.lock());
        };
        // While the disk is locked, no batch is written.
        let mut disk = disk.lock();
        let mut state = self.lock();
        let undone = state.storage.keys_after(revision);
        change(&mut state)?;
        let error = ApiError::not_stored("the store was restored to an older revision");
        state.fail_pending(undone, &error);
        let corrections = state.corrections();
        drop(state);
        match disk.write(&corrections, revision, &self.registry()) {
            Ok(()) => self.lock().pending.written(),
            // The next write retries.
            Err(cause) => {
                tracing::error!(%cause, "failed to store the older revision; the next write retries");
            }
        }
        Ok(())
    }

    /// Writes the pending batch, if any, to the disk, and returns the batch with the result.
    fn flush(&self) -> Option<Flushed> {
        let mut disk = self.disk.get()?.lock();
        let mut state = self.lock();
        let batch = state.pending.take()?;
        let mut writes = state.corrections();
        drop(state);
        writes.extend(batch.writes.iter().cloned());
        let revision = writes.last().map_or(0, |last| last.revision);
        let outcome = disk
            .write(&writes, revision, &self.registry())
            .map_err(|cause| ApiError::not_stored(&cause));
        match &outcome {
            Ok(()) => {
                for write in &batch.writes {
                    // One lock per write, so that readers can run during a large batch.
                    let mut state = self.lock();
                    self.publish(&mut state, write);
                    state.pending.published(write);
                }
                self.lock().pending.written();
            }
            Err(error) => {
                tracing::error!(%error, "failed to store writes");
                let touched = batch.writes.iter();
                let touched = touched.map(|write| (write.collection, Arc::clone(&write.key)));
                self.lock().fail_pending(touched, error);
            }
        }
        Some(Flushed { batch, outcome })
    }
}

impl State {
    /// Returns a write for each object whose state on the disk may be wrong, for example after a failed
    /// batch.
    ///
    /// The write contains the state that the object has in memory.
    fn corrections(&self) -> Vec<Write> {
        let doubtful = self.pending.doubtful().iter();
        let stored = |(collection, key): &(_, Arc<str>)| Write {
            revision: self.storage.revision(),
            collection: *collection,
            key: Arc::clone(key),
            new: self.storage.get(*collection, key).map(Arc::<Entry>::clone),
        };
        doubtful.map(stored).collect()
    }
}

#[cfg(test)]
#[cfg(feature = "persistence")]
mod tests;
