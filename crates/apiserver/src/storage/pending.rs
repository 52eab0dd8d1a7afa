//! Accepted writes that are not on the disk yet.
//!
//! Guarantees:
//! - a writer reads the newest accepted state of an object here; readers and watchers see only durable states;
//! - writes become durable in the order of their revisions, one batch at a time, and each batch completely or not at
//!   all;
//! - if a batch fails, all later accepted writes fail too, because they are based on it.
//!
//! Without a data directory no write is ever pending.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;

use super::Entry;
use crate::resource::CollectionId;
use crate::status::ApiError;

/// One write: the next state of one object, or its removal.
#[derive(Clone)]
pub(crate) struct Write {
    pub(crate) revision: u64,
    pub(crate) collection: CollectionId,
    pub(crate) key: Arc<str>,
    /// `None` removes the object.
    pub(crate) new: Option<Arc<Entry>>,
}

/// Result of a batch; `None` until it is known.
pub(crate) type Outcome = Option<Result<(), ApiError>>;

/// Receives the result of a batch when the batch has been stored or has failed.
pub(crate) type Ticket = watch::Receiver<Outcome>;

/// Writes that are stored in one transaction.
pub(crate) struct Batch {
    pub(crate) writes: Vec<Write>,
    pub(crate) outcome: watch::Sender<Outcome>,
    /// Whether a caller is responsible for storing the batch.
    called_for: bool,
}

/// The newest accepted state of an object that is not durable yet.
pub(crate) struct Accepted {
    revision: u64,
    /// `None` if the object is to be removed.
    pub(crate) entry: Option<Arc<Entry>>,
}

/// All writes that were accepted and are not durable yet.
#[derive(Default)]
pub(crate) struct Pending {
    latest: BTreeMap<CollectionId, BTreeMap<Arc<str>, Accepted>>,
    /// The last revision assigned to a pending write; 0 if there is none.
    revision: u64,
    /// The batch to which new writes are added.
    open: Option<Batch>,
    /// The result of the batch that is being written.
    in_flight: Option<Ticket>,
    /// Objects whose state on the disk may differ from the store; the next batch writes them again.
    doubtful: BTreeSet<(CollectionId, Arc<str>)>,
    failures: u64,
    last_failure: Option<ApiError>,
}

impl Pending {
    /// Returns the last accepted state of an object, if it is pending.
    pub(crate) fn get(&self, collection: CollectionId, key: &str) -> Option<&Accepted> {
        self.latest.get(&collection)?.get(key)
    }

    /// Returns the last accepted states of the objects whose keys have this prefix, in order.
    pub(crate) fn below<'a>(
        &'a self,
        collection: CollectionId,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Accepted)> {
        let objects = self.latest.get(&collection).into_iter().flatten();
        objects.filter(move |(key, _)| key.starts_with(prefix))
    }

    /// Returns the last revision assigned to a pending write; 0 if no write is pending.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the number of failed batches.
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

    /// Returns a ticket for everything accepted so far, and whether the caller must write the batch.
    ///
    /// Returns `None` if everything is durable.
    pub(crate) fn ticket(&mut self) -> Option<(Ticket, bool)> {
        if let Some(batch) = &mut self.open {
            let first = !std::mem::replace(&mut batch.called_for, true);
            return Some((batch.outcome.subscribe(), first));
        }
        Some((self.in_flight.clone()?, false))
    }

    /// Takes the open batch for writing.
    ///
    /// The caller must call [`Pending::written`] or [`Pending::fail`] afterwards.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        let batch = self.open.take()?;
        self.in_flight = Some(batch.outcome.subscribe());
        Some(batch)
    }

    /// Returns the objects whose state on the disk may differ from the store.
    pub(crate) fn doubtful(&self) -> &BTreeSet<(CollectionId, Arc<str>)> {
        &self.doubtful
    }

    /// Removes a write that became visible to readers.
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

    /// Records that the taken batch is on the disk.
    pub(crate) fn written(&mut self) {
        self.in_flight = None;
        self.doubtful.clear();
    }

    /// Drops all accepted writes after a failure; the state of the `touched` objects on the disk is unknown.
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
