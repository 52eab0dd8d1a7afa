//! Defines [`ReflectorStore`], the trait of a store to which a reflector delivers changes.
//!
//! The module implements the trait for bounded channels. It contains no cache.

use std::{future::Future, sync::Arc};

use tokio::sync::mpsc;

use super::Delta;
use crate::object::{Known, Object, ObjectName, SourceId};

/// A destination for the changes of a reflector, such as the queue of an informer, an indexer, or your own
/// store.
///
/// ```
/// use kube_informer::reflector::{Delta, ReflectorStore, StoreError};
///
/// /// Counts the changes.
/// struct Count(u64);
///
/// impl<K: Send + Sync + 'static> ReflectorStore<K> for Count {
///     async fn accept(&mut self, _: Delta<K>) -> Result<(), StoreError> {
///         self.0 += 1;
///         Ok(())
///     }
/// }
/// ```
#[doc(alias = "TransformingStore")]
#[doc(alias = "ReflectorBookmarkStore")]
#[doc(alias = "ResourceVersionUpdater")]
pub trait ReflectorStore<K>: Send + 'static {
    /// Accepts the next change.
    ///
    /// A reflector delivers `Added`, `Updated`, `Deleted`, a complete list as `ReplacedAll`, and `Bookmark`.
    ///
    /// The reflector waits for the future before it delivers the next change. A slow store therefore slows
    /// down the watch, and does not increase memory use.
    ///
    /// A complete list replaces all objects with the same [`SourceId`] as the list. The store must replace an
    /// object even if the revision is unchanged. A server that was restored from a backup may assign one
    /// revision to two states.
    ///
    /// # Errors
    /// After [`StoreError::Refused`], the reflector's last revision does not change, and the reflector lists
    /// again after a pause. After [`StoreError::Gone`], the reflector ends.
    ///
    /// # Cancel safety
    /// A reflector that ends drops the future, and delivers no further change.
    fn accept(&mut self, delta: Delta<K>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns `true` if the store has more than `limit` objects of `source`, and none of them has the name
    /// `object`. Objects that failed to decode count too.
    ///
    /// The reflector calls the method before it delivers an object of a watch event, with the limit
    /// [`Limits::objects`](crate::limits::Limits::objects). If the method returns `true`, the watch fails.
    ///
    /// The reflector also calls the method after a streaming list without objects, to check whether the store
    /// has any object of `source`. In this case, `limit` is 0 and `object` is an empty name. If the method
    /// returns `true`, the reflector sends a LIST request, to confirm that the server has no objects.
    ///
    /// The default implementation returns `false`, for a store that keeps no objects or has its own limit.
    fn is_full(&self, source: SourceId, object: &ObjectName, limit: usize) -> bool {
        let _ = (source, object, limit);
        false
    }

    /// Returns the current objects of the store, including those of other reflectors. Returns `None` if the
    /// store does not provide its objects, as in the default implementation.
    ///
    /// The reflector uses only objects that it has delivered itself. If a listed object has the name, uid and
    /// revision of a stored object, the reflector delivers the stored object, and does not decode the listed
    /// object. If the object of an event has an older revision than the stored object of the same name, the
    /// reflector concludes that the server was restored from a backup.
    fn known(&self) -> Option<Arc<dyn Known<K> + Send + Sync>> {
        None
    }

    /// Returns the first object whose name follows `name` in the order of names. If `name` is `None`, returns
    /// the first object of the store.
    ///
    /// The reflector calls this method to visit the stored objects, and may compress their content to save
    /// memory. The default implementation returns `None`.
    fn object_after(&self, name: Option<&ObjectName>) -> Option<Object<K>> {
        let _ = name;
        None
    }
}

/// The reason for which a [`ReflectorStore`] did not accept a change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store rejected this change. The text contains the reason.
    #[error("the store rejected the change: {0}")]
    Refused(String),
    /// The store accepts no more changes. The reflector ends.
    #[error("the store accepts no more changes")]
    Gone,
}

/// Sends the changes of one reflector to a bounded channel.
///
/// Use one channel per reflector. All standalone reflectors have the same source ID, so a list of one
/// reflector would delete the objects of another reflector. The capacity of the channel limits the number of
/// pending changes. A full channel slows down the watch. The reflector ends when the receiver is dropped.
impl<K: Send + Sync + 'static> ReflectorStore<K> for mpsc::Sender<Delta<K>> {
    async fn accept(&mut self, delta: Delta<K>) -> Result<(), StoreError> {
        self.send(delta).await.map_err(|_| StoreError::Gone)
    }
}
