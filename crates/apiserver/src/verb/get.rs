//! Handles GET of one object.
//!
//! Guarantees:
//! - without `resourceVersion`, the response contains the most recent state;
//! - with `resourceVersion`, the server waits until the store reaches this revision, and the response
//!   contains the state at this revision or a later one.

use std::sync::Arc;

use crate::route::{ListOptions, Revision};
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;

use super::write::Subject;

/// Returns one object, after the store has reached the requested revision.
///
/// # Cancel safety
/// Dropping the future has no effect on the server.
pub(crate) async fn get(
    shared: &Shared,
    subject: Subject<'_>,
    options: &ListOptions,
) -> Result<Arc<Entry>, ApiError> {
    if let Revision::At(revision) = options.revision_or_fault()? {
        shared.reach(subject.resource.collection, revision).await?;
    }
    let state = shared.lock();
    let entry = state
        .storage
        .get(subject.resource.collection, &subject.key());
    let entry = entry.cloned().ok_or_else(|| subject.not_found())?;
    entry.check_readable(subject.resource)?;
    Ok(entry)
}
