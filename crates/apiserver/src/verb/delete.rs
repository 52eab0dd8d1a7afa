//! DELETE of one object or of a collection.
//!
//! Guarantees:
//! - preconditions are compared with the state that is deleted;
//! - an object with finalizers, or with a grace period asked for, is first marked (MODIFIED) and removed later (DELETED); a second delete moves nothing but a shorter grace period;
//! - `Foreground` and `Orphan` add their finalizers; removing dependents is a controller's work, not the store's.
//!
//! Without a kubelet nobody would end a pod's grace period, so it is 0 unless the request itself asks for one; `terminationGracePeriodSeconds` is not looked at.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::How;
use super::create::counts_generations;
use super::update::Subject;
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::Shared;
use crate::status::{ApiError, FieldError};
use crate::storage::Entry;

/// Namespaces that can't be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

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

/// Whether a deletion is answered with the object.
pub(crate) fn shows_what_is_gone(resource: &Resource) -> bool {
    let name = resource.kind.group_resource();
    SHOWN.contains(&name.as_str())
}

/// What a deletion is to heed.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    grace_seconds: Option<i64>,
    uid: Option<String>,
    revision: Option<String>,
    propagation: Option<Propagation>,
    pub(crate) dry_run: bool,
    /// Asked for by its old name, which changes the status code.
    orphan_dependents: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// What became of the object.
pub(crate) enum Deleted {
    Removed(Arc<Entry>),
    /// It stays until its finalizers are gone or its grace period is over.
    Marked(Arc<Entry>),
}

// === impl DeleteOptions ===

impl DeleteOptions {
    /// Reads a `DeleteOptions` body, or query parameters of the same names.
    pub(crate) fn parse(options: &Value) -> Result<DeleteOptions, ApiError> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let propagation = match options["propagationPolicy"].as_str() {
            None => None,
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let error = FieldError::unsupported(
                    "propagationPolicy",
                    other,
                    &["Foreground", "Background", "Orphan", "nil"],
                );
                return Err(ApiError::invalid_options("DeleteOptions", &[error]));
            }
        };
        let orphan_dependents = options["orphanDependents"].as_bool();
        if propagation.is_some() && orphan_dependents.is_some() {
            let policy = &options["propagationPolicy"];
            let error = FieldError::invalid(
                "propagationPolicy",
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            );
            return Err(ApiError::invalid_options("DeleteOptions", &[error]));
        }
        let by_flag = orphan_dependents.map(|orphan| {
            if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            }
        });
        let dry_run = match &options["dryRun"] {
            Value::Array(stages) => stages.iter().any(|stage| stage == "All"),
            stage => stage == "All",
        };
        Ok(DeleteOptions {
            // A negative grace period stands for the shortest there is.
            grace_seconds: options["gracePeriodSeconds"]
                .as_i64()
                .map(|seconds| if seconds < 0 { 1 } else { seconds }),
            uid: text(&options["preconditions"]["uid"]),
            revision: text(&options["preconditions"]["resourceVersion"]),
            propagation: propagation.or(by_flag),
            dry_run,
            orphan_dependents,
        })
    }

    /// The status code for an object that is only marked so far.
    pub(crate) fn marked_code(&self) -> u16 {
        if self.orphan_dependents == Some(false) {
            202
        } else {
            200
        }
    }

    fn check(&self, subject: Subject<'_>, object: &Object, entry: &Entry) -> Result<(), ApiError> {
        let kind = &subject.resource.kind;
        let uid = object.text("uid");
        if let Some(wanted) = self.uid.as_ref().filter(|wanted| *wanted != uid) {
            let why = format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            );
            return Err(ApiError::precondition(kind, subject.name, &why));
        }
        let revision = entry.revision.to_string();
        if let Some(wanted) = self.revision.as_ref().filter(|wanted| **wanted != revision) {
            let why = format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({revision}). The object might have been modified"
            );
            return Err(ApiError::precondition(kind, subject.name, &why));
        }
        Ok(())
    }

    fn finalizers(&self, object: &Object) -> Vec<String> {
        const FOREGROUND: &str = "foregroundDeletion";
        const ORPHAN: &str = "orphan";
        let kept = object.finalizers();
        let Some(propagation) = self.propagation else {
            return kept.into_iter().map(str::to_owned).collect();
        };
        let others = kept
            .into_iter()
            .filter(|finalizer| ![FOREGROUND, ORPHAN].contains(finalizer));
        let added = match propagation {
            Propagation::Background => None,
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Orphan => Some(ORPHAN),
        };
        others.chain(added).map(str::to_owned).collect()
    }

    /// The grace period in seconds: only a pod that runs on a node can have one.
    fn grace(&self, subject: Subject<'_>, object: &Object) -> i64 {
        let assigned = object.get("spec").is_some_and(|spec| {
            spec["nodeName"]
                .as_str()
                .is_some_and(|node| !node.is_empty())
        });
        let ended = object
            .get("status")
            .is_some_and(|status| status["phase"] == "Failed" || status["phase"] == "Succeeded");
        if !subject.resource.is_core("pods") || !assigned || ended {
            return 0;
        }
        let asked = self.grace_seconds.unwrap_or(0);
        match object.number("deletionGracePeriodSeconds") {
            Some(running) if self.grace_seconds.is_some() => asked.min(running),
            Some(running) => running,
            None => asked,
        }
    }
}

/// Deletes one object.
pub(crate) fn delete(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How,
) -> Result<Deleted, ApiError> {
    let resource = subject.resource;
    if resource.is_core("namespaces") && IMMORTAL.contains(&subject.name) {
        return Err(ApiError::forbidden(
            &resource.kind,
            subject.name,
            "this namespace may not be deleted",
        ));
    }
    loop {
        let (entry, object) = subject.newest(shared)?;
        options.check(subject, &object, &entry)?;
        let finalizers = options.finalizers(&object);
        let grace = options.grace(subject, &object);
        let next = if finalizers.is_empty() && grace == 0 {
            None
        } else {
            Some(marked(shared, subject, &object, &finalizers, grace))
        };
        let unchanged = next.as_ref() == Some(&object);
        let mut state = shared.lock();
        let still = state.newest(resource.collection, &entry.key);
        if still.is_none_or(|current| current.revision != entry.revision) {
            continue;
        }
        let revision = if how.dry_run {
            entry.revision
        } else {
            state.next_revision()
        };
        let stored = next.map(|object| {
            Arc::new(Entry::new(
                resource,
                Arc::clone(&entry.key),
                object.members(),
                revision,
            ))
        });
        if unchanged {
            return Ok(Deleted::Marked(entry));
        }
        if !how.dry_run {
            shared.commit(&mut state, resource, &entry.key, stored.clone());
        }
        return Ok(match stored {
            Some(stored) => Deleted::Marked(stored),
            None => Deleted::Removed(Arc::new(entry.at_revision(revision))),
        });
    }
}

/// The object as it waits for its removal.
fn marked(
    shared: &Shared,
    subject: Subject<'_>,
    object: &Object,
    finalizers: &[String],
    grace: i64,
) -> Object {
    let mut marked = object.clone();
    if object.meta("finalizers").is_some() || !finalizers.is_empty() {
        marked.set_meta("finalizers", Some(json!(finalizers)));
    }
    let shortened = object
        .number("deletionGracePeriodSeconds")
        .is_some_and(|running| grace < running);
    if object.is_deleting() && !shortened {
        return marked;
    }
    let wait = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    let now = shared.settings.clock.now();
    let due = now.checked_add(wait).unwrap_or(now);
    marked.set_meta("deletionTimestamp", Some(json!(due.to_string())));
    marked.set_meta("deletionGracePeriodSeconds", Some(json!(grace)));
    if counts_generations(subject.resource) && !object.is_deleting() {
        let next = object.number("generation").unwrap_or(0) + 1;
        marked.set_meta("generation", Some(json!(next)));
    }
    marked
}
