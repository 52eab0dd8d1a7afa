//! DELETE of one object or of a collection.
//!
//! Guarantees:
//! - preconditions are compared with the state that is deleted;
//! - an object with finalizers is first marked (MODIFIED) and removed later (DELETED); `Foreground` and `Orphan` add their finalizers, and removing dependents is a controller's work, not the store's;
//! - a pod is deleted gracefully: it is always marked first, and stays as long as its grace period says if it runs on a node; nothing but a deletion with grace period 0, as a kubelet sends it, removes it then. One that runs nowhere, or has ended, is removed in the same step: two revisions, and nobody sees the store between them;
//! - a second delete moves nothing but a shorter grace period;
//! - what is removed last from a namespace that is being deleted takes the namespace with it.
//!
//! A direct call of the server's owner is not graceful: it removes a pod in one revision, unless finalizers hold it.

mod options;

use std::cmp::{max, min};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::update::Subject;
use super::{How, Origin, namespace};
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;

pub(crate) use options::DeleteOptions;

/// The seconds that a pod is given to end where it does not say (`DefaultTerminationGracePeriodSeconds`).
const POD_GRACE_SECONDS: i64 = 30;

/// Whose deletion is answered with the object, and not with a `Status` (`ReturnDeletedObject` in the registry's storage).
const SHOWN: [&str; 18] = [
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "deviceclasses.resource.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourceclaims.resource.k8s.io",
    "resourceclaimtemplates.resource.k8s.io",
    "resourcequotas",
    "resourceslices.resource.k8s.io",
    "serviceaccounts",
    "services",
    "storageclasses.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "volumeattributesclasses.storage.k8s.io",
];

/// What became of the object.
pub(crate) enum Deleted {
    Removed(Arc<Entry>),
    /// It stays until its finalizers are gone and its grace period is over.
    Marked(Arc<Entry>),
}

/// What a deletion makes of an object.
struct Fate {
    /// The object as it is to be stored, if that is a change.
    marked: Option<Object>,
    /// Whether it is removed then.
    removes: bool,
}

/// A grace period, and when it is over.
struct Grace {
    seconds: i64,
    until: Timestamp,
}

/// How long an object is given.
enum Leave {
    /// Nothing: it is not deleted gracefully, or its time is up.
    None,
    Until(Grace),
    /// What it has been given already.
    Running,
}

/// Whether a deletion is answered with the object.
pub(crate) fn shows_what_is_gone(resource: &Resource) -> bool {
    let name = resource.kind.group_resource();
    SHOWN.contains(&name.as_str())
}

/// Deletes one object.
pub(crate) fn delete(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How,
) -> Result<Deleted, ApiError> {
    if subject.resource.is_core("namespaces") {
        return namespace::delete(shared, subject, options, how);
    }
    let deleted = delete_object(shared, subject, options, how)?;
    if let (Deleted::Removed(entry), false) = (&deleted, how.dry_run) {
        namespace::lost(shared, subject.resource, entry.namespace(), how);
    }
    Ok(deleted)
}

/// Deletes one object, whatever that means for its namespace.
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
        let fate = fate(subject, &object, options, how.origin, now);
        let mut state = shared.lock();
        let still = state.newest(resource.collection, &entry.key);
        if still.is_none_or(|current| !Arc::ptr_eq(current, &entry)) {
            continue;
        }
        let mut last = Arc::clone(&entry);
        if let Some(marked) = fate.marked {
            let revision = if how.dry_run {
                entry.revision
            } else {
                state.next_revision()
            };
            let key = Arc::clone(&entry.key);
            last = Arc::new(Entry::new(resource, key, marked.members(), revision));
            if !how.dry_run {
                shared.commit(&mut state, resource, &entry.key, Some(Arc::clone(&last)));
            }
        }
        if !fate.removes {
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

fn fate(
    subject: Subject<'_>,
    object: &Object,
    options: &DeleteOptions,
    origin: Origin,
    now: Timestamp,
) -> Fate {
    let is_graceful = subject.resource.is_core("pods") && origin == Origin::Request;
    let leave = if is_graceful {
        leave_of_pod(object, options.grace_seconds, now)
    } else {
        Leave::None
    };
    let finalizers = options.finalizers(object);
    let (grace, removes) = match leave {
        // Not even the finalizers can be changed meanwhile.
        Leave::Running => {
            return Fate {
                marked: None,
                removes: false,
            };
        }
        Leave::Until(grace) => {
            let removes = finalizers.is_empty() && grace.seconds == 0;
            (grace, removes)
        }
        Leave::None if finalizers.is_empty() => {
            return Fate {
                marked: None,
                removes: true,
            };
        }
        Leave::None => {
            let due = deletion_time(object).map_or(now, |due| min(due, now));
            let grace = Grace {
                seconds: 0,
                until: due,
            };
            (grace, false)
        }
    };
    let marked = marked(object, &finalizers, &grace);
    Fate {
        marked: (marked != *object).then_some(marked),
        removes,
    }
}

/// As the strategy of pods has it (`CheckGracefulDelete`, and `BeforeDelete` around it).
fn leave_of_pod(pod: &Object, asked: Option<i64>, now: Timestamp) -> Leave {
    let until = |start: Timestamp, seconds: i64| {
        let end = start.checked_add(SignedDuration::from_secs(seconds));
        end.unwrap_or(Timestamp::MAX)
    };
    if let Some(due) = deletion_time(pod) {
        let running = pod.number("deletionGracePeriodSeconds").unwrap_or(0);
        return match asked {
            _ if running == 0 => Leave::None,
            // It can be shortened and not prolonged.
            Some(seconds) if seconds < running => {
                let due = until(due, seconds.saturating_sub(running));
                let overdue = due < now && seconds != 0;
                Leave::Until(Grace {
                    seconds: if overdue { 1 } else { seconds },
                    until: max(due, now),
                })
            }
            _ => Leave::Running,
        };
    }
    let part = |part: &str, member: &str| pod.get(part).map(|part| part[member].clone());
    let is_assigned = part("spec", "nodeName").is_some_and(|node| node.as_str() > Some(""));
    let phase = part("status", "phase").unwrap_or_default();
    let own = part("spec", "terminationGracePeriodSeconds").and_then(|seconds| seconds.as_i64());
    let seconds = match asked.or(own).unwrap_or(POD_GRACE_SECONDS) {
        _ if !is_assigned || phase == "Failed" || phase == "Succeeded" => 0,
        ..0 => 1,
        seconds => seconds,
    };
    Leave::Until(Grace {
        seconds,
        until: until(now, seconds),
    })
}

fn deletion_time(object: &Object) -> Option<Timestamp> {
    if !object.is_deleting() {
        return None;
    }
    // Only a direct call could have stored another thing than a time.
    let due = object.text("deletionTimestamp").parse();
    Some(due.unwrap_or(Timestamp::UNIX_EPOCH))
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
