//! Defines [`WarmStart`], the result of loading a saved store when an informer starts.
//!
//! A saved store is a file with the objects and revisions of an earlier cache. The module loads no store.

use std::{fmt, time::Duration};

use crate::object::ResourceVersion;

/// Result of loading a saved store when an informer starts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarmStart {
    /// The cache was filled with the saved objects, and the watch resumes from the saved revision.
    #[non_exhaustive]
    Warm {
        /// Number of objects loaded into the cache. An object that can't be decoded is loaded without its
        /// content, and is counted too.
        objects: usize,
        /// The saved revision. If the informer watches several collections, such as the pods of two
        /// namespaces, this is the revision of the first collection in
        /// [`Status::sources`](super::Status::sources).
        revision: ResourceVersion,
        /// Age of the saved store by the system clock; zero if the clock was set back.
        age: Duration,
    },
    /// The informer listed all objects, as an informer without a saved store does.
    Cold {
        /// Reason why the saved store was not loaded.
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

/// The reason why a saved store was not loaded. The reason may contain kinds, namespaces, selectors and line
/// numbers, but never the content of an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColdReason {
    /// No store is saved at the configured path.
    #[error("no store is saved there")]
    NoFile,
    /// The operating system reported an error when the file was read. The value is the text of the error.
    #[error("the saved store can't be read: {0}")]
    Unreadable(String),
    /// The file is truncated, modified, or not a saved store. The text describes the first defect.
    #[error("the saved store is damaged: {0}")]
    Damaged(String),
    /// The file has the format of another version of this library. The number is the version of the format.
    #[error("the saved store has format {0}, which this version does not read")]
    OtherFormat(u64),
    /// The store was saved from another cluster.
    #[error("the store was saved from another server")]
    OtherServer,
    /// The store contains objects of another kind. Whole objects and objects with only metadata count as
    /// different kinds.
    #[error("the saved store has other objects: {saved}")]
    OtherKind {
        /// Kind of the objects in the store.
        saved: String,
    },
    /// The store contains objects of the same kind, but from other namespaces or with other selectors.
    #[error("the saved store has {saved}, and the informer requests {wanted}")]
    OtherScope {
        /// Namespaces and selectors of the informer that saved the store.
        saved: String,
        /// Namespaces and selectors of the informer that tried to load the store.
        wanted: String,
    },
    /// The store was saved by another version of the program, which may define the objects' type or the
    /// transform differently.
    #[error("the store was saved as version {saved:?}, and the program uses another version")]
    OtherVersion {
        /// The version of the program that saved the store.
        saved: String,
    },
    /// The informer now removes other fields from its objects than the informer that saved the store.
    #[error("the saved objects were pruned of other fields")]
    OtherPruning,
    /// The server has not reached the saved revision, because the server was restored from a backup. The
    /// value is the saved revision.
    #[error("the server has not reached revision {0}, up to which the store was saved")]
    WentBack(ResourceVersion),
    /// A [`ListerWatcher`](crate::transport::ListerWatcher) of the informer does not identify its server or
    /// its collection of objects. A custom `ListerWatcher` identifies neither by default.
    #[error("the transport does not implement ListerWatcher::server or ListerWatcher::collection")]
    Unidentified,
    /// The request for the server's identity failed. The value is the text of the error. The informer repeats
    /// the request before each save.
    #[error(
        "the identity of the server is unknown: {0}; grant `get` on namespace kube-system, or set SavedStore::server"
    )]
    ServerUnknown(String),
    /// The server rejected the request with which the informer checks the server's revision: a LIST of one
    /// object. The value is the text of the error.
    #[error("the server rejects the requests of a warm start: {0}")]
    Refused(String),
    /// The objects are Secrets, which are not saved unless the program allows it.
    #[error("Secrets are neither saved nor loaded; to allow it, call SavedStore::allow_secrets")]
    SecretsRefused,
}
