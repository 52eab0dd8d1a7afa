//! Records whether the server responds with 404 to requests for the kind of an informer's objects.

use std::sync::Arc;

use tokio::sync::watch;

/// A flag that is set while the server responds with 404 to requests for the informer's kind.
///
/// If an informer has one reflector per namespace, the reflectors share the flag.
#[derive(Clone, Default)]
pub(crate) struct NotServed(Arc<watch::Sender<bool>>);

impl NotServed {
    /// Sets the flag, and returns whether it was not set before.
    pub(crate) fn set(&self) -> bool {
        !self.0.send_replace(true)
    }

    pub(crate) fn clear(&self) {
        self.0.send_if_modified(std::mem::take);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}
