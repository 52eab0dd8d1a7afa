//! Records whether the server responds that it does not serve the kind of an informer's objects.

use std::sync::Arc;

use tokio::sync::watch;

/// Flag that is set while the server responds with 404 to requests for the kind of an informer's objects.
///
/// The next successful list or watch clears the flag. All sources of the informer share the flag, because
/// they have the same kind.
#[derive(Clone, Default)]
pub(crate) struct NotServed(Arc<watch::Sender<bool>>);

impl NotServed {
    /// Sets the flag after a 404 response. Returns whether the flag was not set before.
    pub(crate) fn set(&self) -> bool {
        !self.0.send_replace(true)
    }

    /// Clears the flag, after a successful response or before a new attempt.
    pub(crate) fn clear(&self) {
        self.0.send_if_modified(std::mem::take);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}
