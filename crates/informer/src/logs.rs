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
//! last task has ended and its last handle is dropped. It has no parent, for it outlives whatever it was
//! made in. Both spans are of level ERROR, so that they are there whichever level is wanted. A reflector
//! that stands alone has none, for its caller runs it and can put it into one; nor has a
//! [`Subscription`](crate::shared_informer::Subscription), whose events are handled by whoever polls it.
//!
//! No span is made per request or per change of an object: what a span costs is being entered and left
//! once per poll of a task, which is next to nothing while nobody listens.
//!
//! # Events
//!
//! `name` is that of the informer or the reflector (field `reflector` or `informer`), `expects` the API
//! version and kind; `error` is in words.
//!
//! | level | event | fields besides these |
//! | --- | --- | --- |
//! | ERROR | `a handler panicked` | `handler`, `object`, `reason` |
//! | ERROR | `the watch error handler panicked`, `a collector of metrics panicked` | |
//! | ERROR | `mutated`: an object was changed in the cache | `error` |
//! | ERROR | `inconsistent`: a check has found that cache and server differ | `difference` |
//! | ERROR | `no thread for the handler` | `handler`, `error` |
//! | ERROR | `the informer's loop ended by itself`, `a reflector ended by itself`: a panic in a type's own code | |
//! | WARN | `failed`: a list or a watch, whichever way | `what`, `error`, `failures` in a row; `open_for` and `events` of a watch |
//! | WARN | `not served`: a list or a watch was refused with 404; at DEBUG until the kind has been listed again | as `failed`, and `hint` |
//! | WARN | `skipped`: an object or an event that can't be kept as it is; ten of a list, then `a list had more objects like these`, and ten a minute of everything else, then `more were skipped within a minute` | `error`; `skipped` |
//! | WARN | `not processed`: the process function of a `controller::Config` returned an error or panicked; ten a minute, then `more were not processed within a minute` | `error`; `left_out` |
//! | WARN | `not indexed`: an index function, or one of a derived index, failed; ten a minute of each, then `more were not indexed within a minute` | `error`; `objects` |
//! | WARN | `slow handler`: a callback took more than 100 ms while others waited; ten a minute of each handler, then `it was slow more often within a minute` | `handler`, `object`, `took`, `depth`; `times` |
//! | WARN | `a handler is slower than its events`: more than 1,024 wait | `handler`, `depth` |
//! | WARN | `a resync period under 1 s is raised to 1 s`, and two others of periods that can't be had | `asked_for`, and the period that holds |
//! | WARN | `constructors ask for each other's kinds; the usual informer takes the place`: of a factory, in several threads | `kind`, `own` |
//! | WARN | `differs from its own copy`, `comparing it panicked`: of the mutation detector | `object`, `revision` |
//! | WARN | `not checked`: a consistency check has failed; at INFO `not checked: the revision is too old` | `what`, `error` |
//! | INFO | `a list took long`: more than ten seconds | `total`, `pages`, `objects`, `asking`, `reading`, `handing_on`, `handed_on` |
//! | INFO | `listing, as the streaming list has failed`, at DEBUG while retries fail; `the streaming list has no objects, and the cache has some`; `events arrive in no order of revision; the server is not asked about them until the next list`; `the store is full; the watch is let go of` | |
//! | DEBUG | `starting`, `stopped` | |
//! | DEBUG | `listed`, `streamed` | `revision`, `count` |
//! | DEBUG | `the watch closed` | `open_for`, `events` |
//! | DEBUG | `the revision is too old` | as `failed` |
//! | DEBUG | `forcing a resync` | |
//! | DEBUG | `a list does not mend it`, `not checked: the queue does not become empty`: of consistency checks | `difference` |
//!
//! What is counted instead of written is told with the next line of its sort, or when a watch ends, and
//! not at once: nobody is woken for it.
//!
//! Nothing is logged per change of an object, unless something is wrong with it. Names of objects, fields
//! and positions are logged, never their content, and nothing of a request's headers: an object may be a
//! Secret. What others say is repeated, as one line and cut at 1 KiB: a server in the message of a `Status`,
//! and the program itself in what its transforms and index functions return and its handlers panic with.

mod log_limiter;

pub(crate) use self::log_limiter::{LINES_PER_WINDOW, LogLimiter};

use tracing::Span;

/// Maximum names that [`first_few`] lists.
const NAMES_LISTED: usize = 3;

/// `a`, `a, b`, `a, b, c and 2 more`.
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
