//! Handles GET of a collection.
//!
//! Selects the state and the objects of a page, and writes the response body.
//!
//! Guarantees:
//! - all pages of a paged list show the state of the first page. If this state is no longer available, the
//!   response is a 410 error with a new continue token, which continues the list from the current state;
//! - the revision of the list is the revision of the listed state, not the largest revision of the items;
//! - the body is written in chunks while the client reads it;
//! - the time to select a page does not depend on the number of objects after the page. The exceptions are
//!   the first page of one namespace, and a continue token that the server has not returned recently;
//! - lists of custom kinds have `items` before `metadata`, as in Kubernetes.

mod body;
mod token;

use std::sync::Arc;

use crate::resource::Resource;
use crate::route::{ListOptions, Revision};
use crate::selector::Selection;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::{Compacted, Entry, Position, Snapshot};

pub(crate) use body::{write, write_protobuf};
use token::ContinueToken;

/// One page of a list, and values for the metadata of the list.
pub(crate) struct Page {
    pub(crate) revision: u64,
    pub(crate) entries: Vec<Arc<Entry>>,
    /// Continue token of the next page, if any.
    pub(crate) continue_token: Option<String>,
    /// Number of objects after this page. `None` on the last page, and for requests with a selector.
    pub(crate) remaining: Option<usize>,
}

/// The parameters of one list request.
pub(crate) struct ListCall<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) options: &'a ListOptions,
}

/// The state from which a page is read, and the start and the limit of the page.
struct Start {
    snapshot: Snapshot,
    /// Minimum key of the objects in the page. Empty for the first page.
    ///
    /// If only one namespace is listed, the key does not contain the prefix `<namespace>/`.
    from: String,
    limit: Option<usize>,
    /// Whether the request can match only one object, as [`is_of_one`] determines. The page then has no
    /// continue token.
    is_of_one: bool,
}

impl Page {
    pub(crate) fn of_one(entry: &Arc<Entry>) -> Page {
        Page {
            revision: entry.revision,
            entries: vec![Arc::clone(entry)],
            continue_token: None,
            remaining: None,
        }
    }
}

/// Returns whether the call requests the first page of a list that can contain only one object. Kubernetes
/// ignores the limit of such a list.
///
/// A list can contain only one object if its field selector contains `metadata.name=<name>`. If the kind is
/// namespaced, the path or the field selector must also specify one namespace.
fn is_of_one(call: &ListCall<'_>, selection: &Selection) -> bool {
    let has_key = call.namespace.is_some()
        || !call.resource.is_namespaced()
        || selection.fields.requires_namespace();
    let is_first = call.options.continue_token.is_none();
    has_key && is_first && selection.fields.required_name().is_some()
}

/// Returns one page of a list.
///
/// # Cancel safety
/// Dropping the future has no effect on the server.
pub(crate) async fn list(shared: &Shared, call: ListCall<'_>) -> Result<Page, ApiError> {
    let options = call.options;
    let selection = Selection::parse(
        call.resource.fields(),
        options.label_selector.as_deref().unwrap_or_default(),
        options.field_selector.as_deref().unwrap_or_default(),
        || options.check_list(),
    )?;
    let start = match options.continue_token.as_deref() {
        Some(token) => resume(shared, &call, token)?,
        None => begin(shared, &call, &selection).await?,
    };
    let prefix = prefix(call.resource, call.namespace);
    page(shared, call.resource, &start, &prefix, &selection)
}

/// Returns the key prefix of the listed objects: `<namespace>/`, or an empty string for all namespaces.
pub(crate) fn prefix(resource: &Resource, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) if resource.is_namespaced() => format!("{namespace}/"),
        _ => String::new(),
    }
}

/// Returns the state from which the first page of a list is read, and the page's start and limit.
///
/// The state is the current state, or the state at exactly the requested `resourceVersion`. A request can
/// require the exact state with `resourceVersionMatch=Exact`. A `limit` with a `resourceVersion` above 0 and
/// no `resourceVersionMatch` has the same effect. An exception is a list that can contain only one object,
/// because Kubernetes ignores the `limit` of such a list.
async fn begin(
    shared: &Shared,
    call: &ListCall<'_>,
    selection: &Selection,
) -> Result<Start, ApiError> {
    let options = call.options;
    let collection = call.resource.collection;
    let cached = !shared.lock().caches[collection.0].is_off();
    let limit = options
        .limit
        .map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let whole = |snapshot, limit| Start {
        snapshot,
        from: String::new(),
        limit,
        is_of_one: is_of_one(call, selection),
    };
    let exact = match options.resource_version_match.as_deref() {
        Some(matching) => matching == "Exact",
        None => limit.is_some() && !is_of_one(call, selection),
    };
    match options.revision()? {
        Revision::Any if cached => Ok(whole(shared.lock().storage.snapshot(collection), None)),
        Revision::Unset | Revision::Any => {
            Ok(whole(shared.lock().storage.snapshot(collection), limit))
        }
        Revision::At(revision) if exact => {
            shared.reach(collection, revision).await?;
            let rewind = shared.lock().storage.rewind(collection, revision);
            let rewind = rewind.map_err(|Compacted| ApiError::list_too_old())?;
            Ok(whole(rewind.snapshot(), limit))
        }
        Revision::At(revision) => {
            shared.reach(collection, revision).await?;
            Ok(whole(shared.lock().storage.snapshot(collection), limit))
        }
    }
}

/// Returns the start of the page that the continue token `token` requests.
fn resume(shared: &Shared, call: &ListCall<'_>, token: &str) -> Result<Start, ApiError> {
    let token = ContinueToken::decode(token)
        .map_err(|cause| ApiError::bad_request(format!("invalid continue token: {cause}")))?;
    let revision = call.options.revision()?;
    if !matches!(revision, Revision::Unset | Revision::Any) {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let collection = call.resource.collection;
    let state = shared.lock();
    // The watch cache ignores the limit of a request for any state.
    let cached = !state.caches[collection.0].is_off();
    let limit = call
        .options
        .limit
        .filter(|_| !(cached && matches!(revision, Revision::Any)))
        .map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let snapshot = match token.revision {
        None => state.storage.snapshot(collection),
        Some(revision) => {
            let current = state.storage.revision();
            if revision > current {
                return Err(ApiError::revision_too_large(revision, current));
            }
            let rewind = state.storage.rewind(collection, revision);
            drop(state);
            let rewind = rewind
                .map_err(|Compacted| ApiError::continue_expired(token.at_latest().encode()))?;
            rewind.snapshot()
        }
    };
    Ok(Start {
        snapshot,
        from: token.start,
        limit,
        is_of_one: false,
    })
}

fn page(
    shared: &Shared,
    resource: &Resource,
    start: &Start,
    prefix: &str,
    selection: &Selection,
) -> Result<Page, ApiError> {
    let limit = start.limit.unwrap_or(usize::MAX);
    let reader = Some(resource).filter(|reader| reader.is_reader_of(selection));
    let mut entries = Vec::new();
    let mut range = start.snapshot.range(prefix, &start.from).peekable();
    while entries.len() < limit
        && let Some(entry) = range.next()
    {
        entry.check_readable(resource)?;
        let view = reader.and_then(|reader| entry.viewed(reader));
        if selection.matches(view.as_ref().unwrap_or(entry).selectable()) {
            entries.push(Arc::clone(entry));
        }
    }
    let more = range.peek().is_some() && !start.is_of_one;
    let revision = start.snapshot.revision;
    // An empty page has no last object, so it has no continue token either.
    let next = entries.last().filter(|_| more);
    let next = next.map(|last| format!("{}\0", &last.key[prefix.len()..]));
    let remaining = next.as_ref().filter(|_| selection.is_everything());
    let remaining = remaining.map(|next| {
        let at = |from: &str| Position {
            collection: resource.collection,
            epoch: start.snapshot.epoch,
            revision,
            prefix: prefix.to_owned(),
            start: from.to_owned(),
        };
        let listed = match (prefix, start.from.as_str()) {
            ("", "") => Some(start.snapshot.len()),
            (_, from) => shared.remaining.lock().get(&at(from)),
        };
        let remaining = match listed {
            Some(listed) => listed.saturating_sub(entries.len()),
            None => range.count(),
        };
        shared.remaining.lock().keep(at(next), remaining);
        remaining
    });
    let continue_token = next.map(|start| {
        let revision = Some(revision);
        ContinueToken { revision, start }.encode()
    });
    Ok(Page {
        revision,
        entries,
        continue_token,
        remaining,
    })
}
