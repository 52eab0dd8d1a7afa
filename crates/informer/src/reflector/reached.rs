//! Passes the revision that one reflector of a source has reached to the next reflector of the source.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::object::ResourceVersion;

/// Revision up to which the store has accepted the changes of one source; unset before the first list.
///
/// All reflectors that run for the source, one after the other, share this value. Each reflector sets the
/// value on drop.
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
