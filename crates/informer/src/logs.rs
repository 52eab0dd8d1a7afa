//! Creates the library's [`tracing`](https://docs.rs/tracing) spans, and documents its log events.
//!
//! # Spans
//!
//! | span | fields | contains |
//! | --- | --- | --- |
//! | `informer` | `name`, `kind` | the informer's loop, its reflectors and its handlers |
//! | `handler` | `name` | one handler, with the events that its callbacks log; a child of the informer's span |
//!
//! The `informer` span exists from [`build`](crate::shared_informer::Builder::build) until the informer's
//! last task has ended and its last handle is dropped. The span has no parent, because the informer may
//! outlive the scope in which it was built. Both spans have level ERROR, so they exist at every log level. A
//! standalone reflector has no span, but the program that runs the reflector can add one. A
//! [`Subscription`](crate::shared_informer::Subscription) has no span either, because the program's own task
//! handles its events.
//!
//! There is no span per request or per change of an object.
//!
//! # Events
//!
//! Most events have the name of their informer or reflector in the field `informer` or `reflector`. Other
//! common fields are `expects`, which is the API version and kind, `error`, which is the error as text, and
//! `what`, which is the requested collection, such as `pods in default`.
//!
//! | level | event | other fields |
//! | --- | --- | --- |
//! | ERROR | `a handler panicked` | `handler`, `object`, `reason` |
//! | ERROR | `the watch error handler panicked`, `a collector of metrics panicked` | |
//! | ERROR | `mutated`: the program changed an object in the cache | `error` |
//! | ERROR | `inconsistent`: a consistency check has found that the cache differs from the server | `difference` |
//! | ERROR | `can't start the thread of the handler` | `handler`, `error` |
//! | ERROR | `the informer failed`: one of its tasks panicked or failed permanently | `cause` |
//! | ERROR | `the handler ended: a panic outside of its callbacks` | `handler`, `reason` |
//! | WARN | `failed`: a list or a watch failed, except for the causes in the rows `not served` and `the revision is too old` | `what`, `error`, `failures` (number of failures in a row); for a watch also `open_for` and `events` |
//! | WARN | `not served`: a list or a watch was rejected with 404; later ones are logged at DEBUG until the kind has been listed again | `what`, `error`, `failures`; at WARN also `hint` |
//! | WARN | `skipped`: an object or an event can't be stored as the server sent it; at most ten lines per list, then `a list had more objects like these`; otherwise at most ten lines per minute, then `more were skipped within a minute` | `error`; in the second event `skipped`, the number of skipped objects in the list, including the logged ones; in the third event `skipped`, the number of lines above the limit |
//! | WARN | `not processed`: the process function of a `controller::Config` returned an error or panicked; at most ten lines per minute, then `more were not processed within a minute` | `error`; in the second event `left_out`, the number of lines above the limit |
//! | WARN | `not indexed`: a function of an index or of a derived index failed; at most ten lines per minute for each, then `more were not indexed within a minute` | `error`; in the second event `objects`, the number of lines above the limit |
//! | WARN | `slow handler`: a callback took more than 100 ms while other events waited; at most ten lines per minute and handler, then `the handler was slow more often within a minute` | `handler`, `object`, `took`, `depth`; in the second event `handler` and `times`, the number of lines above the limit |
//! | WARN | `a handler is slower than its events`: more than 1,024 events wait | `handler`, `depth` |
//! | WARN | `a resync period under 1 s is raised to 1 s`, `the informer has started; a shorter resync period is raised to its check period`, `the informer has no resync period, so the period of its handler has no effect` | `requested`; in the second event also `check_period` |
//! | WARN | `an object differs from its own copy; mutations of it are not detected`, `comparing an object with its copy panicked; mutations of it are not detected`: from the mutation detector | `object`, `revision` |
//! | WARN | `not checked`: a consistency check failed; at INFO `not checked: the revision is too old` | `what`, `error` |
//! | WARN | `not saved`: a save failed; at DEBUG if the informer has not synced or has stopped, or if the start from the saved store has logged the reason | `path`, `error` |
//! | WARN | `the warm start waits`: a request of a warm start failed and is retried | `what`, `error`, `attempt` |
//! | INFO | `a list took long`: more than ten seconds | `total`, `pages`, `objects`, `requesting`, `reading`, `delivering`, `delivered` |
//! | INFO | `the streaming list failed; listing instead`, at DEBUG if the reflector's previous request failed too; `the streaming list is empty, and the cache is not; listing to confirm it`; `events arrive in no order of revision; they are not checked against the server until the next list`; `the store is full; closing the watch` | |
//! | INFO | `the definition of the kind changed`: the custom resource definition was created, deleted or modified | `availability` |
//! | INFO | `started`: the result of the start from a saved store; at WARN if a saved store exists and is not used | `start`; at WARN also `path` |
//! | DEBUG | `starting`, `stopped` | |
//! | DEBUG | `saved`: the cache was saved | `path`, `objects`, `bytes` |
//! | DEBUG | `listed`, `streamed` | `revision`, `count` |
//! | DEBUG | `the watch closed` | `open_for`, `events` |
//! | DEBUG | `the revision is too old` | `what`, `error`; for a watch also `open_for` and `events` |
//! | DEBUG | `forcing a resync` | |
//! | DEBUG | `a list has not removed the difference`, `not checked: the queue does not become empty`: from consistency checks | `difference` |
//!
//! Some kinds of log lines are limited, as the table states. Lines above the limit are counted and not
//! written. If the limit applies to a list, the count is logged when the list ends. If the limit applies to a
//! minute, the count is logged after the minute: before the next line of the same kind, or, for `skipped`,
//! when a watch ends.
//!
//! Changes of objects are not logged, except those that can't be stored or indexed. The library logs names of
//! objects, and names and positions of fields. It never logs the content of objects, because an object may be
//! a Secret. Request headers are not logged. Each text from a server or the program is logged as one line of
//! at most 1 KiB. Such texts are the message of a `Status`, errors of transforms and index functions, and
//! panic messages of handlers.

mod log_limiter;

pub(crate) use self::log_limiter::{LINES_PER_WINDOW, LogLimiter};

use tracing::Span;

/// Maximum number of names that [`first_few`] includes.
const NAMES_LISTED: usize = 3;

/// Returns the first [`NAMES_LISTED`] names as text, such as `a, b, c and 2 more`.
pub(crate) fn first_few<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let first: Vec<_> = names.clone().take(NAMES_LISTED).collect();
    let more = names.count() - first.len();
    let text = first.join(", ");
    match more {
        0 => text,
        _ => format!("{text} and {more} more"),
    }
}

/// Creates the tracing span of an informer, without a parent span.
pub(crate) fn informer_span(name: &str, kind: &str) -> Span {
    tracing::error_span!(parent: None, "informer", name, kind)
}

/// Creates the tracing span of one handler, as a child of the informer's span.
pub(crate) fn handler_span(informer: &Span, name: &str) -> Span {
    tracing::error_span!(parent: informer, "handler", name)
}
