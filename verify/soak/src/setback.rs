//! Records whether the server was set back to an earlier state and some informers may not have noticed it
//! yet. During this time, revisions may decrease.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Flag that is set from the restore of an older server state until the informers have recovered.
///
/// If the informers do not recover in time, the flag is cleared at the end of this time.
///
/// While the flag is set, a handler may receive an object with a lower revision than before. The run sets the
/// flag, and all handlers read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setbacks(Arc<AtomicBool>);

impl Setbacks {
    /// Sets the flag (`true`) before an older server state is restored, or clears it (`false`) after the
    /// recovery.
    pub(crate) fn set(&self, active: bool) {
        self.0.store(active, Ordering::SeqCst);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
