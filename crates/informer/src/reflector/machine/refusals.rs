//! Watches that are not opened: how long the response headers may take, and which refusals are retried
//! from the last revision instead of being followed by a list.

use std::time::Duration;

use tokio::time::Instant;

use super::{Action, Machine, Next, State};
use crate::{
    limits::{LIST_STALL, WATCH_GRACE},
    transport::{Class, Error},
};

/// Time after which a watch that is still refused is followed by a list. A choice of ours: an API server
/// restarts within minutes, and a server that refuses watches for longer may still answer lists.
const RETRIED_FOR: Duration = Duration::from_secs(600);

/// Shortest time that the response headers of a watch get, whatever is configured.
const HEADERS_MIN: Duration = Duration::from_millis(1);

/// The refusals and header time-outs since the last watch was opened.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// When the first of the refusals in a row came that are retried for a limited time.
    since: Option<Instant>,
    /// Number of header time-outs in a row.
    header_timeouts: u32,
}

impl Refusals {
    /// The server has opened a watch.
    pub(super) fn watch_opened(&mut self) {
        *self = Self::default();
    }

    /// The store has accepted a list. It says nothing about how long headers take.
    pub(super) fn listed(&mut self) {
        self.since = None;
    }

    /// Records a refusal, and returns whether the watch is retried.
    fn retries(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        now.duration_since(since) < RETRIED_FOR
    }

    /// The configured time, doubled for each header time-out in a row.
    fn headers_allowed(&self, configured: Duration) -> Duration {
        let doubled = 2_u32.saturating_pow(self.header_timeouts);
        configured.max(HEADERS_MIN).saturating_mul(doubled)
    }
}

impl Machine {
    /// How long the response headers of the watch, or of the streaming list, may take.
    ///
    /// The limit for a watch is the time after which the server must have ended it anyway. A streaming
    /// list is answered at once or refused, as any list, and has the time of a list.
    pub(crate) fn headers_allowed(&self) -> Duration {
        if self.is_streaming() {
            return LIST_STALL;
        }
        let configured = self.options.timeouts().watch_headers;
        let allowed = self.refusals.headers_allowed(configured);
        allowed.min(self.watch_ends())
    }

    /// How long the server was asked to let the watch last.
    pub(super) fn watch_lasts(&self) -> Duration {
        match &self.state {
            State::Watching(watch) => watch.lasts,
            _ => Duration::ZERO,
        }
    }

    /// Time after which the server must have ended the watch, from the request on.
    fn watch_ends(&self) -> Duration {
        self.watch_lasts().saturating_add(WATCH_GRACE)
    }

    /// The response headers of a watch did not arrive in time. Events that happen meanwhile are not lost:
    /// the next watch begins at the same revision.
    pub(super) fn watch_unanswered(&mut self, error: &Error, now: Instant) -> Action {
        let is_last = self.headers_allowed() == self.watch_ends();
        self.refusals.header_timeouts = self.refusals.header_timeouts.saturating_add(1);
        self.require_probe_if_watched();
        let next = if is_last { Next::List } else { Next::Watch };
        self.pause(error, now, next)
    }

    /// The server, or what stands before it, did not open a watch.
    pub(super) fn watch_refused(&mut self, error: &Error, now: Instant) -> Action {
        let next = match error.class() {
            Class::Expired => return self.relist_expired(now),
            Class::TooManyRequests => Next::Watch,
            // The server has not read the request.
            Class::ConnectionRefused | Class::Connection => {
                self.require_probe_if_watched();
                Next::Watch
            }
            // Another server, or a restored one, may answer next.
            Class::Unavailable | Class::Timeout if self.refusals.retries(now) => {
                self.require_probe_if_watched();
                Next::Watch
            }
            // Expired credentials say nothing about the server's history.
            Class::Unauthorized if self.refusals.retries(now) => Next::Watch,
            _ if error.retry_after().is_some() => Next::Watch,
            _ => Next::List,
        };
        self.pause(error, now, next)
    }

    /// A watch that follows a list at once continues from a state that this server has just sent.
    fn require_probe_if_watched(&mut self) {
        if self.has_watched {
            self.probe.require();
        }
    }
}
