//! [`WarmStart`]: whether an informer started from a saved store, or the reason why it did not.

use std::{fmt, time::Duration};

use crate::object::ResourceVersion;

/// Result of the start of an informer with a saved store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarmStart {
    /// The cache started with the saved objects, and the watch resumed at their revision.
    #[non_exhaustive]
    Warm {
        /// Number of objects loaded, including broken ones.
        objects: usize,
        /// The saved revision of the first source.
        revision: ResourceVersion,
        /// Age of the saved store by the system clock; zero if that clock was set back.
        age: Duration,
    },
    /// The informer listed all objects, as without a saved store.
    Cold {
        /// Why the saved store was not loaded.
        reason: ColdReason,
    },
}

impl fmt::Display for WarmStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warm {
                objects,
                revision,
                age,
            } => write!(
                f,
                "warm: {objects} objects at revision {revision}, saved {age:?} ago"
            ),
            Self::Cold { reason } => write!(f, "cold: {reason}"),
        }
    }
}

/// The reason why a saved store was not loaded. It contains kinds, scopes and lines, never an object's
/// content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColdReason {
    /// No store is saved at the configured path.
    #[error("no store is saved there")]
    NoFile,
    /// The operating system reported an error when the file was read.
    #[error("the saved store can't be read: {0}")]
    Unreadable(String),
    /// The file is truncated, modified, or not a saved store.
    #[error("the saved store is damaged: {0}")]
    Damaged(String),
    /// The file has the format of another version of this library.
    #[error("the saved store has format {0}, which this version does not read")]
    OtherFormat(u64),
    /// The store was saved from another cluster.
    #[error("the store was saved from another server")]
    OtherServer,
    /// The store contains another kind, or metadata alone where whole objects are required.
    #[error("the saved store has other objects: {saved}")]
    OtherKind {
        /// Kind of the objects in the store.
        saved: String,
    },
    /// The store contains other objects of the kind: other namespaces or selectors.
    #[error("the saved store has {saved}, and the informer requests {wanted}")]
    OtherScope {
        /// The requests of the informer that saved the store.
        saved: String,
        /// The requests of the informer that tried to load the store.
        wanted: String,
    },
    /// The store was saved by another version of the program, whose type or transform may differ.
    #[error("the store was saved as version {saved:?}, and the program uses another version")]
    OtherVersion {
        /// The version of the program that saved the store.
        saved: String,
    },
    /// The store was saved with other pruned or kept fields.
    #[error("the saved objects were pruned of other fields")]
    OtherPruning,
    /// The server has not reached the saved revision: it was restored from a backup.
    #[error("the server has not reached revision {0}, up to which the store was saved")]
    WentBack(ResourceVersion),
    /// The transport does not identify its server or its objects.
    #[error("the transport does not implement ListerWatcher::server or ListerWatcher::collection")]
    Unidentified,
    /// The server does not report its identity. The informer requests the identity again at each save.
    #[error(
        "the identity of the server is unknown: {0}; grant `get` on namespace kube-system, or set SavedStore::server"
    )]
    ServerUnknown(String),
    /// The server rejects the list of one object, by which the informer checks the server's revision.
    #[error("the server rejects the requests of a warm start: {0}")]
    Refused(String),
    /// Secrets are not written to disk unless the program allows it.
    #[error("Secrets are neither saved nor loaded; to allow it, call SavedStore::allow_secrets")]
    SecretsRefused,
}
