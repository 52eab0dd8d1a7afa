//! Where a reflector puts what it hears.

use std::{future::Future, sync::Arc};

use tokio::sync::mpsc;

use super::Delta;
use crate::object::{Known, Object, ObjectName, SourceId};

/// What stands behind a reflector: an informer's queue, an indexer, or something of your own.
///
/// ```
/// use kube_informer::reflector::{Delta, ReflectorStore, StoreError};
///
/// /// Counts what comes.
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
    /// Takes the next change: `Added`, `Updated`, `Deleted`, a whole list as `ReplacedAll`, or a
    /// `Bookmark`. The reflector goes on when the future is ready, so a store that takes its time
    /// slows the watch and not the memory.
    ///
    /// A list is taken as it is, also where it has an object at a revision that is known: a server that
    /// was restored from a backup gives revisions out again, to other states. An
    /// [`IndexerWriter`](crate::indexer::IndexerWriter) knows when that may be, and keeps what it has
    /// otherwise.
    ///
    /// # Errors
    /// Only what has been accepted counts: the reflector's revision stays where it is, and it lists
    /// again after a pause, or ends if the store is gone.
    ///
    /// # Cancel safety
    /// The future is dropped when the reflector ends. Nothing comes after that.
    fn accept(&mut self, delta: Delta<K>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Whether it holds more than `limit` objects of a source, usable or not, and not this one. A watch
    /// that tells of another one then has failed; `limit` is
    /// [`Limits::objects`](crate::limits::Limits::objects). With a limit of 0 and the empty name it says
    /// whether there is any object: then a streaming list without objects is confirmed by a list first.
    /// By default it never does, for a store that keeps nothing or has a limit of its own.
    fn is_full(&self, source: SourceId, object: &ObjectName, limit: usize) -> bool {
        let _ = (source, object, limit);
        false
    }

    /// What it holds now, of all its sources. What a list brings again in the very state that is known here,
    /// by revision and uid, is not decoded, and given back as it was; and an event that is older than its
    /// object here shows that the server has gone back. By default nothing is known.
    fn known(&self) -> Option<Arc<dyn Known<K> + Send + Sync>> {
        None
    }

    /// The first object that it holds behind this name, in the order of names, or the very first. What
    /// it shows so may be kept in less memory. By default it shows nothing.
    fn object_after(&self, name: Option<&ObjectName>) -> Option<Object<K>> {
        let _ = name;
        None
    }
}

/// Why a store did not take a change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It can't take this one; the text says why.
    #[error("the store refused it: {0}")]
    Refused(String),
    /// Nobody wants anything any more: the reflector ends.
    #[error("the store is gone")]
    Gone,
}

/// One reflector per channel: each that stands alone speaks as the first source, and the list of one
/// would delete what the other brought. A bounded channel: its capacity is what may be on its way before the watch is slowed, and the
/// reflector ends when the receiver is gone.
impl<K: Send + Sync + 'static> ReflectorStore<K> for mpsc::Sender<Delta<K>> {
    async fn accept(&mut self, delta: Delta<K>) -> Result<(), StoreError> {
        self.send(delta).await.map_err(|_| StoreError::Gone)
    }
}
