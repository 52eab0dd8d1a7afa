//! [`ReflectorStore`]: the destination of a reflector's changes.

use std::{future::Future, sync::Arc};

use tokio::sync::mpsc;

use super::Delta;
use crate::object::{Known, Object, ObjectName, SourceId};

/// Receives the changes of a reflector: the queue of an informer, an indexer, or a store of your own.
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
    /// The reflector continues when the future completes, so a slow store slows down the watch and does not
    /// increase memory use.
    ///
    /// A list replaces all objects of its source, including those at a revision that the store already has: a
    /// server that was restored from a backup assigns the same revisions to other states. An
    /// [`IndexerWriter`](crate::indexer::IndexerWriter) detects this, and otherwise keeps the object that it has.
    ///
    /// # Errors
    /// After [`StoreError::Refused`], the reflector's revision does not change, and the reflector lists again
    /// after a pause. After [`StoreError::Gone`], the reflector ends.
    ///
    /// # Cancel safety
    /// The future is dropped when the reflector ends. The store receives no change after that.
    fn accept(&mut self, delta: Delta<K>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns whether the store holds more than `limit` objects of a source, and none with this name.
    ///
    /// Broken objects count too. If this returns `true`, a watch that sends an object of this name fails.
    /// `limit` is
    /// [`Limits::objects`](crate::limits::Limits::objects). With a limit of 0 and an empty name, the method
    /// returns whether the store has any object of the source. In that case, a LIST must confirm a streaming list
    /// without objects.
    ///
    /// The default implementation returns `false`, for a store that keeps no objects or has its own limit.
    fn is_full(&self, source: SourceId, object: &ObjectName, limit: usize) -> bool {
        let _ = (source, object, limit);
        false
    }

    /// Returns the current objects of all sources.
    ///
    /// If a list contains an object with the revision and uid of a returned object, the reflector does not
    /// decode it, and delivers the returned object instead. An event older than the returned object shows
    /// that the server was restored from a backup. The default implementation returns `None`.
    fn known(&self) -> Option<Arc<dyn Known<K> + Send + Sync>> {
        None
    }

    /// Returns the first object after this name, in the order of names, or the first object for `None`.
    ///
    /// The reflector may convert the returned objects to a form that needs less memory. The default implementation
    /// returns `None`.
    fn object_after(&self, name: Option<&ObjectName>) -> Option<Object<K>> {
        let _ = name;
        None
    }
}

/// Error of a store that does not accept a change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store rejects this change, for the reason in the text.
    #[error("the store rejected the change: {0}")]
    Refused(String),
    /// The store accepts no more changes. The reflector ends.
    #[error("the store accepts no more changes")]
    Gone,
}

/// Sends the changes of one reflector to a bounded channel.
///
/// Use one channel per reflector: all standalone reflectors have the same source ID, so a list of one would delete
/// the objects of another. The capacity limits the number of pending changes; a full channel slows down the watch.
/// The reflector ends when the receiver is dropped.
impl<K: Send + Sync + 'static> ReflectorStore<K> for mpsc::Sender<Delta<K>> {
    async fn accept(&mut self, delta: Delta<K>) -> Result<(), StoreError> {
        self.send(delta).await.map_err(|_| StoreError::Gone)
    }
}
