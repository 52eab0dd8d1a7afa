//! Defines [`InformerError`], the error of an informer that ended although the program did not stop it.
//!
//! The module does not end or restart an informer.

use std::{any::Any, sync::Arc};

use crate::panics::panic_message;

/// Error of an informer that ended although the program did not stop it. The informer does not restart.
///
/// An error of the server never ends an informer, because the reflector retries the request. A panic in user
/// code that is called for one object or one event does not end an informer either. Such a panic affects only
/// the object or the handler.
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
    /// A panic occurred in `tweak_list_options`, in the program's
    /// [`ListerWatcher`](crate::transport::ListerWatcher) or [`Queue`](crate::queue::Queue), in a destructor
    /// of an object, or in this library.
    ///
    /// A panic in a callback for a single object or event, such as a handler, is not a failure of the
    /// informer.
    #[error("{part} panicked: {reason}")]
    Panicked {
        /// The part of the informer that panicked, for example `the reflector of pods in namespace shop`.
        part: Arc<str>,
        /// The panic message, as one line. The message may contain the content of an object.
        reason: Arc<str>,
    },
    /// A task of the informer was cancelled because a Tokio runtime has shut down: the runtime in which the
    /// informer was built, or the runtime in which it ran.
    #[error("{part} was cancelled: its Tokio runtime has shut down")]
    Cancelled {
        /// The part of the informer whose task was cancelled.
        part: Arc<str>,
    },
    /// A task of the informer returned although the informer was not stopped, which is a defect of this
    /// library.
    #[error(
        "{part} returned although the informer was not stopped, which is a defect of kube-informer"
    )]
    Returned {
        /// The part of the informer whose task returned.
        part: Arc<str>,
    },
}

impl FailureCause {
    pub(crate) fn panicked(part: &str, panic: &(dyn Any + Send)) -> Self {
        Self::Panicked {
            part: Arc::from(part),
            reason: Arc::from(panic_message(panic)),
        }
    }
}
