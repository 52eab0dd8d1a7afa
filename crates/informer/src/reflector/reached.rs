//! [`Reached`]: the revision that one reflector of a source passes to the next.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::object::ResourceVersion;

/// Revision up to which the store has accepted the changes of one source. All reflectors that run for the
/// source, one after the other, share it. Unset before the first list. Each reflector sets it on drop.
#[derive(Clone, Default)]
pub(crate) struct Reached(Arc<Mutex<ResourceVersion>>);

impl Reached {
    pub(super) fn get(&self) -> ResourceVersion {
        self.0.lock().clone()
    }

    pub(super) fn set(&self, revision: ResourceVersion) {
        *self.0.lock() = revision;
    }
}
