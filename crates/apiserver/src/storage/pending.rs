//! Writes that were accepted but are not on the disk yet.
//!
//! Guarantees:
//! - a writer finds the newest accepted state of an object here; readers and watchers see what is durable and nothing else;
//! - writes become durable in the order of their revisions, a batch at a time, and a batch wholly or not at all;
//! - when a batch fails, everything accepted since fails with it, for it was computed from what is not there.
//!
//! Without a data directory nothing is ever pending.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;

use super::Entry;
use crate::resource::CollectionId;
use crate::status::ApiError;

/// One object's next state.
#[derive(Clone)]
pub(crate) struct Write {
    pub(crate) revision: u64,
    pub(crate) collection: CollectionId,
    pub(crate) key: Arc<str>,
    /// `None` removes it.
    pub(crate) new: Option<Arc<Entry>>,
}

/// What became of a batch; `None` until that is known.
pub(crate) type Outcome = Option<Result<(), ApiError>>;

/// Tells what becomes of a batch.
pub(crate) type Ticket = watch::Receiver<Outcome>;

/// Writes that go to the disk together.
pub(crate) struct Batch {
    pub(crate) writes: Vec<Write>,
    pub(crate) outcome: watch::Sender<Outcome>,
    /// Whether somebody has set out to write it.
    called_for: bool,
}

/// The newest state of an object that is not durable yet.
pub(crate) struct Accepted {
    revision: u64,
    /// `None` if it is to be removed.
    pub(crate) entry: Option<Arc<Entry>>,
}

/// Everything accepted and not yet durable.
#[derive(Default)]
pub(crate) struct Pending {
    latest: BTreeMap<CollectionId, BTreeMap<Arc<str>, Accepted>>,
    /// The last revision given to a write here; 0 if there is none.
    revision: u64,
    /// Still takes writes.
    open: Option<Batch>,
    /// The outcome of the batch that is being written.
    in_flight: Option<Ticket>,
    /// Objects of which the disk may have something else than the store; the next batch sets them right.
    doubtful: BTreeSet<(CollectionId, Arc<str>)>,
    failures: u64,
    last_failure: Option<ApiError>,
}

impl Pending {
    /// What was accepted last of an object, if any of it is pending.
    pub(crate) fn get(&self, collection: CollectionId, key: &str) -> Option<&Accepted> {
        self.latest.get(&collection)?.get(key)
    }

    /// What was accepted last of the objects whose keys start so, in order.
    pub(crate) fn below<'a>(
        &'a self,
        collection: CollectionId,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Accepted)> {
        let objects = self.latest.get(&collection).into_iter().flatten();
        objects.filter(move |(key, _)| key.starts_with(prefix))
    }

    /// The last revision given away, if any is pending.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// How many batches have failed so far.
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

    /// Tells when everything accepted so far is durable, and whether the caller has to see to it; `None` if it is.
    pub(crate) fn ticket(&mut self) -> Option<(Ticket, bool)> {
        if let Some(batch) = &mut self.open {
            let first = !std::mem::replace(&mut batch.called_for, true);
            return Some((batch.outcome.subscribe(), first));
        }
        Some((self.in_flight.clone()?, false))
    }

    /// Takes the open batch to write it; the caller ends that with [`Pending::written`] or [`Pending::fail`].
    pub(crate) fn take(&mut self) -> Option<Batch> {
        let batch = self.open.take()?;
        self.in_flight = Some(batch.outcome.subscribe());
        Some(batch)
    }

    /// The objects of which the disk may have something else than the store.
    pub(crate) fn doubtful(&self) -> &BTreeSet<(CollectionId, Arc<str>)> {
        &self.doubtful
    }

    /// A write has become visible to all.
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

    /// The taken batch is on the disk.
    pub(crate) fn written(&mut self) {
        self.in_flight = None;
        self.doubtful.clear();
    }

    /// Forgets all that was accepted; what the disk has of these objects is in doubt.
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
