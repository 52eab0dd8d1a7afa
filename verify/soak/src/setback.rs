//! Records whether the server was set back to an earlier state and some informers may not have noticed it
//! yet. During this time, revisions may decrease.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Flag that is set while the server is set back and some informers may not have noticed it yet.
///
/// The run, which sets the server back, and all handlers share this flag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setbacks(Arc<AtomicBool>);

impl Setbacks {
    /// Records with `true` that the server is set back, and with `false` that all informers have noticed it.
    pub(crate) fn set(&self, active: bool) {
        self.0.store(active, Ordering::SeqCst);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
