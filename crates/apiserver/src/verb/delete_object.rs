//! Deletion of one object, apart from its namespace.
//!
//! Guarantees:
//! - preconditions are compared with the state that is deleted;
//! - an object with finalizers is first marked (MODIFIED) and removed later (DELETED); `Foreground` and `Orphan` add their finalizers, and removing dependents is a controller's work, not the store's;
//! - a pod is deleted gracefully: it is always marked first, and stays as long as its grace period says if it runs on a node; nothing but a deletion with grace period 0, as a kubelet sends it, removes it then. One that runs nowhere, or has ended, is removed in the same step: two revisions, and no request sees the store between them;
//! - a second deletion can only shorten the grace period.
//!
//! A direct call of the server's owner is not graceful: it removes a pod in one revision, unless finalizers hold it.

mod options;

use std::cmp::min;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::write::{How, Origin, Subject};
use crate::object::Object;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::strategy::{Grace, GracePeriod};

pub(crate) use options::DeleteOptions;

/// What became of the object.
pub(crate) enum Deleted {
    Removed(Arc<Entry>),
    /// It stays until its finalizers are gone and its grace period is over.
    Marked(Arc<Entry>),
}

/// Deletes one object; does not continue the deletion of its namespace.
pub(super) fn delete_object(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How,
) -> Result<Deleted, ApiError> {
    let resource = subject.resource;
    loop {
        let (entry, object) = subject.newest(shared)?;
        options.check(subject, &object, &entry)?;
        let now = shared.settings.clock.now();
        let (marked, removes) = fate(subject, &object, options, how.origin, now);
        let mut state = shared.lock();
        let still = state.newest(resource.collection, &entry.key);
        if still.is_none_or(|current| !Arc::ptr_eq(current, &entry)) {
            continue;
        }
        let mut last = Arc::clone(&entry);
        if let Some(marked) = marked {
            let revision = if how.dry_run {
                entry.revision
            } else {
                state.next_revision()
            };
            last = entry.changed(resource, &marked, revision);
            if !how.dry_run {
                shared.commit(&mut state, resource, &entry.key, Some(Arc::clone(&last)));
            }
        }
        if !removes {
            return Ok(Deleted::Marked(last));
        }
        if how.dry_run {
            return Ok(Deleted::Removed(last));
        }
        let revision = state.next_revision();
        shared.commit(&mut state, resource, &entry.key, None);
        return Ok(Deleted::Removed(Arc::new(last.at_revision(revision))));
    }
}

/// The object that a deletion stores, if it changes it, and whether it removes it then.
fn fate(
    subject: Subject<'_>,
    object: &Object,
    options: &DeleteOptions,
    origin: Origin,
    now: Timestamp,
) -> (Option<Object>, bool) {
    let grace_period = if origin == Origin::Request {
        (subject.resource.strategy.hooks.grace_period)(object, options.grace_seconds, now)
    } else {
        GracePeriod::None
    };
    let finalizers = options.finalizers(object);
    let grace = match grace_period {
        // Not even the finalizers can be changed meanwhile.
        GracePeriod::Running => return (None, false),
        GracePeriod::None if finalizers.is_empty() => return (None, true),
        GracePeriod::Until(grace) => grace,
        GracePeriod::None => Grace {
            seconds: 0,
            until: object.deletion_time().map_or(now, |due| min(due, now)),
        },
    };
    let removes = finalizers.is_empty() && grace.seconds == 0;
    let marked = marked(object, &finalizers, &grace);
    ((marked != *object).then_some(marked), removes)
}

/// The object as it waits for its removal.
fn marked(object: &Object, finalizers: &[String], grace: &Grace) -> Object {
    let mut marked = object.clone();
    let finalizers = (!finalizers.is_empty()).then(|| json!(finalizers));
    marked.set_meta("finalizers", finalizers);
    let until = grace.until.to_string();
    marked.set_meta("deletionTimestamp", Some(json!(until)));
    marked.set_meta("deletionGracePeriodSeconds", Some(json!(grace.seconds)));
    let generation = object.number("generation").unwrap_or(0);
    if generation > 0 && !object.is_deleting() {
        marked.set_meta("generation", Some(json!(generation + 1)));
    }
    marked
}
