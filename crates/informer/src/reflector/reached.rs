//! [`Reached`]: the revision that one reflector of a source leaves to the next.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::object::ResourceVersion;

/// Revision that the store has reached with the changes of all reflectors of one source. Unset before the first
/// list. Each reflector sets it on drop.
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
