//! [`Pace`]: checks the pauses of one source after failures, and its choice of requests.
//!
//! It receives what the source observes, and knows the minimum pause of the backoff, not the drawn one.

use std::{cmp::max, time::Duration};

use kube_informer::{
    limits::RETRY_AFTER_MAX,
    transport::{Class, Error, ListOptions},
};
use tokio::time::Instant;

/// Minimum of the first pause.
const FIRST: Duration = Duration::from_millis(800);

/// Minimum of the longest pause; pauses double up to it.
const CAP: Duration = Duration::from_secs(30);

/// Time for which a temporarily rejected watch is retried; then the source may list.
const RETRIED_FOR: Duration = Duration::from_secs(600);

/// Kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    List,
    /// Checks whether the server knows a revision.
    Probe,
    Watch,
    /// A streaming list.
    Stream,
}

impl Asked {
    pub(super) fn is_watch(self) -> bool {
        matches!(self, Self::Watch | Self::Stream)
    }

    pub(super) fn of(options: &ListOptions, watch: bool) -> Self {
        let is_list = options.resource_version_match.is_none();
        match (watch, options.send_initial_events) {
            (true, Some(_)) => Self::Stream,
            (true, None) => Self::Watch,
            (false, _) if is_list => Self::List,
            (false, _) => Self::Probe,
        }
    }
}

/// The failures of one source, in order.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Number of consecutive failures that require a pause, without a response in between.
    refusals: u32,
    not_before: Option<Instant>,
    /// Time before which the last rejected watch must not be followed by a list.
    no_list_before: Option<Instant>,
    /// Whether a list may follow at any time.
    compared: bool,
    /// Whether the last event was that of an old object.
    heard_old: bool,
}

impl Pace {
    pub(super) fn new(compared: bool) -> Self {
        Self {
            compared,
            ..Self::default()
        }
    }

    /// Records a request.
    ///
    /// # Errors
    /// Returns an error if it is too early, or the watch before should be retried instead.
    pub(super) fn asks(&mut self, asked: Asked) -> Result<(), String> {
        let now = Instant::now();
        let lists = matches!(asked, Asked::List | Asked::Stream);
        let heard_old = std::mem::take(&mut self.heard_old);
        if lists && heard_old && !self.compared {
            return Err(format!(
                "a {asked:?} in response to an event of an old object"
            ));
        }
        if lists && self.no_list_before.is_some_and(|at| now < at) {
            return Err(format!("a {asked:?} after a temporarily rejected watch"));
        }
        match self.not_before.filter(|at| now < *at) {
            None => Ok(()),
            Some(at) => Err(format!(
                "a {asked:?} {:?} too early after {} failures",
                at - now,
                self.refusals
            )),
        }
    }

    pub(super) fn answered(&mut self) {
        self.refusals = 0;
        self.not_before = None;
        self.no_list_before = None;
    }

    /// Records that a watch has sent data.
    pub(super) fn heard(&mut self, old: bool) {
        self.heard_old = old;
    }

    pub(super) fn refused(&mut self, asked: Asked, error: &Error) {
        self.no_list_before = keeps_its_revision(asked, error).then(|| {
            let until = Instant::now() + RETRIED_FOR;
            self.no_list_before.map_or(until, |at| at.min(until))
        });
        if !must_pause(asked, error) {
            return;
        }
        let grown = FIRST * 2_u32.saturating_pow(self.refusals.min(10));
        self.refusals += 1;
        let asked_for = error.retry_after().unwrap_or_default();
        let pause = max(grown.min(CAP), asked_for.min(RETRY_AFTER_MAX));
        self.not_before = Some(Instant::now() + pause);
    }
}

/// Returns whether this watch resumes from its revision once the server is available again.
fn keeps_its_revision(asked: Asked, error: &Error) -> bool {
    let class = error.class();
    let is_away = matches!(class, Class::Unavailable | Class::Timeout);
    asked == Asked::Watch && (is_away || class == Class::Unauthorized)
}

/// Returns whether a failure requires a pause.
///
/// A revision that is too old or too new, and an unsupported streaming list or request, are retried
/// immediately in another way.
fn must_pause(asked: Asked, error: &Error) -> bool {
    let class = error.class();
    let is_away = matches!(class, Class::TooManyRequests | Class::ConnectionRefused);
    match asked {
        _ if matches!(class, Class::Expired | Class::TooLargeResourceVersion) => false,
        Asked::List | Asked::Watch => true,
        Asked::Probe => {
            let is_lost = matches!(class, Class::Connection | Class::Timeout);
            is_away || is_lost || matches!(class, Class::Unavailable | Class::Unauthorized)
        }
        Asked::Stream => {
            let has_retry_after =
                matches!(class, Class::Internal | Class::Unavailable | Class::Server);
            is_away || has_retry_after && error.retry_after().is_some()
        }
    }
}
