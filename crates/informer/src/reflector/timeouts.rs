//! Defines [`TimeoutConfig`], the timeouts of a reflector's streaming lists, watches and store.
//!
//! The timeouts of a LIST are in [`limits`](crate::limits).

use std::time::Duration;

/// Timeouts of a reflector's streaming lists, watches and store. [`Duration::MAX`] disables a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutConfig {
    /// Maximum time for which a streaming list sends neither a new object nor the end bookmark. Default:
    /// 10 s. When the time expires, the reflector sends a LIST instead.
    ///
    /// The default is the time after which client-go logs that the end bookmark is missing.
    pub initial_events: Duration,
    /// Maximum time between the request of a watch and its response headers. Default: 90 s, minimum: 1 ms.
    /// When the time expires, the reflector pauses, and requests the watch again from the same revision.
    ///
    /// The default is longer than the interval between two bookmarks (about a minute), because some proxies
    /// send the headers only with the first bytes of the body.
    ///
    /// Each consecutive timeout doubles the maximum, up to the requested duration of the watch plus 30 s
    /// ([`WATCH_GRACE`](crate::limits::WATCH_GRACE)). When a watch opens, the maximum returns to the
    /// configured value.
    ///
    /// For the response headers of a streaming list, the timeout of a list
    /// ([`LIST_STALL`](crate::limits::LIST_STALL)) applies instead.
    pub watch_headers: Duration,
    /// Maximum time between two events or bookmarks of a watch. Default: 3 min. When the time expires, the
    /// connection counts as broken, and the reflector opens the watch again from the newest revision that
    /// the store has accepted.
    ///
    /// The API server sends a bookmark about once a minute (`bookmarkFrequency`). The timeout applies only
    /// after the server has sent a bookmark to this reflector, because some servers send no bookmarks.
    pub silence: Duration,
    /// Maximum time that an open watch waits for the store to accept a change. Default: 30 s. When the time
    /// expires, the reflector closes the watch. When the store accepts the change, the reflector opens the
    /// watch again from the revision of the change.
    ///
    /// While the store does not accept a change, the reflector does not read the watch. Unread events can
    /// fill the flow-control window of an HTTP/2 connection, and thereby block the other requests on that
    /// connection until the watch is closed.
    pub full_store: Duration,
}

impl Default for TimeoutConfig {
    fn default() -> Self {
        Self {
            initial_events: Duration::from_secs(10),
            watch_headers: Duration::from_secs(90),
            silence: Duration::from_secs(180),
            full_store: Duration::from_secs(30),
        }
    }
}
