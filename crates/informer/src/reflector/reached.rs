//! Defines the revision that one reflector of a source passes to the next reflector of the same source.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::object::ResourceVersion;

/// Revision up to which the store has accepted the changes of one source; unset before the first list.
///
/// The reflectors of a source run one after the other and share this value. Each reflector sets the value
/// when the reflector is dropped, and the next reflector reads the value.
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
