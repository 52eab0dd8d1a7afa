//! Defines [`RollbackDetection`], the setting for the detection of a server that was restored from a backup.

/// Whether a reflector detects that the server was restored from a backup or replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RollbackDetection {
    /// Detects that the server has gone back to an earlier state, from the revisions of events and from
    /// probes. A probe is a request for one object. Its response shows whether the server still knows the
    /// newest revision.
    ///
    /// After an event older than the object in the cache, the reflector lists the newest state. The reflector
    /// sends a probe after any other event or bookmark below the newest revision, and after a watch that lost
    /// its connection or was closed early. It sends at most one probe per minute. If the server has answered
    /// a probe after an event below the newest revision, further events of this kind require no probe until
    /// the next list.
    #[default]
    Enabled,
    /// Applies all events without a check of their revisions, and sends no probes. Use this for API servers
    /// on which even the revisions of a single object are not in order.
    ///
    /// The reflector still detects a list that is older than the cache. If the server is restored from a
    /// backup, objects that the restored server does not have stay in the cache until the next list.
    Disabled,
}
