//! Defines [`Reached`], the revision that a reflector passes to the reflector that replaces it.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::object::ResourceVersion;

/// Newest revision that the store has accepted from a reflector; unset before the first accepted list.
///
/// A reflector sets the value when it is dropped. The reflector that replaces it reads the value when it
/// starts, and continues from this revision.
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
