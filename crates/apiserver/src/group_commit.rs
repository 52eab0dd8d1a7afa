//! How writes become durable, where there is a data directory: many at a time.
//!
//! Guarantees:
//! - a write is seen by nobody, and is not answered, before it is on the disk;
//! - writes that arrive while the disk is busy go to it together, so their number per second is not bounded by how often it can sync;
//! - no thread is kept for it: inside a runtime the disk is written to on its pool for blocking work, elsewhere by the caller;
//! - a write whose caller has gone is stored all the same.
//!
//! Without a data directory all of this is nothing: a write is seen when it is made.

use std::sync::Arc;

use crate::shared::{Shared, State};
use crate::status::ApiError;
use crate::storage::{Batch, Entry, Ticket, Write};

/// Taken before a write, so that a failure that undoes it can't be overlooked.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    failures: u64,
}

/// Writes what is pending when it is dropped: also if the runtime ends before it came to its turn.
struct FlushOnDrop(Option<Arc<Shared>>);

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        let Some(shared) = self.0.take() else { return };
        let flushed = shared.flush();
        // Before the answers go out: whoever has the last of them may drop the server and open its directory again.
        drop(shared);
        if let Some(flushed) = flushed {
            flushed.tell();
        }
    }
}

/// A batch whose outcome is settled and not yet told.
#[must_use = "somebody waits for it"]
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
    /// Starts a write; what it accepts is awaited by [`Shared::settled`] or [`Shared::settle`].
    pub(crate) fn before_write(&self) -> Before {
        Before {
            failures: self.lock().pending.failures(),
        }
    }

    /// Waits until everything accepted so far is durable and visible.
    ///
    /// # Cancel safety
    ///
    /// The first poll sets the writing off; dropped later, it goes on.
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

    /// The same for callers that can't wait: it blocks as long as the disk takes.
    pub(crate) fn settle(&self, before: Before) -> Result<(), ApiError> {
        if self.ticket(before)?.is_none() {
            return Ok(());
        }
        // Whoever has the disk has taken this call's batch with it, or leaves it to this call.
        if let Some(flushed) = self.flush() {
            flushed.tell();
        }
        Shared::check(before, &self.lock())
    }

    /// Fails if a batch has failed since: perhaps another's, before this call's write was accepted, but nobody can tell any more.
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

    /// Puts the store back to an older revision by `change`, between two batches; writes that were accepted and not stored fail.
    pub(crate) fn go_back(
        &self,
        revision: u64,
        change: impl FnOnce(&mut State) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let Some(disk) = self.disk.get() else {
            return change(&mut self.lock());
        };
        let mut disk = disk.lock();
        let mut state = self.lock();
        let undone = state.storage.keys_after(revision);
        change(&mut state)?;
        let error = ApiError::not_stored("the store was put back to an older revision");
        state.pending.fail(undone, &error);
        let corrections = state.corrections();
        drop(state);
        match disk.write(&corrections, revision) {
            Ok(()) => self.lock().pending.written(),
            // The next write tries again.
            Err(cause) => tracing::error!(%cause, "the older revision could not be stored"),
        }
        Ok(())
    }

    /// Writes everything that is pending, unless another call has just done it.
    fn flush(&self) -> Option<Flushed> {
        let mut disk = self.disk.get()?.lock();
        let mut state = self.lock();
        let batch = state.pending.take()?;
        let mut writes = state.corrections();
        drop(state);
        writes.extend(batch.writes.iter().cloned());
        let revision = writes.last().map_or(0, |last| last.revision);
        let outcome = disk
            .write(&writes, revision)
            .map_err(|cause| ApiError::not_stored(&cause));
        match &outcome {
            Ok(()) => {
                for write in &batch.writes {
                    // One lock each, so that readers get their turn within a large batch.
                    let mut state = self.lock();
                    self.publish(&mut state, write.collection, &write.key, write.new.clone());
                    state.pending.published(write);
                }
                self.lock().pending.written();
            }
            Err(error) => {
                tracing::error!(%error, "writes could not be stored");
                let touched = batch.writes.iter();
                let touched = touched.map(|write| (write.collection, Arc::clone(&write.key)));
                self.lock().pending.fail(touched, error);
            }
        }
        Some(Flushed { batch, outcome })
    }
}

impl State {
    /// Says anew what is stored of the objects that a failed batch left in doubt.
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
