//! [`Pace`]: whether one source waits as long as it must after each refusal.
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
}

impl Pace {
    /// Something is asked for.
    ///
    /// # Errors
    /// It is too early.
    pub(super) fn asks(&self, asked: Asked) -> Result<(), String> {
        let now = Instant::now();
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
        *self = Self::default();
    }

    pub(super) fn refused(&mut self, asked: Asked, error: &Error) {
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

/// What is too old or too new, and what a server does not know how to stream or to answer, is asked for
/// in another way, at once.
fn must_pause(asked: Asked, error: &Error) -> bool {
    let class = error.class();
    let is_away = matches!(class, Class::TooManyRequests | Class::ConnectionRefused);
    match asked {
        _ if matches!(class, Class::Expired | Class::TooLargeResourceVersion) => false,
        Asked::List | Asked::Watch => true,
        Asked::Probe => is_away || matches!(class, Class::Connection | Class::Timeout),
        Asked::Stream => {
            let asks_for_patience = matches!(class, Class::Internal | Class::Server);
            is_away || asks_for_patience && error.retry_after().is_some()
        }
    }
}
