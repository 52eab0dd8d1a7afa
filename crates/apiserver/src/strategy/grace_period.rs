//! Represents the effect of a deletion on the grace period of an object.
//!
//! The strategy of each resource computes the grace period. This module does not.

use jiff::Timestamp;

/// Length of a grace period in seconds, and its end.
pub(crate) struct Grace {
    pub(crate) seconds: i64,
    pub(crate) until: Timestamp,
}

/// The effect of a deletion on the grace period of an object.
pub(crate) enum GracePeriod {
    /// The deletion starts no grace period.
    ///
    /// Applies to resources without grace periods, to deletions by a method call of the embedded server, and
    /// to an object whose grace period an earlier deletion has set to 0 seconds.
    None,
    /// The deletion starts a grace period, or shortens the current one. Contains the resulting grace period.
    Until(Grace),
    /// The grace period of an earlier deletion continues unchanged.
    Running,
}
