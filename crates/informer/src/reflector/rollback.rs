//! [`RollbackDetection`]: whether a reflector detects a server that was restored from a backup.

/// Whether a reflector detects that the server was restored from a backup or replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RollbackDetection {
    /// Detects a rollback by the revisions of events, and by probes.
    ///
    /// After an event older than the object in the cache, the reflector lists at `""`. A probe is a request for
    /// one object that shows whether the server still knows the newest revision. The reflector sends one after any
    /// other event or bookmark below the newest revision, and after a watch that lost its connection or was closed
    /// early. It sends at most one probe per minute. Once a probe after such an event was answered, further
    /// events require no probe until the next list.
    #[default]
    Enabled,
    /// Applies all events without a check of their revisions, and sends no probes. Use this for API servers
    /// on which even the revisions of a single object are not in order.
    ///
    /// A list that is older than the cache is still detected. If the server is restored from a backup, objects
    /// that it lost stay in the cache until the next list.
    Disabled,
}
