//! Opens watches: determines the start of a watch and its initial events, and registers the watcher.
//!
//! Guarantees:
//! - no event is lost or delivered twice between the initial and the live events. One step under the server's
//!   lock captures the initial events and registers the watcher;
//! - an error before the start of the response is an HTTP error. A later error is an ERROR event, and the 200
//!   response ends after this event;
//! - start revisions, streaming lists and bookmarks follow Kubernetes 1.36.

mod frame;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::body::Body;
use crate::fault::{Framing, OpenBodyGuard};
use crate::negotiate::{Encoding, Format};
use crate::request_log::LoggedRequest;
use crate::resource::Resource;
use crate::route::{ListOptions, Revision};
use crate::selector::Selection;
use crate::shared::{Serving, Shared, State};
use crate::status::ApiError;
use crate::storage::{Entry, Event, Snapshot};
use crate::watch_cache::{Filter, Receiver, WATCHES_MAX, Watcher, inbox};

use super::list::prefix;
use frame::Framer;
use stream::{Backlog, Registration, Timers, WatchStream};

/// Minimum duration in seconds of a watch without `timeoutSeconds`.
///
/// The duration is random between this value and twice this value, as with kube-apiserver's flag
/// `--min-request-timeout`.
const TIMEOUT_SECONDS_MIN: u64 = 1_800;

/// Maximum duration of a watch in seconds.
///
/// A client can disappear without closing its connection. This limit ends the watches of such clients.
const TIMEOUT_SECONDS_MAX: u64 = 24 * 60 * 60;

/// Range of the random `retryAfterSeconds` in a "Too large resource version" error of a watch.
///
/// The range applies only if the watch requests initial events and the collection has no watch cache. The
/// values are those of `startWatching` in Kubernetes' `etcd3/watcher.go`.
const RETRY_SECONDS: std::ops::Range<u32> = 1..4;

/// The parameters of a watch request.
pub(crate) struct WatchCall<'a> {
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) namespace: Option<&'a str>,
    /// Name of the object in the URL; `None` for a collection.
    pub(crate) name: Option<&'a str>,
    pub(crate) options: &'a ListOptions,
    pub(crate) format: Format,
    pub(crate) request: &'a Arc<LoggedRequest>,
    /// Whether `timeoutSeconds` is negative, so that the deadline of the watch has already passed.
    pub(crate) is_over: bool,
}

/// Start of a watch: the events that the watch sends first.
enum Start {
    /// The watch sends every current object, then later events.
    Objects,
    /// The watch sends the events after this revision, which may be in the future.
    After(u64),
    /// The watch sends only events that occur after the watcher is registered.
    Now,
}

/// The state from which the response body of a new watch is created.
///
/// One step under the server's lock captures all fields, at the same revision of the store.
struct Opened {
    registration: Registration,
    receiver: Receiver,
    held: OpenBodyGuard,
    /// Snapshot of the collection, if the watch starts with all current objects.
    snapshot: Option<Snapshot>,
    /// Events after the start revision that were stored before the watcher was registered.
    events: Vec<Arc<Event>>,
    revision: u64,
    /// Whether the collection has a watch cache.
    cached: bool,
    timeout: Duration,
}

/// Opens a watch and returns the body of its response, which ends at the watch's deadline.
///
/// # Cancel safety
///
/// Dropping this future or the returned body closes the watch.
pub(crate) async fn watch(shared: &Arc<Shared>, call: WatchCall<'_>) -> Result<Body, ApiError> {
    let options = call.options;
    let selection = selection(shared, &call)?;
    let start = start(options)?;
    call.format.encoding.check_stream()?;
    let filter = Filter {
        prefix: prefix(call.resource, call.namespace),
        reader: call
            .resource
            .is_reader_of(&selection)
            .then(|| Arc::clone(call.resource)),
        selection,
        after: if let Start::After(after) = start {
            after
        } else {
            0
        },
    };
    if let (Start::Objects, Revision::At(revision)) = (&start, options.revision_or_fault()?)
        && let Err(error) = shared.reach(call.resource.collection, revision).await
    {
        let error = match error.status().retry_after() {
            Some(_) => error,
            None => error.retry_in(shared.lock().rng.u32(RETRY_SECONDS)),
        };
        return Ok(Body::full(frame::error(&error, call.format.encoding)));
    }
    let body = open(shared, &call, &filter, &start)?;
    if call.is_over {
        return Ok(Body::full(Bytes::new()));
    }
    Ok(body)
}

fn selection(shared: &Shared, call: &WatchCall<'_>) -> Result<Selection, ApiError> {
    let options = call.options;
    let mut selection = Selection::parse(
        call.resource.fields(),
        options.label_selector.as_deref().unwrap_or_default(),
        options.field_selector.as_deref().unwrap_or_default(),
        || options.check_watch(shared.settings.watch_list),
    )?;
    if let Some(name) = call.name {
        let selects = options.field_selector.is_some();
        if selects && selection.fields.required_name() != Some(name) {
            return Err(ApiError::bad_request(
                "fieldSelector metadata.name doesn't match requested name",
            ));
        }
        selection.fields.require_name(name);
    }
    Ok(selection)
}

/// Determines from the options of the request which events the watch sends first.
fn start(options: &ListOptions) -> Result<Start, ApiError> {
    Ok(
        match (options.revision_or_fault()?, options.send_initial_events) {
            (Revision::Unset | Revision::Any, None) | (_, Some(true)) => Start::Objects,
            (Revision::Unset | Revision::Any, Some(false)) => Start::Now,
            (Revision::At(revision), _) => Start::After(revision),
        },
    )
}

/// Registers the watcher and creates the body of the response.
fn open(
    shared: &Arc<Shared>,
    call: &WatchCall<'_>,
    filter: &Filter,
    start: &Start,
) -> Result<Body, ApiError> {
    let opened = match register(shared, call, filter, start)? {
        Ok(opened) => opened,
        Err(too_old) => {
            return Ok(Body::full(frame::error(&too_old, call.format.encoding)));
        }
    };
    let bookmarks = call.options.allow_watch_bookmarks;
    // Without a watch cache, only the bookmark after the initial events is sent.
    let timed_bookmarks = bookmarks && opened.cached;
    let backlog = match opened.snapshot {
        Some(snapshot) => {
            let selected = |entry: &&Arc<Entry>| filter.matches(entry);
            let entries: Vec<Arc<Entry>> = snapshot
                .range(&filter.prefix, "")
                .filter(selected)
                .cloned()
                .collect();
            let end = (bookmarks && shared.settings.watch_list).then_some(opened.revision);
            Backlog::objects(entries, end)
        }
        None => Backlog::events(opened.events, filter),
    };
    let backlog = match backlog.len() {
        0 => None,
        length => Some(shared.response_budget.hold(length, backlog)?),
    };
    let framer = Framer::new(call.resource, call.format, shared.settings.clock.clone());
    let timers = Timers::new(opened.timeout, timed_bookmarks);
    let stream = WatchStream::new(opened.registration, opened.receiver);
    let body = Body::stream(stream.run(backlog, framer, timers));
    let framing = match call.format.encoding {
        // A watch is never in YAML.
        Encoding::Json | Encoding::Yaml => Framing::Lines,
        Encoding::Protobuf => Framing::Lengths,
    };
    Ok(shared.faults.disturb_watch(opened.held, body, framing))
}

/// Registers the watcher and reads the initial events, in one step under the server's lock.
///
/// The error of the outer `Result` becomes an HTTP error response. The error of the inner `Result` becomes an
/// ERROR event in a 200 response.
fn register(
    shared: &Arc<Shared>,
    call: &WatchCall<'_>,
    filter: &Filter,
    start: &Start,
) -> Result<Result<Opened, ApiError>, ApiError> {
    let collection = call.resource.collection;
    let (sender, receiver) = inbox(shared.settings.watcher_buffer);
    let mut state = shared.lock();
    if shared.serving(&state, call.resource) == Serving::Gone {
        return Err(ApiError::no_such_path());
    }
    if state.watches() >= WATCHES_MAX {
        return Err(ApiError::too_many_requests().retry_in(1));
    }
    let events = match start {
        Start::After(after) => match replay(&state, call.resource, *after) {
            Ok(events) => events,
            Err(error) => return Ok(Err(error)),
        },
        Start::Objects | Start::Now => Vec::new(),
    };
    let seconds = call.options.timeout_seconds;
    let seconds =
        seconds.unwrap_or_else(|| state.rng.u64(TIMEOUT_SECONDS_MIN..2 * TIMEOUT_SECONDS_MIN));
    let id = state.next_watcher();
    let watcher = Watcher {
        filter: filter.clone(),
        bookmarks: call.options.allow_watch_bookmarks,
        request: Arc::clone(call.request),
        sender,
    };
    state.caches[collection.0].open(id, watcher);
    if shared.has_changed(call.resource) {
        // The change has ended the watches that were open, so this one ends after its first events.
        state.caches[collection.0].close(id);
    }
    Ok(Ok(Opened {
        registration: Registration::new(shared, collection, id),
        receiver,
        held: shared.faults.hold(call.request),
        snapshot: matches!(start, Start::Objects).then(|| state.storage.snapshot(collection)),
        events,
        revision: state.storage.revision(),
        cached: !state.caches[collection.0].is_off(),
        timeout: Duration::from_secs(seconds.min(TIMEOUT_SECONDS_MAX)),
    }))
}

/// Returns a collection's events after the revision `after`, or an error if some are no longer stored.
fn replay(state: &State, resource: &Resource, after: u64) -> Result<Vec<Arc<Event>>, ApiError> {
    let cache = &state.caches[resource.collection.0];
    let horizon = state.storage.horizon(resource.collection);
    if cache.is_off() {
        if after < horizon {
            return Err(ApiError::watch_compacted());
        }
    } else {
        // Storage may drop events of any collection when its event logs exceed their total size limit.
        // The cache of that collection adjusts its horizon only at the collection's next event.
        let horizon = horizon.max(cache.horizon());
        if after < horizon {
            return Err(ApiError::watch_too_old(after, horizon));
        }
    }
    Ok(state.storage.events_after(resource.collection, after))
}
