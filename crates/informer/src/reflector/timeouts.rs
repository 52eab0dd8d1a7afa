//! How long a reflector waits for what should come.

use std::time::Duration;

/// After how long a reflector no longer waits. [`Duration::MAX`] means that it waits for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutConfig {
    /// A streaming list that brings no new object for so long, and no end, is given up for a list:
    /// 10 s. The API server waits 3 s at most until its cache is as new as was asked for, and sends
    /// everything at one go then; 10 s is also after how long client-go begins to log that it waits.
    pub initial_events: Duration,
    /// Maximum time until the response headers of a watch arrive: 90 s. A watch without them is retried
    /// from the same revision after a pause. Some proxies send the headers with the first bytes of the
    /// body, so the time is above the period of bookmarks (about a minute), and each time-out in a row
    /// doubles it, up to 30 s ([`WATCH_GRACE`](crate::limits::WATCH_GRACE)) after the server must have
    /// ended the watch; an opened watch resets it. At least 1 ms. Streaming lists have the time of a list
    /// ([`LIST_STALL`](crate::limits::LIST_STALL)).
    pub watch_headers: Duration,
    /// A watch from which nothing came for so long, no event and no bookmark, is taken for dead and
    /// opened again from the last revision: 3 min. The API server sends a bookmark about once a
    /// minute (`bookmarkFrequency`), so that is two that are missing. It holds only once this
    /// reflector has been sent such a bookmark, for not every server does.
    pub silence: Duration,
    /// A watch is let go of when the store behind it has taken nothing for so long: 30 s. It is
    /// opened again, from the last change that the store has taken, as soon as there is room. A
    /// choice of ours: no handler that is merely slow costs a connection, and one that hangs does not
    /// hold the window of a shared one for longer.
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
