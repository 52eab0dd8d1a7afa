//! Decides what follows a watch that the server does not open, and limits the wait for the response headers.
//!
//! After some errors, the watch is retried from the last revision. After other errors, a list follows.

use std::time::Duration;

use tokio::time::Instant;

use super::{Action, Machine, Next, State};
use crate::{
    limits::{LIST_STALL, WATCH_GRACE},
    transport::{Class, Error},
};

/// Maximum time for which a refused watch is retried before a list follows. An API server restarts within
/// minutes, and a server that refuses watches for longer may still serve lists.
const RETRIED_FOR: Duration = Duration::from_secs(600);

/// Minimum timeout of the response headers of a watch.
const HEADERS_MIN: Duration = Duration::from_millis(1);

/// Records the refused watches and the header timeouts since the last opened watch.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Time of the first refusal in a series of consecutive refusals, which are retried for at most
    /// [`RETRIED_FOR`]; `None` without a series.
    since: Option<Instant>,
    /// Number of consecutive watches whose response headers did not arrive in time.
    header_timeouts: u32,
}

impl Refusals {
    /// Resets all fields after the server has opened a watch.
    pub(super) fn watch_opened(&mut self) {
        *self = Self::default();
    }

    /// Ends the series of refusals after a list. Does not reset the header timeouts, because a list does not
    /// show that the server opens watches.
    pub(super) fn listed(&mut self) {
        self.since = None;
    }

    /// Records a refusal. Returns true if the watch is retried, and false if a list follows.
    fn retries(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        now.duration_since(since) < RETRIED_FOR
    }

    /// Returns the timeout of the response headers: `configured`, doubled for each consecutive header
    /// timeout.
    fn headers_allowed(&self, configured: Duration) -> Duration {
        let doubled = 2_u32.saturating_pow(self.header_timeouts);
        configured.max(HEADERS_MIN).saturating_mul(doubled)
    }
}

impl Machine {
    /// Returns the timeout for the response headers of the current watch or streaming list.
    ///
    /// The timeout of a watch is at most the time after which the server must have ended the watch. A
    /// streaming list has the timeout of a LIST, because the server starts or rejects a streaming list at
    /// once.
    pub(crate) fn headers_allowed(&self) -> Duration {
        if self.is_streaming() {
            return LIST_STALL;
        }
        let configured = self.options.timeouts().watch_headers;
        let allowed = self.refusals.headers_allowed(configured);
        allowed.min(self.watch_ends())
    }

    /// Returns the server-side timeout that the current watch requested; zero without a watch.
    pub(super) fn watch_lasts(&self) -> Duration {
        match &self.state {
            State::Watching(watch) => watch.lasts,
            _ => Duration::ZERO,
        }
    }

    /// Returns the time since the request by which the server must have ended the current watch.
    fn watch_ends(&self) -> Duration {
        self.watch_lasts().saturating_add(WATCH_GRACE)
    }

    /// Returns the step after a watch whose response headers did not arrive in time. No event is lost: the
    /// next watch begins at the same revision.
    pub(super) fn watch_unanswered(&mut self, error: &Error, now: Instant) -> Action {
        let is_last = self.headers_allowed() == self.watch_ends();
        self.refusals.header_timeouts = self.refusals.header_timeouts.saturating_add(1);
        self.require_probe_if_watched();
        let next = if is_last { Next::List } else { Next::Watch };
        self.pause(error, now, next)
    }

    /// Returns the step after the server, or a proxy, has refused a watch.
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

    /// Requires a probe if a watch was opened since the last list. Otherwise no probe is necessary, because
    /// the store's state is from the list of this server.
    fn require_probe_if_watched(&mut self) {
        if self.has_watched {
            self.probe.require();
        }
    }
}
