//! Defines [`Reached`], the revision that a reflector passes to the reflector that replaces it.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::object::ResourceVersion;

/// Newest revision that the store has accepted from a reflector.
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
