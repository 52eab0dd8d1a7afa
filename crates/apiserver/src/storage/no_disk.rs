//! Replaces the `disk` module if the feature `persistence` is off.
//!
//! Guarantees: the type [`Disk`] has no values, so none of its methods can be called.

use super::Write;

/// The data directory of a server without persistence, of which no value exists.
pub(crate) enum Disk {}

impl Disk {
    pub(crate) fn write(&mut self, _: &[Write], _: u64) -> Result<(), String> {
        match *self {}
    }
}
