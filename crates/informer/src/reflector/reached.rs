//! [`Reached`]: what a source's reflectors leave to the next one.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::object::ResourceVersion;

/// How far the store has come with what the reflectors of one source have handed on; unset before the first list. Each
/// reflector leaves it when it ends, however it ends.
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
