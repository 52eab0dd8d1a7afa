//! Whether a reflector checks that the server has not gone back in time.

/// Whether a reflector detects a server that was restored from a backup, or is another one, while it
/// watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RollbackDetection {
    /// An event that is older than the object in the cache is followed by a list at `""`. Any other event
    /// below the newest revision, a bookmark too, is followed by one request for one object (a probe), which
    /// tells whether the server still knows that revision; so is a watch that lost its connection or was
    /// closed early. At most one probe per minute, and for events at most one answered probe per list.
    #[default]
    Enabled,
    /// Events are applied as they arrive, and no probes are sent. For API servers whose objects do not keep
    /// revisions in order, not even those of one object.
    ///
    /// A list that is older than the cache is still recognized. If the server is restored from a backup,
    /// objects that it has lost stay in the cache until the next list.
    Disabled,
}
