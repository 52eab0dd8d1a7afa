//! Whether the server was set back to an earlier state, so that revisions may go back.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Shared by the run, which sets the server back, and all handlers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setbacks(Arc<AtomicBool>);

impl Setbacks {
    /// Records that the server is set back, or that all informers have noticed it.
    pub(crate) fn set(&self, active: bool) {
        self.0.store(active, Ordering::SeqCst);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
