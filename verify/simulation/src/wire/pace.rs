//! [`Pace`]: whether one source waits as long as it must after each refusal, and requests what it must.
//!
//! It is told what the source sees, and knows the smallest pause of the back-off, not the drawn one.

use std::{cmp::max, time::Duration};

use kube_informer::{
    limits::RETRY_AFTER_MAX,
    transport::{Class, Error, ListOptions},
};
use tokio::time::Instant;

/// The first pause at least.
const FIRST: Duration = Duration::from_millis(800);

/// Pauses double until they last as long at least.
const CAP: Duration = Duration::from_secs(30);

/// For so long a watch is retried that is refused for now; then everything may be listed.
const RETRIED_FOR: Duration = Duration::from_secs(600);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    List,
    /// Whether the server knows a revision.
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

/// The refusals of one source, one after the other.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How many of them in a row had to be followed by a pause, without an answer between them.
    refusals: u32,
    not_before: Option<Instant>,
    /// Until when the watch that was refused last must not be followed by a list.
    no_list_before: Option<Instant>,
    /// A list may follow whatever else happens.
    compared: bool,
    /// The last thing that happened is an event of an old object.
    heard_old: bool,
}

impl Pace {
    pub(super) fn new(compared: bool) -> Self {
        Self {
            compared,
            ..Self::default()
        }
    }

    /// Something is asked for.
    ///
    /// # Errors
    /// It is too early, or the watch before should be retried instead.
    pub(super) fn asks(&mut self, asked: Asked) -> Result<(), String> {
        let now = Instant::now();
        let lists = matches!(asked, Asked::List | Asked::Stream);
        let heard_old = std::mem::take(&mut self.heard_old);
        if lists && heard_old && !self.compared {
            return Err(format!("a {asked:?} because of an event of an old object"));
        }
        if lists && self.no_list_before.is_some_and(|at| now < at) {
            return Err(format!(
                "a {asked:?} after a watch that was refused for now"
            ));
        }
        match self.not_before.filter(|at| now < *at) {
            None => Ok(()),
            Some(at) => Err(format!(
                "a {asked:?} {:?} too early after {} refusals",
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

    /// A watch has sent something.
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

/// Whether this is a watch that goes on from where it was, once the server is back.
fn keeps_its_revision(asked: Asked, error: &Error) -> bool {
    let class = error.class();
    let is_away = matches!(class, Class::Unavailable | Class::Timeout);
    asked == Asked::Watch && (is_away || class == Class::Unauthorized)
}

/// What is too old or too new, and what a server does not know how to stream or to answer, is asked for
/// in another way, at once.
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
