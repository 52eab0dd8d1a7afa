//! Saving an informer's store on demand.

use tokio::sync::oneshot;

use super::SharedInformer;
use crate::{
    controller::Command,
    warm_start::{SaveError, Saved},
};

impl<K> SharedInformer<K>
where
    K: kube_core::Resource + Send + Sync + 'static,
{
    /// Saves what is in the cache now, as one moment, for the next [warm start](crate::warm_start). The
    /// informer goes on meanwhile; of two saves at a time the second one waits. With a queue that hands out
    /// objects in another order than the server's, such as [`DeltaFifo`](crate::queue::DeltaFifo), it is
    /// the next moment in which nothing waits there.
    ///
    /// # Errors
    /// A [`SaveError`]; what was saved before is untouched then.
    ///
    /// # Cancel safety
    /// Dropping the future gives the save up, unless it was complete.
    pub async fn save(&self) -> Result<Saved, SaveError> {
        let snapshotter = self
            .shared
            .snapshotter
            .as_ref()
            .ok_or(SaveError::NoSavedStore)?;
        let (reply, moment) = oneshot::channel();
        let asked = self.command(Command::Moment(reply));
        asked.map_err(|_| SaveError::Stopped)?;
        let moment = moment.await.unwrap_or(Err(SaveError::Stopped))?;
        snapshotter.save(moment).await
    }
}
