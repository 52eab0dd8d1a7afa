//! Defines [`RollbackDetection`], the setting for the detection of a server that was restored from a backup.

/// Whether a reflector detects that the server was restored from a backup or replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RollbackDetection {
    /// Detects that the server has gone back to an earlier state, from the revisions of events and from
    /// probes. A probe is a request for one object. Its response shows whether the server still knows the
    /// newest revision.
    ///
    /// After an event older than the object in the cache, the reflector lists the newest state. After any
    /// other event or bookmark below the newest revision, and after a watch that lost its connection or was
    /// closed before its timeout, the reflector sends a probe. The reflector sends at most one probe per
    /// minute. After an answered probe, events below the newest revision require no further probe until the
    /// next list.
    #[default]
    Enabled,
    /// Applies all events without a check of their revisions, and sends no probes. Use this setting for API
    /// servers that do not send the events of a single object in order of revision.
    ///
    /// The reflector still detects a list that is older than the cache. If the server is restored from a
    /// backup, objects that the restored server does not have stay in the cache until the next list.
    Disabled,
}
