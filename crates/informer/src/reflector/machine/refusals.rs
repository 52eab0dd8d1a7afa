//! Decides which request follows a watch that the server does not open. Also limits the time for which the
//! reflector waits for the response headers of a watch.

use std::time::Duration;

use tokio::time::Instant;

use super::{Action, Machine, Next, State};
use crate::{
    limits::{LIST_STALL, WATCH_GRACE},
    transport::{Class, Error},
};

/// Maximum time for which a rejected watch is requested again, before a list follows. This time is longer
/// than a restart of an API server, which takes minutes.
const RETRIED_FOR: Duration = Duration::from_secs(600);

/// Minimum time that the reflector waits for the response headers of a watch.
const HEADERS_MIN: Duration = Duration::from_millis(1);

/// The failed attempts to open a watch: rejected watches, and watches without response headers.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Time of the first rejected watch since the most recent opened watch or accepted list; `None` if no
    /// watch was rejected since then.
    ///
    /// Rejected watches are requested again until [`RETRIED_FOR`] after this time.
    since: Option<Instant>,
    /// Number of consecutive watches whose response headers did not arrive in time.
    header_timeouts: u32,
}

impl Refusals {
    /// Resets this record after the server has opened a watch.
    pub(super) fn watch_opened(&mut self) {
        *self = Self::default();
    }

    /// Ends the series of rejected watches after a list. The number of header timeouts is kept, because a
    /// list does not show that the server opens watches.
    pub(super) fn listed(&mut self) {
        self.since = None;
    }

    /// Records that a watch was rejected. Returns true if the watch must be requested again, and false if a
    /// list must follow.
    fn retries(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        now.duration_since(since) < RETRIED_FOR
    }

    /// Returns the timeout for the response headers of a watch: `configured`, doubled for each consecutive
    /// header timeout.
    fn headers_allowed(&self, configured: Duration) -> Duration {
        let doubled = 2_u32.saturating_pow(self.header_timeouts);
        configured.max(HEADERS_MIN).saturating_mul(doubled)
    }
}

impl Machine {
    /// Returns the timeout for the response headers of the current watch or streaming list.
    ///
    /// The timeout of a watch never exceeds the server-side timeout of the watch plus [`WATCH_GRACE`]. The
    /// timeout of a streaming list is one minute ([`LIST_STALL`]).
    pub(crate) fn headers_allowed(&self) -> Duration {
        if self.is_streaming() {
            return LIST_STALL;
        }
        let configured = self.options.timeouts().watch_headers;
        let allowed = self.refusals.headers_allowed(configured);
        allowed.min(self.watch_ends())
    }

    /// Returns the server-side timeout that the current watch has requested; zero if no watch is in progress.
    pub(super) fn watch_lasts(&self) -> Duration {
        match &self.state {
            State::Watching(watch) => watch.lasts,
            _ => Duration::ZERO,
        }
    }

    /// Returns the time after which the server must have ended the current watch, counted from the request.
    fn watch_ends(&self) -> Duration {
        self.watch_lasts().saturating_add(WATCH_GRACE)
    }

    /// Returns the next action after a watch whose response headers did not arrive in time.
    pub(super) fn watch_unanswered(&mut self, error: &Error, now: Instant) -> Action {
        let is_last = self.headers_allowed() == self.watch_ends();
        self.refusals.header_timeouts = self.refusals.header_timeouts.saturating_add(1);
        self.require_probe_if_watched();
        let next = if is_last { Next::List } else { Next::Watch };
        self.pause(error, now, next)
    }

    /// Returns the next action after a watch that failed before the server opened it.
    ///
    /// The server or a proxy has rejected the watch, or the connection failed before the response.
    pub(super) fn watch_refused(&mut self, error: &Error, now: Instant) -> Action {
        let next = match error.class() {
            Class::Expired => return self.relist_expired(now),
            Class::TooManyRequests => Next::Watch,
            // The server did not process the request.
            Class::ConnectionRefused | Class::Connection => {
                self.require_probe_if_watched();
                Next::Watch
            }
            // Another server, or a server that was restored from a backup, may respond next.
            Class::Unavailable | Class::Timeout if self.refusals.retries(now) => {
                self.require_probe_if_watched();
                Next::Watch
            }
            // Expired credentials are unrelated to the server's history.
            Class::Unauthorized if self.refusals.retries(now) => Next::Watch,
            _ if error.retry_after().is_some() => Next::Watch,
            _ => Next::List,
        };
        self.pause(error, now, next)
    }

    /// Requires a probe before the next watch, if a watch was opened since the last list.
    ///
    /// A probe is a request that detects a server that has gone back to an earlier state.
    fn require_probe_if_watched(&mut self) {
        if self.has_watched {
            self.probe.require();
        }
    }
}
