//! Grace period of a deletion.

use jiff::Timestamp;

/// A grace period with its end.
pub(crate) struct Grace {
    pub(crate) seconds: i64,
    pub(crate) until: Timestamp,
}

/// The grace period that a deletion gives an object.
pub(crate) enum GracePeriod {
    /// The deletion is immediate, or the grace period is over.
    None,
    /// The deletion starts this grace period.
    Until(Grace),
    /// The grace period of an earlier deletion continues.
    Running,
}
