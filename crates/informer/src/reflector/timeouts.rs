//! Defines [`TimeoutConfig`], the timeouts of a reflector's streaming lists, watches and store.
//!
//! The timeouts of a LIST are in [`limits`](crate::limits).

use std::time::Duration;

/// Timeouts of a reflector's streaming lists, watches and store. [`Duration::MAX`] disables a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutConfig {
    /// Maximum time that a streaming list may take to send the next new object or its end bookmark. Default:
    /// 10 s. When the time expires, the reflector sends a LIST instead.
    ///
    /// The API server waits at most 3 s until its cache has the requested revision, and then sends all
    /// objects at once. client-go logs a message after 10 s without the end bookmark.
    pub initial_events: Duration,
    /// Maximum time until the response headers of a watch arrive. Default: 90 s, minimum: 1 ms. When the time
    /// expires, the reflector pauses, and requests the watch again from the same revision.
    ///
    /// Some proxies send the headers with the first bytes of the body, so the default is longer than the
    /// interval between two bookmarks (about a minute). Each consecutive timeout doubles the maximum, up to
    /// 30 s ([`WATCH_GRACE`](crate::limits::WATCH_GRACE)) more than the requested duration of the watch. When
    /// a watch opens, the maximum returns to this value. The response headers of a streaming list have the
    /// timeout of a list ([`LIST_STALL`](crate::limits::LIST_STALL)).
    pub watch_headers: Duration,
    /// Maximum time between two events or bookmarks of a watch. Default: 3 min. When the time expires, the
    /// connection counts as broken, and the reflector opens the watch again from the last revision.
    ///
    /// The API server sends a bookmark about once a minute (`bookmarkFrequency`), so at least two bookmarks
    /// are missing when the time expires. The timeout applies only after the server has sent a bookmark to
    /// this reflector, because some servers send none.
    pub silence: Duration,
    /// Maximum time that an open watch waits for the store to accept a change. Default: 30 s. When the time
    /// expires, the reflector closes the watch. When the store accepts the change, the reflector opens the
    /// watch again from the revision of the change.
    ///
    /// The default keeps the connection open while a handler is slow for a short time. While a handler
    /// blocks, unread events can fill the flow-control window of a shared HTTP/2 connection for at most this
    /// time.
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
