//! [`TimeoutConfig`]: timeouts of a reflector's streaming lists, watches and store.

use std::time::Duration;

/// Timeouts of a reflector's streaming lists, watches and store. [`Duration::MAX`] disables a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutConfig {
    /// Maximum time that a streaming list may take to send the next new object or its end bookmark. Default:
    /// 10 s. When it expires, a LIST follows.
    ///
    /// The API server waits at most 3 s until its cache has the requested revision, and then sends all
    /// objects at once. client-go logs a message after it has waited for 10 s.
    pub initial_events: Duration,
    /// Maximum time until the response headers of a watch arrive. Default: 90 s, minimum: 1 ms. When it
    /// expires, the watch is retried from the same revision after a pause.
    ///
    /// Some proxies send the headers with the first bytes of the body, so the default is longer than the
    /// period of bookmarks (about a minute). Each consecutive timeout doubles the time, up to 30 s
    /// ([`WATCH_GRACE`](crate::limits::WATCH_GRACE)) more than the requested duration of the watch. An opened
    /// watch resets it. Streaming lists have the timeout of a list
    /// ([`LIST_STALL`](crate::limits::LIST_STALL)).
    pub watch_headers: Duration,
    /// Maximum time between two events or bookmarks of a watch. Default: 3 min. When it expires, the connection
    /// counts as broken, and the watch is opened again from the last revision.
    ///
    /// The API server sends a bookmark about once a minute (`bookmarkFrequency`), so at least two bookmarks
    /// are missing when the timeout expires. The timeout applies only after the server has sent this
    /// reflector a bookmark, because some servers send none.
    pub silence: Duration,
    /// Maximum time that an open watch waits for the store to accept a change. Default: 30 s. When it
    /// expires, the watch is closed. As soon as the store accepts the pending change, the watch is opened
    /// again from there.
    ///
    /// A slow handler therefore does not close the connection, and a blocked handler occupies the flow
    /// control window of a shared connection for at most this time.
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
