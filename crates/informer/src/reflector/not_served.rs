//! [`NotServed`]: whether the server responds that it does not serve a kind.

use std::sync::Arc;

use tokio::sync::watch;

/// Whether the server responds with 404 to requests for the kind.
///
/// The next successful list or watch clears it. All sources of an informer share it, because their kind is the
/// same.
#[derive(Clone, Default)]
pub(crate) struct NotServed(Arc<watch::Sender<bool>>);

impl NotServed {
    /// Records a 404. Returns whether it is the first in a row.
    pub(crate) fn set(&self) -> bool {
        !self.0.send_replace(true)
    }

    /// Clears the state, after a successful response or before a new attempt.
    pub(crate) fn clear(&self) {
        self.0.send_if_modified(std::mem::take);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}
