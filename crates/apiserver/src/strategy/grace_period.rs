//! The grace period of a deletion.

use jiff::Timestamp;

/// A grace period, and its end.
pub(crate) struct Grace {
    pub(crate) seconds: i64,
    pub(crate) until: Timestamp,
}

/// The grace period that a deletion gives an object.
pub(crate) enum GracePeriod {
    /// The deletion is not graceful, or the period is over.
    None,
    /// The deletion sets this one.
    Until(Grace),
    /// The period of an earlier deletion continues.
    Running,
}
