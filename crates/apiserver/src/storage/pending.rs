//! Holds the accepted writes that are not on the disk yet.
//!
//! Guarantees:
//! - a writer finds the newest accepted state of an object in this module, while readers and watchers see
//!   only durable states;
//! - writes become durable in the order of their revisions. Each batch becomes durable completely or not at
//!   all;
//! - if a batch fails, all later accepted writes fail too, because they may depend on the writes of this
//!   batch.
//!
//! Without a data directory this module holds no writes. The module does not write to the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;

use super::Entry;
use crate::resource::CollectionId;
use crate::status::ApiError;

/// One write: the new state of an object, or the removal of the object.
#[derive(Clone)]
pub(crate) struct Write {
    pub(crate) revision: u64,
    pub(crate) collection: CollectionId,
    pub(crate) key: Arc<str>,
    pub(crate) new: Option<Arc<Entry>>,
}

/// The result of a batch, or `None` while the result is not known.
pub(crate) type Outcome = Option<Result<(), ApiError>>;

/// A receiver of the result of one batch, which is set once.
pub(crate) type Ticket = watch::Receiver<Outcome>;

/// Accepted writes that are stored in one transaction, and the channel that reports the transaction's result.
pub(crate) struct Batch {
    pub(crate) writes: Vec<Write>,
    pub(crate) outcome: watch::Sender<Outcome>,
    /// Whether a caller of [`Pending::ticket`] is already responsible for writing the batch to the disk.
    called_for: bool,
}

/// The newest accepted state of an object, if this state is not durable yet.
pub(crate) struct Accepted {
    revision: u64,
    /// The new state of the object, or `None` for a removal.
    pub(crate) entry: Option<Arc<Entry>>,
}

/// All accepted writes that are not durable yet, and the failures of earlier writes.
#[derive(Default)]
pub(crate) struct Pending {
    latest: BTreeMap<CollectionId, BTreeMap<Arc<str>, Accepted>>,
    /// Revision of the last accepted write.
    ///
    /// The value is 0 after the server starts, after a batch fails, and after the server is restored to an
    /// earlier revision. The store alone then determines the next revision.
    revision: u64,
    /// The batch to which new writes are added.
    ///
    /// `None` if all accepted writes are durable or are being written to the disk.
    open: Option<Batch>,
    /// Receives the result of the batch that is being written to the disk.
    in_flight: Option<Ticket>,
    /// Objects that the next batch must write again, because their state on the disk is uncertain.
    doubtful: BTreeSet<(CollectionId, Arc<str>)>,
    failures: u64,
    last_failure: Option<ApiError>,
}

impl Pending {
    pub(crate) fn get(&self, collection: CollectionId, key: &str) -> Option<&Accepted> {
        self.latest.get(&collection)?.get(key)
    }

    /// Returns the accepted object states that are not durable yet, ordered by key.
    ///
    /// The result contains only objects whose keys start with `prefix`.
    pub(crate) fn below<'a>(
        &'a self,
        collection: CollectionId,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Accepted)> {
        let objects = self.latest.get(&collection).into_iter().flatten();
        objects.filter(move |(key, _)| key.starts_with(prefix))
    }

    /// Returns the revision of the last write that was passed to [`Pending::stage`].
    ///
    /// Returns 0 if there was no such write since the server started or since the last [`Pending::fail`].
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns how often accepted writes were dropped, for example because a batch failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures
    }

    pub(crate) fn last_failure(&self) -> Option<&ApiError> {
        self.last_failure.as_ref()
    }

    pub(crate) fn stage(&mut self, write: Write) {
        self.revision = write.revision;
        let objects = self.latest.entry(write.collection).or_default();
        let accepted = Accepted {
            revision: write.revision,
            entry: write.new.clone(),
        };
        objects.insert(Arc::clone(&write.key), accepted);
        let batch = self.open.get_or_insert_with(|| Batch {
            writes: Vec::new(),
            outcome: watch::Sender::new(None),
            called_for: false,
        });
        batch.writes.push(write);
    }

    /// Returns a receiver for the newest [`Batch`]'s result, and whether the caller must store the batch.
    ///
    /// Only the first caller that receives a ticket for a batch must store the batch. Returns `None` if all
    /// accepted writes are durable.
    pub(crate) fn ticket(&mut self) -> Option<(Ticket, bool)> {
        if let Some(batch) = &mut self.open {
            let first = !std::mem::replace(&mut batch.called_for, true);
            return Some((batch.outcome.subscribe(), first));
        }
        Some((self.in_flight.clone()?, false))
    }

    /// Removes and returns the batch of new writes. Later writes are added to a new batch.
    ///
    /// The caller must write the batch to the disk, and then call [`Pending::written`] or [`Pending::fail`].
    pub(crate) fn take(&mut self) -> Option<Batch> {
        let batch = self.open.take()?;
        self.in_flight = Some(batch.outcome.subscribe());
        Some(batch)
    }

    pub(crate) fn doubtful(&self) -> &BTreeSet<(CollectionId, Arc<str>)> {
        &self.doubtful
    }

    /// Removes `write`, which has become visible to readers, from the pending writes.
    pub(crate) fn published(&mut self, write: &Write) {
        let Some(objects) = self.latest.get_mut(&write.collection) else {
            return;
        };
        if objects
            .get(&write.key)
            .is_some_and(|accepted| accepted.revision == write.revision)
        {
            objects.remove(&write.key);
        }
    }

    /// Records that the batch which [`Pending::take`] returned is on the disk.
    pub(crate) fn written(&mut self) {
        self.in_flight = None;
        self.doubtful.clear();
    }

    /// Drops all accepted writes that are not durable.
    ///
    /// Sends `error` as the result of the batch of new writes, if there is one. If [`Pending::take`] has
    /// already returned a batch, the caller of `take` must send the result of that batch.
    ///
    /// `touched` contains the objects whose state on the disk may be wrong. The next write to the disk
    /// corrects them.
    pub(crate) fn fail(
        &mut self,
        touched: impl IntoIterator<Item = (CollectionId, Arc<str>)>,
        error: &ApiError,
    ) {
        self.doubtful.extend(touched);
        self.in_flight = None;
        self.latest.clear();
        self.revision = 0;
        self.failures += 1;
        self.last_failure = Some(error.clone());
        if let Some(open) = self.open.take() {
            open.outcome.send_replace(Some(Err(error.clone())));
        }
    }
}
