//! Defines [`InformerError`], the reason why an informer ended without being stopped.

use std::{any::Any, sync::Arc};

use crate::panics::panic_message;

/// Error of an informer that ended without being stopped, and does not restart.
///
/// Server errors never cause this error, because a reflector retries as long as the informer runs. A panic in
/// user code that is called for one object or one event does not cause this error either. Such a panic
/// affects only the object or the handler.
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

/// The cause of the failure of an informer: a panic, a cancelled task, or a defect of this library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FailureCause {
    /// Code panicked that is not called for a single object or event: `tweak_list_options`, the program's
    /// [`ListerWatcher`](crate::transport::ListerWatcher) or [`Queue`](crate::queue::Queue), a destructor of
    /// an object, or this library.
    #[error("{part} panicked: {reason}")]
    Panicked {
        /// The part of the informer that ran the code, for example `the reflector of pods in namespace shop`.
        part: Arc<str>,
        /// The panic message, as one line. The message may contain the content of an object.
        reason: Arc<str>,
    },
    /// A task of the informer was cancelled, because a Tokio runtime has shut down: the one on which the
    /// informer was built or the one on which it ran.
    #[error("{part} was cancelled: its Tokio runtime has shut down")]
    Cancelled {
        /// The part of the informer that ran the task.
        part: Arc<str>,
    },
    /// A task of the informer returned although the informer was not stopped, which is a defect of this
    /// library.
    #[error(
        "{part} returned although the informer was not stopped, which is a defect of kube-informer"
    )]
    Returned {
        /// The part of the informer that ran the task.
        part: Arc<str>,
    },
}

impl FailureCause {
    /// Returns the cause for a panic that `catch_unwind` caught in `part`, a part of the informer.
    pub(crate) fn panicked(part: &str, panic: &(dyn Any + Send)) -> Self {
        Self::Panicked {
            part: Arc::from(part),
            reason: Arc::from(panic_message(panic)),
        }
    }
}
