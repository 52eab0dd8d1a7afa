//! [`NotServed`]: whether the server answers that it does not serve a kind.

use std::sync::Arc;

use tokio::sync::watch;

/// Set by a 404, and cleared by the next list or watch that succeeds. Common to all sources of an informer, whose kind
/// is the same.
#[derive(Clone, Default)]
pub(crate) struct NotServed(Arc<watch::Sender<bool>>);

impl NotServed {
    /// The server has answered with 404. Returns whether that is new.
    pub(crate) fn set(&self) -> bool {
        !self.0.send_replace(true)
    }

    /// The server has answered a request, or is about to be asked anew.
    pub(crate) fn clear(&self) {
        self.0.send_if_modified(std::mem::take);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}
