//! Defines [`RollbackDetection`], the setting for the detection of a server that was restored from a backup.

/// Whether a reflector detects that the server was restored from a backup or replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RollbackDetection {
    /// Detects that the server has gone back to an earlier state. The reflector compares the revisions of
    /// events, and sends probes. A probe is a request for one object. The response shows whether the server
    /// still has the newest revision that the reflector has received.
    ///
    /// If the cache has a newer state of an event's object, the reflector requests a list of the newest
    /// state.
    ///
    /// The reflector sends a probe in these cases, at most once per minute:
    /// - An event is older than the newest revision that the reflector has received, but the cache has no
    ///   newer state of the event's object.
    /// - A bookmark is older than the newest revision that the reflector has received.
    /// - A watch lost its connection, or ended before the requested timeout.
    /// - A watch can't be reopened, because the server does not respond or responds with 502, 503 or 504.
    ///
    /// If a probe shows that the server has not gone back, older events and bookmarks cause no further probe
    /// until the next list.
    ///
    /// A restore remains unnoticed if writes between the restore and the probe reach the newest revision that
    /// the reflector has received. A restored kube-apiserver writes leases and other objects of its own
    /// immediately. To be safe, restore etcd with `--bump-revision` and `--mark-compacted`, as etcd's
    /// documentation recommends: then each watch ends with 410 and each reflector lists.
    /// `consistency_check` also finds the difference, after its period.
    #[default]
    Enabled,
    /// Applies all events without a check of their revisions, and sends no probes. Use this setting for API
    /// servers that do not send the events of a single object in order of revision.
    ///
    /// The reflector still detects a list that is older than the cache. If the server is restored from a
    /// backup, objects that were created after the backup stay in the cache until the next list.
    Disabled,
}
