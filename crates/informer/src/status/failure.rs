//! [`InformerError`]: the reason why an informer ended without being stopped.

use std::{any::Any, sync::Arc};

use crate::panics::panic_message;

/// Error of an informer that ended without being stopped, and does not restart.
///
/// Server errors never cause this error: a reflector retries as long as the informer runs. A panic in user
/// code that is called for one object or one event does not cause it either; it affects only that object or
/// that handler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("informer {name} ({expects}) failed: {cause}")]
#[non_exhaustive]
pub struct InformerError {
    /// The informer's name.
    pub name: Arc<str>,
    /// Description of the cached objects: API version and kind, or the configured description.
    pub expects: Arc<str>,
    /// Cause of the failure.
    pub cause: FailureCause,
}

/// The cause of the failure of an informer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FailureCause {
    /// Code that is not called for one object panicked: `tweak_list_options`, the program's
    /// [`ListerWatcher`](crate::transport::ListerWatcher) or [`Queue`](crate::queue::Queue), a destructor of
    /// an object, or this library.
    #[error("{part} panicked: {reason}")]
    Panicked {
        /// The part of the informer that ran the code, for example `the reflector of pods in namespace shop`.
        part: Arc<str>,
        /// The panic message, as one line. It may quote an object.
        reason: Arc<str>,
    },
    /// A task of the informer was cancelled: the Tokio runtime on which the informer was built or run has
    /// shut down.
    #[error("{part} was cancelled: its Tokio runtime has shut down")]
    Cancelled {
        /// The part of the informer that ran the task.
        part: Arc<str>,
    },
    /// A task of the informer returned without being stopped: a defect of this library.
    #[error(
        "{part} returned although the informer was not stopped, which is a defect of kube-informer"
    )]
    Returned {
        /// The part of the informer that ran the task.
        part: Arc<str>,
    },
}

impl FailureCause {
    /// Returns the cause for a panic caught by `catch_unwind`.
    pub(crate) fn panicked(part: &str, panic: &(dyn Any + Send)) -> Self {
        Self::Panicked {
            part: Arc::from(part),
            reason: Arc::from(panic_message(panic)),
        }
    }
}
