//! Represents the effect of a deletion on the grace period of an object.
//!
//! The strategy of each resource computes the grace period. This module does not.

use jiff::Timestamp;

/// The length of a grace period in seconds, and the time at which the period ends.
pub(crate) struct Grace {
    pub(crate) seconds: i64,
    pub(crate) until: Timestamp,
}

/// The effect of a client's deletion on the grace period of an object.
pub(crate) enum GracePeriod {
    /// The object has no grace period, or an earlier deletion set the period to 0 seconds.
    None,
    /// The deletion starts this grace period, or replaces the current grace period with this shorter one.
    Until(Grace),
    /// The grace period of an earlier deletion continues unchanged.
    Running,
}
