//! Deletes one object.
//!
//! If the object was the last one in a terminating namespace, this module does not remove the namespace.
//!
//! Marking an object for deletion sets its `deletionTimestamp`.
//!
//! Guarantees:
//! - preconditions are checked against exactly the state that is then marked or removed;
//! - an object with finalizers is first marked for deletion (MODIFIED), and removed later (DELETED);
//! - a pod on a node is only marked. A DELETE with grace period 0, for example from a kubelet, then removes
//!   the pod;
//! - a pod without a node, or in the phase `Succeeded` or `Failed`, is marked and removed by the same DELETE,
//!   unless the pod has finalizers;
//! - a second deletion can only shorten the grace period;
//! - a deletion by a method call of the embedded server uses no grace period, even for pods.
//!
//! The policies `Foreground` and `Orphan` add the finalizers that Kubernetes defines for them. The module
//! does not delete dependents: [`garbage_collection`](super::garbage_collection) does.

mod options;

use std::cmp::min;
use std::sync::Arc;
use std::vec;

use jiff::Timestamp;
use serde_json::json;

use super::namespace_content;
use super::write::{How, Origin, Subject};
use crate::object::Object;
use crate::resource::{CollectionId, Resource};
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::strategy::{Grace, GracePeriod};

pub(crate) use options::DeleteOptions;

/// Objects of one resource that the server deletes, after the deletion of their namespace or definition.
pub(super) struct Doomed {
    resource: Arc<Resource>,
    entries: vec::IntoIter<Arc<Entry>>,
}

impl Doomed {
    pub(super) fn new(resource: &Arc<Resource>, entries: Vec<Arc<Entry>>) -> Doomed {
        Doomed {
            resource: Arc::clone(resource),
            entries: entries.into_iter(),
        }
    }

    /// Deletes the next object, and returns its collection. Returns `None` if no object is left.
    ///
    /// `options` returns the options of the deletion, given the object's uid.
    pub(super) fn delete_next(
        &mut self,
        shared: &Shared,
        options: fn(&str) -> DeleteOptions,
        how: How<'_>,
    ) -> Option<CollectionId> {
        let entry = self.entries.next()?;
        let subject = Subject {
            resource: &self.resource,
            namespace: entry.namespace(),
            name: entry.name(),
        };
        let object = Object::stored(entry.object(&self.resource));
        let options = options(object.text("uid"));
        // Another client can have deleted or replaced the object first.
        if let Err(cause) = delete_object(shared, subject, &options, how)
            && !matches!(cause.code(), 404 | 409)
        {
            let (resource, key) = (self.resource.kind.group_resource(), &entry.key);
            tracing::warn!(%resource, %key, %cause, "failed to delete an object that has to be deleted");
        }
        Some(self.resource.collection)
    }
}

/// The result of a deletion, with the last state of the object.
pub(crate) enum Deleted {
    Removed(Arc<Entry>),
    /// The object was marked for deletion, and remains until its finalizers and grace period end.
    Marked(Arc<Entry>),
}

/// Removes one object, or marks it for deletion.
///
/// If the object was the last one in a terminating namespace, the caller must remove the namespace.
pub(super) fn delete_object(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How<'_>,
) -> Result<Deleted, ApiError> {
    let resource = subject.resource;
    loop {
        let (entry, object) = subject.newest(shared)?;
        options.check(subject, &object, entry.revision)?;
        let now = shared.settings.clock.now();
        let finalizers = options.finalizers(&object, shared.garbage_policy(resource));
        let (marked, removes) = fate(subject, (&object, &finalizers), options, how.origin, now);
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
        namespace_content::complete(shared, &mut state, resource, &entry.key);
        return Ok(Deleted::Removed(Arc::new(last.at_revision(revision))));
    }
}

/// Returns a copy of `object` that is marked for deletion, and whether the caller must remove the object.
///
/// `finalizers` replaces the finalizers of the object. The caller must store the copy, if there is one,
/// before the caller removes the object.
fn fate(
    subject: Subject<'_>,
    (object, finalizers): (&Object, &[String]),
    options: &DeleteOptions,
    origin: Origin,
    now: Timestamp,
) -> (Option<Object>, bool) {
    let grace_period = if origin == Origin::Request {
        (subject.resource.strategy.hooks.grace_period)(object, options.grace_seconds, now)
    } else {
        GracePeriod::None
    };
    let grace = match grace_period {
        // During the grace period even the finalizers can't be changed.
        GracePeriod::Running => return (None, false),
        GracePeriod::None if finalizers.is_empty() => return (None, true),
        GracePeriod::Until(grace) => grace,
        GracePeriod::None => Grace {
            seconds: 0,
            until: object.deletion_time().map_or(now, |due| min(due, now)),
        },
    };
    let removes = finalizers.is_empty() && grace.seconds == 0;
    let marked = marked(object, finalizers, &grace);
    ((marked != *object).then_some(marked), removes)
}

/// Returns a copy of `object` that is marked for deletion. Only the first mark increments `generation`.
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
