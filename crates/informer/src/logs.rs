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
//! Most events have the name of their informer or reflector in the field `informer` or `reflector`. Many also
//! have the API version and kind in the field `expects`. The table lists the other fields. Some of them occur
//! in several events:
//!
//! - `error`: the error as text
//! - `what`: the requested collection, such as `pods in default`
//! - `failures`: the number of failures in a row
//! - `open_for`, `events`: for a watch, the time since its request and the number of its events
//!
//! | level | event | meaning | other fields |
//! | --- | --- | --- | --- |
//! | ERROR | `a handler panicked` | | `handler`, `object`, `reason` |
//! | ERROR | `the watch error handler panicked` | | |
//! | ERROR | `a collector of metrics panicked` | | |
//! | ERROR | `mutated` | the program changed an object in the cache | `error` |
//! | ERROR | `inconsistent` | a consistency check has found that the cache differs from the server | `difference` |
//! | ERROR | `can't start the thread of the handler` | | `handler`, `error` |
//! | ERROR | `the informer failed` | one of its tasks panicked or failed permanently | `cause` |
//! | ERROR | `the handler ended: a panic outside of its callbacks` | | `handler`, `reason` |
//! | WARN | `failed` | a list or a watch failed for a reason other than those of the next three rows | `what`, `error`, `failures`, `open_for`, `events` |
//! | WARN | `not served` | a list or a watch was rejected with 404 | `what`, `error`, `failures`, `hint` |
//! | DEBUG | `not served` | another 404 before the kind has been listed again | `what`, `error`, `failures` |
//! | DEBUG | `the revision is too old` | a list or a watch failed for this reason | `what`, `error`, `open_for`, `events` |
//! | WARN | `skipped` | an object or an event can't be stored as the server sent it | `error` |
//! | WARN | `not processed` | the process function of a `controller::Config` returned an error or panicked | `error` |
//! | WARN | `not indexed` | a function of an index or of a derived index failed | `error` |
//! | WARN | `slow handler` | a callback took more than 100 ms while other events waited | `handler`, `object`, `took`, `depth` |
//! | WARN | `a handler is slower than its events` | more than 1,024 events wait | `handler`, `depth` |
//! | WARN | `a resync period under 1 s is raised to 1 s` | | `requested` |
//! | WARN | `the informer has started; a shorter resync period is raised to its check period` | | `requested`, `check_period` |
//! | WARN | `the informer has no resync period, so the period of its handler has no effect` | | `requested` |
//! | WARN | `an object differs from its own copy; mutations of it are not detected` | from the mutation detector | `object` |
//! | WARN | `comparing an object with its copy panicked; mutations of it are not detected` | from the mutation detector | `object`, `revision` |
//! | WARN | `not checked` | a consistency check failed | `what`, `error` |
//! | INFO | `not checked: the revision is too old` | a consistency check failed for this reason | `what`, `error` |
//! | DEBUG | `not checked: the queue does not become empty` | a consistency check was not possible | |
//! | DEBUG | `a list has not removed the difference` | from a consistency check; `again` is whether the objects are listed again | `difference`, `again` |
//! | WARN | `not saved` | a save failed | `path`, `error` |
//! | DEBUG | `not saved` | a save failed: the informer has not synced or has stopped, or the event `started` has reported the reason | `path`, `error` |
//! | DEBUG | `saved` | the cache was saved | `path`, `objects`, `bytes` |
//! | INFO | `started` | the informer started from a saved store, or there is no saved store | `start` |
//! | WARN | `started` | the informer did not start from a saved store, for another reason | `start`, `path` |
//! | WARN | `the warm start waits` | a request of a warm start failed and is retried | `what`, `error`, `attempt` |
//! | INFO | `a list took long` | more than ten seconds | `total`, `pages`, `objects`, `requesting`, `reading`, `delivering`, `delivered` |
//! | INFO | `the streaming list failed; listing instead` | at DEBUG if the reflector's previous request failed too | |
//! | INFO | `the streaming list is empty, and the cache is not; listing to confirm it` | | |
//! | INFO | `events arrive in no order of revision; they are not checked against the server until the next list` | | |
//! | INFO | `the store is full; closing the watch` | | |
//! | INFO | `the definition of the kind changed` | the custom resource definition was created, deleted or modified | `availability` |
//! | DEBUG | `starting`, `stopped` | | |
//! | DEBUG | `listed`, `streamed` | | `revision`, `count` |
//! | DEBUG | `the watch closed` | | `open_for`, `events` |
//! | DEBUG | `forcing a resync` | | |
//!
//! # Limits
//!
//! Four events are limited to ten lines. Lines above the limit are counted and not written. Another event,
//! also at level WARN, then reports their number:
//!
//! | limited event | limit of ten lines per | event above the limit | number of unwritten lines |
//! | --- | --- | --- | --- |
//! | `skipped`, in a list | list | `a list had more objects like these` | `skipped`, which also counts the ten written lines |
//! | `skipped`, otherwise | minute | `more were skipped within a minute` | `skipped` |
//! | `not processed` | minute | `more were not processed within a minute` | `left_out` |
//! | `not indexed` | minute, for all indices of an informer or for one derived index | `more were not indexed within a minute` | `objects` |
//! | `slow handler` | minute and handler | `the handler was slow more often within a minute` | `times` |
//!
//! If the limit applies to a list, the number is logged when the list ends. If the limit applies to a minute,
//! the number is logged after the minute: before the next line of the same kind, or, for `skipped`, when a
//! watch ends.
//!
//! # Content
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

pub(crate) fn informer_span(name: &str, kind: &str) -> Span {
    tracing::error_span!(parent: None, "informer", name, kind)
}

pub(crate) fn handler_span(informer: &Span, name: &str) -> Span {
    tracing::error_span!(parent: informer, "handler", name)
}
