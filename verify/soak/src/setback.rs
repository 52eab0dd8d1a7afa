//! Records whether the server was set back to an earlier state and the informers have not recovered yet.
//! Until the recovery, revisions may decrease.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Flag that is set from the restore of an older server state until the informers have recovered, or until
/// the time for the recovery is over.
///
/// While the flag is set, a handler may receive an object with a lower revision than before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setbacks(Arc<AtomicBool>);

impl Setbacks {
    /// Sets the flag before an older server state is restored, or clears the flag after the recovery.
    pub(crate) fn set(&self, active: bool) {
        self.0.store(active, Ordering::SeqCst);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
