//! Stands in for the disk where feature `persistence` is off.
//!
//! Guarantees: there is none, so nothing here can be reached.

use super::Write;

/// No disk.
pub(crate) enum Disk {}

impl Disk {
    pub(crate) fn write(&mut self, _: &[Write], _: u64) -> Result<(), String> {
        match *self {}
    }
}
