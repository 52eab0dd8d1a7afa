//! Checks that one source sends each request at a permitted time, and that the source pauses after failures.
//!
//! A source is one list and its watch. An informer can have several sources, such as one per namespace. The
//! informer adds a random time to each backoff pause, so the module checks only the minimum duration.

use std::{cmp::max, time::Duration};

use kube_informer::{
    limits::RETRY_AFTER_MAX,
    transport::{Class, Error, ListOptions},
};
use tokio::time::Instant;

/// Minimum duration of the first backoff pause.
const FIRST: Duration = Duration::from_millis(800);

/// Value at which the minimum duration of a backoff pause stops growing.
///
/// The minimum is [`FIRST`] for the first pause, and doubles with each consecutive failure.
const CAP: Duration = Duration::from_secs(30);

/// Time for which the source must retry a temporarily rejected watch, and must not list.
///
/// Consecutive rejections do not extend the time.
const RETRIED_FOR: Duration = Duration::from_secs(600);

/// Kind of a request that a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    List,
    /// A list request that only checks whether the server knows a revision.
    Probe,
    Watch,
    /// A watch request with `sendInitialEvents`, which requests a streaming list.
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

/// Checker of the requests of one source.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Number of failures that required a pause, since the last success; see [`must_pause`].
    refusals: u32,
    not_before: Option<Instant>,
    /// Until this time, the source must retry the rejected watch, and must not list.
    no_list_before: Option<Instant>,
    /// Whether the informer periodically compares its cache with the server.
    ///
    /// Such a comparison can cause a list at any time. Without comparisons, a list directly after an event of
    /// an old object is an error.
    compared: bool,
    /// True from an event of an old object until the next line, the end of the response, or the next request.
    ///
    /// Such an event contains the JSON member [`OLD_OBJECT`](super::OLD_OBJECT).
    heard_old: bool,
}

impl Pace {
    pub(super) fn new(compared: bool) -> Self {
        Self {
            compared,
            ..Self::default()
        }
    }

    /// Checks that the source may send a request of this kind now.
    ///
    /// # Errors
    /// Returns an error if the source must still pause after a failure. Also returns an error if the source
    /// must not list now; see [`no_list_before`](Self::no_list_before) and [`compared`](Self::compared).
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

    /// Records that a watch has received a line, or that its body has ended.
    ///
    /// `old` is whether the line is an old object that the server sent again.
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

/// Returns whether the failed request is a watch that was rejected temporarily.
///
/// The informer must then retry the watch from the same revision, instead of sending a list request.
fn keeps_its_revision(asked: Asked, error: &Error) -> bool {
    let class = error.class();
    let is_away = matches!(class, Class::Unavailable | Class::Timeout);
    asked == Asked::Watch && (is_away || class == Class::Unauthorized)
}

/// Returns whether the source must pause before the next request after this failure.
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
