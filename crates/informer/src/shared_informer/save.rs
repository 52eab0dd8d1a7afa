//! Saves an informer's cache when the program requests a save. Periodic saves do not use this module.

use super::SharedInformer;
use crate::{
    controller::settled_snapshot,
    warm_start::{SaveError, Saved},
};

impl<K> SharedInformer<K>
where
    K: kube_core::Resource + Send + Sync + 'static,
{
    /// Saves a consistent snapshot of the cache for the next [warm start](crate::warm_start).
    ///
    /// The informer continues to work during the save. If another save is in progress, the method waits for
    /// its end. With a queue that reorders objects, such as [`DeltaFifo`](crate::queue::DeltaFifo), the
    /// method first waits until the queue is empty. The save fails if a handler with a full buffer prevents
    /// the queue from becoming empty.
    ///
    /// # Errors
    /// Returns a [`SaveError`] if the cache was not saved. The previously saved store is then unchanged.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the save, unless the save was complete.
    pub async fn save(&self) -> Result<Saved, SaveError> {
        let snapshotter = self
            .shared
            .snapshotter
            .as_ref()
            .ok_or(SaveError::NoSavedStore)?;
        let snapshot = settled_snapshot(&self.shared.commands).await?;
        snapshotter.save(snapshot).await
    }
}
