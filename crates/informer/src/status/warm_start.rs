//! [`WarmStart`]: whether an informer began with a saved store, and if not, why.

use std::{fmt, time::Duration};

use crate::object::ResourceVersion;

/// How the start of an informer came out that was given a saved store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarmStart {
    /// The cache began with what was saved, and the watch goes on from there.
    #[non_exhaustive]
    Warm {
        /// How many objects were loaded, broken ones included.
        objects: usize,
        /// Up to which revision of the first source.
        revision: ResourceVersion,
        /// How long before, by the clock on the wall; zero if that clock has gone back since.
        age: Duration,
    },
    /// Everything is listed, as without a saved store.
    Cold {
        /// Why nothing was loaded.
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

/// Why a saved store was not loaded. Names kinds, scopes and lines, never an object's content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColdReason {
    /// Nothing has been saved there.
    #[error("nothing is saved there")]
    NoFile,
    /// The operating system does not let it be read.
    #[error("the saved store can't be read: {0}")]
    Unreadable(String),
    /// It was cut, changed or never was a saved store.
    #[error("the saved store is damaged: {0}")]
    Damaged(String),
    /// It was written by a version of this library that writes another format.
    #[error("the saved store has format {0}, which this version does not read")]
    OtherFormat(u64),
    /// It was saved from another cluster.
    #[error("the store was saved from another server")]
    OtherServer,
    /// It holds other objects: another kind, or metadata alone where whole objects are wanted.
    #[error("the saved store holds {saved}")]
    OtherKind {
        /// What it holds.
        saved: String,
    },
    /// It holds other objects of the kind: other namespaces or selectors.
    #[error("the saved store is of {saved}, and {wanted} is wanted")]
    OtherScope {
        /// The requests whose answers it holds.
        saved: String,
        /// Those of this informer.
        wanted: String,
    },
    /// It was saved by another version of the program: type or transform may be different.
    #[error("the store was saved as version {saved:?}")]
    OtherVersion {
        /// The version that it was saved as.
        saved: String,
    },
    /// It was saved with other fields pruned, or kept.
    #[error("other fields were pruned from what is saved")]
    OtherPruning,
    /// The server has not reached the revision up to which the store was saved: it was restored from a
    /// backup.
    #[error("the server has not reached revision {0}, up to which the store was saved")]
    WentBack(ResourceVersion),
    /// Nobody can tell which server or which of its objects it is: the transport does not say.
    #[error("the transport does not say which server and which objects it stands for")]
    Unidentified,
    /// The server does not say who it is. It is asked again at each save.
    #[error(
        "the server does not say who it is (may the program `get` the namespace kube-system? SavedStore::server names it): {0}"
    )]
    ServerUnknown(String),
    /// The server refuses a list of one object, which is to show how far it has come.
    #[error("the server refuses what a warm start asks for: {0}")]
    Refused(String),
    /// Secrets are not written to disks unless that is asked for.
    #[error("Secrets are neither saved nor loaded unless SavedStore::allow_secrets says so")]
    SecretsRefused,
}
