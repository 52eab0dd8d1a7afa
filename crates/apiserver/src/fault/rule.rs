//! Defines the statements of a fault plan.
//!
//! A statement is a rule for future requests, an action that runs immediately, or a seed for random
//! decisions.
//!
//! Guarantees: the printed form of a statement parses to an equal statement.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::edit::{EDITS, Edit};
use super::matching::Match;
use crate::request_log::LoggedRequest;
use crate::route::Verb;

/// A statement of a fault plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    /// Sets the seed for the random decisions of later rules.
    Seed(u64),
    Rule(FaultRule),
    Action(Action),
}

/// Applies `fault` to future requests that match `matches`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FaultRule {
    pub(crate) matches: Match,
    pub(crate) fault: Fault,
    /// The rule does not affect the first `skip` matching requests.
    pub(crate) skip: u64,
    /// Probability with which the rule affects a matching request, after the first `skip` matching requests.
    pub(crate) chance: Share,
    /// Maximum number of requests that the rule affects.
    pub(crate) times: Option<u64>,
}

/// Effect of a rule on a matching request or on its response.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    Answer(ErrorResponse),
    /// Resets the connection instead of executing the request.
    Reset,
    /// Rejects a watch that sets `sendInitialEvents`, as an API server without streaming lists does.
    RefuseStreaming,
    Delay(Moment, Duration),
    End(Ending, After),
    Split(Split),
    Edit(Edit, Which),
    /// Inserts a text into the body of a watch after this number of events.
    Send(Arc<str>, u64),
}

/// An error response that the server sends instead of executing the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorResponse {
    pub(crate) code: u16,
    pub(crate) form: Form,
    pub(crate) retry_after: Option<u32>,
}

/// Format of the body of an error response that a fault causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Status,
    /// A plain-text body, as in the response to a request that kube-apiserver's flow control rejects.
    Plain,
    /// A `Status` object with the cause `ResourceVersionTooLarge`.
    TooLarge,
}

/// What a fault delays: the response, its first body byte, or each watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Answer,
    FirstByte,
    EachEvent,
}

/// Way in which a fault stops a response body before its regular end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The body ends without an error.
    Cut,
    /// The body ends with an error, as after a connection reset.
    Break,
    /// The server sends no more data until a `thaw` action or the removal of all faults.
    Freeze,
}

/// Number of events or bytes of a response body after which a fault ends or freezes the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Events(u64),
    Bytes(u64),
}

/// Positions at which a fault splits a response body into chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    Every(NonZeroU64),
    /// Splits the body after each of these byte offsets, which are in ascending order.
    At(Vec<u64>),
    Randomly,
}

/// The watch events that a fault drops, duplicates or changes, numbered from 1 in each watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Nth(NonZeroU64),
    Every(NonZeroU64),
    Share(Share),
    Bookmarks,
    /// The bookmark after the initial events of a streaming list.
    EndBookmark,
}

/// A probability in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share(pub(crate) u32);

/// An action that runs immediately. If the variant has a [`Match`], the action affects matching watches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    End(Ending, Match),
    Thaw(Match),
    CloseSlow(Match),
    Send(Arc<str>, Match),
    SendBookmarks(Match),
    ExpireHistory,
    Restart(Restart),
    Refuse(Option<Duration>),
    Accept,
}

/// Revision that the store has after a simulated restart of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    Here,
    At(u64),
    /// The current revision minus this number.
    Back(u64),
}

/// Keyword of each [`Ending`] in a fault plan, such as `cut`.
pub(crate) const ENDINGS: [(&str, Ending); 3] = [
    ("cut", Ending::Cut),
    ("break", Ending::Break),
    ("freeze", Ending::Freeze),
];

// === impl FaultRule ===

impl FaultRule {
    pub(crate) fn new(matches: Match, fault: Fault) -> FaultRule {
        FaultRule {
            matches,
            fault,
            skip: 0,
            chance: Share::ALWAYS,
            times: None,
        }
    }
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.matches, self.fault)?;
        if self.skip > 0 {
            write!(f, " skip={}", self.skip)?;
        }
        if self.chance != Share::ALWAYS {
            write!(f, " chance={}", self.chance)?;
        }
        if let Some(times) = self.times {
            write!(f, " x{times}")?;
        }
        Ok(())
    }
}

// === impl Fault ===

impl Fault {
    /// Returns whether the fault acts on individual watch events.
    pub(crate) fn needs_events(&self) -> bool {
        matches!(
            self,
            Fault::Delay(Moment::EachEvent, _)
                | Fault::End(_, After::Events(_))
                | Fault::Edit(..)
                | Fault::Send(..)
        )
    }

    /// Returns whether the fault can affect only watch requests.
    pub(crate) fn needs_watch(&self) -> bool {
        self.needs_events() || matches!(self, Fault::RefuseStreaming)
    }

    /// Returns whether the fault causes an error response or a reset instead of the request's execution.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(
            self,
            Fault::Answer(_) | Fault::Reset | Fault::RefuseStreaming
        )
    }

    /// Returns whether the verb and the list options of `request` allow the fault to affect the request.
    pub(crate) fn fits(&self, request: &LoggedRequest) -> bool {
        match self {
            Fault::RefuseStreaming => {
                request.verb == Verb::Watch && request.options.send_initial_events.is_some()
            }
            fault => request.verb == Verb::Watch || !fault.needs_events(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Answer(refusal) => refusal.fmt(f),
            Fault::Reset => f.write_str("reset"),
            Fault::RefuseStreaming => f.write_str("refuse streaming"),
            Fault::Delay(moment, duration) => {
                let moment = match moment {
                    Moment::Answer => "answer",
                    Moment::FirstByte => "first byte",
                    Moment::EachEvent => "each event",
                };
                write!(f, "delay {moment} {}", Period(*duration))
            }
            Fault::End(ending, After::Events(count)) => write!(f, "{ending} after {count} events"),
            Fault::End(ending, After::Bytes(count)) => write!(f, "{ending} after {count} bytes"),
            Fault::Split(Split::Every(bytes)) => write!(f, "split every {bytes} bytes"),
            Fault::Split(Split::At(borders)) => {
                let borders: Vec<String> = borders.iter().map(u64::to_string).collect();
                write!(f, "split at {}", borders.join(","))
            }
            Fault::Split(Split::Randomly) => f.write_str("split randomly"),
            Fault::Edit(edit, which) => write!(f, "{} {which}", named(&EDITS, *edit)),
            Fault::Send(text, after) => write!(f, "send {} after {after} events", Quoted(text)),
        }
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        match self.form {
            Form::Status => {}
            Form::Plain => f.write_str(" plain")?,
            Form::TooLarge => f.write_str(" too-large")?,
        }
        match self.retry_after {
            Some(seconds) => write!(f, " retry-after={seconds}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(named(&ENDINGS, *self))
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Which::All => f.write_str("events"),
            Which::Nth(nth) => write!(f, "event {nth}"),
            Which::Every(nth) => write!(f, "every {nth} events"),
            Which::Share(share) => write!(f, "{share} of events"),
            Which::Bookmarks => f.write_str("bookmarks"),
            Which::EndBookmark => f.write_str("end-bookmark"),
        }
    }
}

// === impl Share ===

impl Share {
    pub(crate) const ALWAYS: Share = Share(1_000_000);

    pub(crate) fn draw(self, rng: &mut fastrand::Rng) -> bool {
        self == Share::ALWAYS || rng.u32(0..1_000_000) < self.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (percent, rest) = (self.0 / 10_000, self.0 % 10_000);
        if rest == 0 {
            return write!(f, "{percent}%");
        }
        let digits = format!("{rest:04}");
        write!(f, "{percent}.{}%", digits.trim_end_matches('0'))
    }
}

// === impl Action ===

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::End(ending, matches) => write!(f, "{ending} {matches}"),
            Action::Thaw(matches) => write!(f, "thaw {matches}"),
            Action::CloseSlow(matches) => write!(f, "close {matches}"),
            Action::Send(text, matches) => write!(f, "send {} to {matches}", Quoted(text)),
            Action::SendBookmarks(matches) => write!(f, "send bookmarks to {matches}"),
            Action::ExpireHistory => f.write_str("expire history"),
            Action::Restart(Restart::Here) => f.write_str("restart"),
            Action::Restart(Restart::At(revision)) => write!(f, "restart at {revision}"),
            Action::Restart(Restart::Back(revisions)) => write!(f, "restart back {revisions}"),
            Action::Refuse(None) => f.write_str("refuse connections"),
            Action::Refuse(Some(period)) => {
                write!(f, "refuse connections for {}", Period(*period))
            }
            Action::Accept => f.write_str("accept connections"),
        }
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Seed(seed) => write!(f, "seed {seed}"),
            Statement::Rule(rule) => rule.fmt(f),
            Statement::Action(action) => action.fmt(f),
        }
    }
}

/// Wrapper that prints a text in double quotes, with JSON escape sequences.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", serde_json::Value::from(self.0))
    }
}

/// Wrapper that prints a duration in whole seconds if possible, and otherwise in milliseconds.
struct Period(Duration);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_millis() == 0 {
            return write!(f, "{}s", self.0.as_secs());
        }
        write!(f, "{}ms", self.0.as_millis())
    }
}

/// Returns the keyword of `value` in `words`.
fn named<T: PartialEq + Copy>(words: &[(&'static str, T)], value: T) -> &'static str {
    let found = words.iter().find(|(_, known)| *known == value);
    found.map_or("", |(word, _)| word)
}
