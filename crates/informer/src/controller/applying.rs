//! Adds changes to an informer's queue, and applies batches of changes to the informer's store.
//!
//! Long lists and very large batches are applied on tokio's thread pool for blocking work, because they would
//! delay other tasks on the same thread. The informer waits for the result.
//!
//! Guarantees: batches are applied one after the other, and the changes of a batch become visible to readers
//! together.

use std::ops::{Deref, DerefMut};

use super::{Parts, Serving};
use crate::{
    indexer::{Applied, Change},
    metrics::Meter,
    object::Known,
    offload::{OFFLOADED_MIN, offload},
    queue::{BATCH, Batch, Queue},
    reflector::DeltaKind,
};

/// Holds the controller's queue or its store. [`Lent::lend`] moves the value to another thread for one call.
pub(crate) struct Lent<T>(Option<T>);

impl<T> Lent<T> {
    pub(crate) fn new(part: T) -> Self {
        Self(Some(part))
    }
}

const IS_BACK: &str = "the loop waits until it has the part back";

impl<T> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(IS_BACK)
    }
}

impl<T> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(IS_BACK)
    }
}

impl<T: Send + 'static> Lent<T> {
    /// Calls `work` with the queue or store that `self` contains, and returns the result of `work`.
    ///
    /// `work` runs on the thread pool for blocking work.
    async fn lend<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> R {
        let mut part = self.0.take().expect(IS_BACK);
        let (part, result) = offload(move || {
            let result = work(&mut part);
            (part, result)
        })
        .await;
        self.0 = Some(part);
        result
    }
}

impl<K: Send + Sync + 'static> Serving<K> {
    /// Applies a batch to the store, and returns the changes and index function errors.
    pub(super) async fn apply(&mut self, batch: Batch<K>) -> Applied<K> {
        if !is_long(&batch, self.parts.indexer.snapshot().len()) {
            return self.parts.indexer.apply(batch);
        }
        let indexer = &mut self.parts.indexer;
        indexer.lend(move |indexer| indexer.apply(batch)).await
    }

    /// Calls `take` to add changes to the queue, and returns the result of `take`.
    ///
    /// `objects` is the number of objects that `take` processes. If this number is at least
    /// [`OFFLOADED_MIN`], `take` runs on the thread pool for blocking work.
    pub(super) async fn queue_up<T: Send + 'static>(
        &mut self,
        objects: usize,
        take: impl FnOnce(&mut dyn Queue<K>, &dyn Known<K>) -> T + Send + 'static,
    ) -> T {
        let Parts { queue, indexer, .. } = &mut self.parts;
        if objects < OFFLOADED_MIN {
            return take(&mut ***queue, &**indexer);
        }
        let known = indexer.snapshot();
        queue.lend(move |queue| take(&mut **queue, &known)).await
    }
}

/// Reports `changes` to the metrics collector, if present, and returns the changes.
pub(super) async fn report_changes<K>(meter: Meter, changes: Vec<Change<K>>) -> Vec<Change<K>>
where
    K: Send + Sync + 'static,
{
    let is_long = meter.is_on() && changes.iter().any(is_long_list);
    let report = move || {
        for change in &changes {
            meter.told(|| change.told());
        }
        changes
    };
    if is_long {
        offload(report).await
    } else {
        report()
    }
}

fn is_long_list<K>(change: &Change<K>) -> bool {
    match change {
        Change::Replaced { changed, .. } => {
            changed.listed.len() + changed.gone.len() >= OFFLOADED_MIN
        }
        _ => false,
    }
}

/// Returns whether to apply a batch on the thread pool for blocking work.
fn is_long<K>(batch: &Batch<K>, stored: usize) -> bool {
    let mut deltas = batch.deltas.iter();
    let has_list = deltas.any(|delta| match &delta.kind {
        // The list is compared with all stored objects.
        DeltaKind::ReplacedAll { objects, .. } => objects.len().max(stored) >= OFFLOADED_MIN,
        _ => false,
    });
    has_list || batch.deltas.len() > BATCH
}
