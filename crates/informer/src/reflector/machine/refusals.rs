//! Decides which request follows a watch that the server does not open. Also limits the time for which the
//! reflector waits for the response headers of a watch.

use std::time::Duration;

use tokio::time::Instant;

use super::{Action, Machine, Next, State};
use crate::{
    limits::{LIST_STALL, WATCH_GRACE},
    transport::{Class, Error},
};

/// Maximum time for which a rejected watch is retried: longer than an API server's restart.
const RETRIED_FOR: Duration = Duration::from_secs(600);

/// Minimum timeout for the response headers of a watch. Smaller configured values count as this value.
const HEADERS_MIN: Duration = Duration::from_millis(1);

/// The failed attempts to open a watch: rejected watches, and watches without response headers.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Time of the first rejected watch since the last opened watch or accepted list.
    since: Option<Instant>,
    /// Number of consecutive watches whose response headers did not arrive in time.
    header_timeouts: u32,
}

impl Refusals {
    pub(super) fn watch_opened(&mut self) {
        *self = Self::default();
    }

    /// Records that the store has accepted a list. The next rejected watch then starts a new period of
    /// [`RETRIED_FOR`], in which rejected watches are retried.
    pub(super) fn listed(&mut self) {
        // A list does not show that the server opens watches.
        self.since = None;
    }

    /// Records a rejected watch, and returns whether the reflector must retry the watch instead of listing.
    ///
    /// Returns true until [`RETRIED_FOR`] has passed since the first rejected watch. A watch that the server
    /// opens, or a list that the store accepts, resets this time.
    fn retries(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        now.duration_since(since) < RETRIED_FOR
    }

    /// Returns the timeout for the response headers of a watch.
    ///
    /// The timeout is `configured`, but at least [`HEADERS_MIN`]. It doubles with each consecutive watch
    /// whose response headers did not arrive in time.
    fn headers_allowed(&self, configured: Duration) -> Duration {
        let doubled = 2_u32.saturating_pow(self.header_timeouts);
        configured.max(HEADERS_MIN).saturating_mul(doubled)
    }
}

impl Machine {
    /// Returns the timeout for the response headers of the current watch or streaming list.
    pub(crate) fn headers_allowed(&self) -> Duration {
        if self.is_streaming() {
            return LIST_STALL;
        }
        let configured = self.options.timeouts().watch_headers;
        let allowed = self.refusals.headers_allowed(configured);
        allowed.min(self.watch_ends())
    }

    /// Returns the current watch's server-side timeout, or zero without a watch.
    pub(super) fn watch_lasts(&self) -> Duration {
        match &self.state {
            State::Watching(watch) => watch.lasts,
            _ => Duration::ZERO,
        }
    }

    /// Returns the maximum duration of the current watch, measured from its request.
    fn watch_ends(&self) -> Duration {
        self.watch_lasts().saturating_add(WATCH_GRACE)
    }

    /// Returns the next action after a timeout of the watch's response headers.
    pub(super) fn watch_unanswered(&mut self, error: &Error, now: Instant) -> Action {
        let is_last = self.headers_allowed() == self.watch_ends();
        self.refusals.header_timeouts = self.refusals.header_timeouts.saturating_add(1);
        self.require_probe_if_watched();
        let next = if is_last { Next::List } else { Next::Watch };
        self.pause(error, now, next)
    }

    /// Returns the next action after a watch that the server did not open.
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

    /// Records that a probe is required, if a watch was opened since the last list.
    fn require_probe_if_watched(&mut self) {
        if self.has_watched {
            self.probe.require();
        }
    }
}
