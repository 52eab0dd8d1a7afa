//! What the library logs, through [`tracing`](https://docs.rs/tracing), and at which level.
//!
//! # Spans
//!
//! | span | fields | around |
//! | --- | --- | --- |
//! | `informer` | `name`, `kind` | the informer's loop, its reflectors and its handlers |
//! | `handler` | `name` | one handler, inside its informer's span; what a callback logs is in it |
//!
//! An informer has one `informer` span from [`build`](crate::shared_informer::Builder::build) until its
//! last task has ended and its last handle is dropped. The span has no parent, because the informer outlives
//! the scope that built it. Both spans have level ERROR, so that they exist at every log level. A standalone
//! reflector has no span: its caller runs it and can add one. A
//! [`Subscription`](crate::shared_informer::Subscription) has none either: the task that polls it handles its
//! events.
//!
//! There is no span per request or per change of an object. A span is entered and left once per poll of a
//! task, which costs almost nothing while no subscriber is installed.
//!
//! # Events
//!
//! `name` is the name of the informer or reflector (field `informer` or `reflector`), `expects` the API
//! version and kind, and `error` a text.
//!
//! | level | event | fields besides these |
//! | --- | --- | --- |
//! | ERROR | `a handler panicked` | `handler`, `object`, `reason` |
//! | ERROR | `the watch error handler panicked`, `a collector of metrics panicked` | |
//! | ERROR | `mutated`: an object was changed in the cache | `error` |
//! | ERROR | `inconsistent`: a check has found that cache and server differ | `difference` |
//! | ERROR | `no thread for the handler` | `handler`, `error` |
//! | ERROR | `the informer failed`: one of its tasks panicked, or it met an error that it can't recover from | `cause` |
//! | ERROR | `the handler ended: a panic outside of its callbacks` | `handler`, `reason` |
//! | WARN | `failed`: a list or a watch, for any reason | `what`, `error`, `failures` in a row; `open_for` and `events` of a watch |
//! | WARN | `not served`: a list or a watch was rejected with 404; at DEBUG until the kind has been listed again | as `failed`, and `hint` |
//! | WARN | `skipped`: an object or an event that can't be stored as it is; ten per list, then `a list had more objects like these`, and ten a minute of all others, then `more were skipped within a minute` | `error`; `skipped` |
//! | WARN | `not processed`: the process function of a `controller::Config` returned an error or panicked; ten a minute, then `more were not processed within a minute` | `error`; `left_out` |
//! | WARN | `not indexed`: an index function, or one of a derived index, failed; ten a minute of each, then `more were not indexed within a minute` | `error`; `objects` |
//! | WARN | `slow handler`: a callback took more than 100 ms while other events waited; ten a minute per handler, then `it was slow more often within a minute` | `handler`, `object`, `took`, `depth`; `times` |
//! | WARN | `a handler is slower than its events`: more than 1,024 wait | `handler`, `depth` |
//! | WARN | `a resync period under 1 s is raised to 1 s`, and two other messages about periods that were changed | `asked_for`, and the check period |
//! | WARN | `differs from its own copy`, `comparing it panicked`: from the mutation detector | `object`, `revision` |
//! | WARN | `not checked`: a consistency check failed; at INFO `not checked: the revision is too old` | `what`, `error` |
//! | INFO | `a list took long`: more than ten seconds | `total`, `pages`, `objects`, `asking`, `reading`, `handing_on`, `handed_on` |
//! | INFO | `listing, as the streaming list has failed`, at DEBUG while retries fail; `the streaming list has no objects, and the cache has some`; `events arrive in no order of revision; the server is not asked about them until the next list`; `the store is full; the watch is let go of` | |
//! | DEBUG | `starting`, `stopped` | |
//! | DEBUG | `listed`, `streamed` | `revision`, `count` |
//! | DEBUG | `the watch closed` | `open_for`, `events` |
//! | DEBUG | `the revision is too old` | as `failed` |
//! | DEBUG | `forcing a resync` | |
//! | DEBUG | `a list has not mended it`, `not checked: the queue does not become empty`: from consistency checks | `difference` |
//!
//! Lines over a limit are counted, not written. The count is logged with the next line of the same kind, or
//! when a watch ends; no timer wakes a task to log it.
//!
//! Nothing is logged per change of an object, unless the change is faulty. Names of objects, fields and
//! positions are logged, but never their content, because an object may be a Secret. Request headers are not
//! logged. Texts from other sources are logged as one line of at most 1 KiB: the message of a server's
//! `Status`, errors of the program's transforms and index functions, and panic messages of its handlers.

mod log_limiter;

pub(crate) use self::log_limiter::{LINES_PER_WINDOW, LogLimiter};

use tracing::Span;

/// Maximum names that [`first_few`] lists.
const NAMES_LISTED: usize = 3;

/// Joins names as `a`, `a, b` or `a, b, c and 2 more`.
pub(crate) fn first_few<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let first: Vec<_> = names.clone().take(NAMES_LISTED).collect();
    let more = names.count() - first.len();
    let text = first.join(", ");
    match more {
        0 => text,
        _ => format!("{text} and {more} more"),
    }
}

/// The span of an informer.
pub(crate) fn informer_span(name: &str, kind: &str) -> Span {
    tracing::error_span!(parent: None, "informer", name, kind)
}

/// The span of one of its handlers.
pub(crate) fn handler_span(informer: &Span, name: &str) -> Span {
    tracing::error_span!(parent: informer, "handler", name)
}
