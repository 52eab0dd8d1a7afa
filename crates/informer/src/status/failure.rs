//! Why an informer failed: it ended although it was not asked to.

use std::{any::Any, sync::Arc};

use crate::panics::panic_message;

/// An informer ended although it was not asked to, and does not restart.
///
/// An error of the server never leads here: a reflector retries for as long as the informer runs. Nor does
/// a panic in user code that is called for one object or one event, which is confined to that object or
/// that handler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("informer {name} ({expects}) failed: {cause}")]
#[non_exhaustive]
pub struct InformerError {
    /// The informer's name.
    pub name: Arc<str>,
    /// The objects that it caches: API version and kind, or the configured description.
    pub expects: Arc<str>,
    /// What ended it.
    pub cause: FailureCause,
}

/// What ended an informer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FailureCause {
    /// Code that is not called for one object panicked: `tweak_list_options`, a
    /// [`ListerWatcher`](crate::transport::ListerWatcher) or a [`Queue`](crate::queue::Queue) of the
    /// program's own, a destructor of an object, or this library.
    #[error("{part} panicked: {reason}")]
    Panicked {
        /// The part that ran the code, for example `the reflector of pods in namespace shop`.
        part: Arc<str>,
        /// The panic's message, as one line. It is the panicking code's own, and may quote what that code
        /// worked on.
        reason: Arc<str>,
    },
    /// A task of the informer was cancelled: the Tokio runtime on which the informer was built or run has
    /// shut down.
    #[error("{part} was cancelled: its Tokio runtime has shut down")]
    Cancelled {
        /// The part whose task it was.
        part: Arc<str>,
    },
    /// A task of the informer returned although nothing had asked it to: a defect of this library.
    #[error("{part} returned although nothing had asked it to")]
    Returned {
        /// The part whose task it was.
        part: Arc<str>,
    },
}

impl FailureCause {
    /// The cause that `catch_unwind` found.
    pub(crate) fn panicked(part: &str, panic: &(dyn Any + Send)) -> Self {
        Self::Panicked {
            part: Arc::from(part),
            reason: Arc::from(panic_message(panic)),
        }
    }
}
