//! The life of a namespace: what it is born with, and how it ends.
//!
//! Guarantees:
//! - a namespace has the finalizer `kubernetes` in its `spec` and its name as a label, from its creation on;
//! - its deletion makes it Terminating (MODIFIED); from then on nothing can be created in it, and it can't be brought back;
//! - it is emptied in the order of kube-controller-manager: all pods, which have their grace periods; when the last of them is gone, everything else; when nothing is left, the finalizer is taken away, and with it the namespace, unless something else holds it;
//! - only what is in it when it ends is deleted with it, never what somebody makes under its name as soon as it is gone;
//! - nothing of this runs in the background: each step is taken by the very call that makes it possible, and before that is answered. So an empty namespace is gone when its deletion is answered, and one whose last pod has a finalizer goes when that is taken away.
//!
//! As in Kubernetes, one that has no finalizer left when it is deleted first stays Terminating until it is deleted again.
//!
//! What Kubernetes leaves to its namespace controller is done here, for nobody else would.

use std::sync::Arc;

use serde_json::json;

use super::delete_object::{DeleteOptions, Deleted, delete_object};
use super::write::{How, Step, Subject, replace};
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::{Shared, State};
use crate::status::ApiError;
use crate::storage::Entry;
#[cfg(feature = "persistence")]
use crate::strategy::Part;
use crate::strategy::namespace::{FINALIZER, finalizers, set_finalizers};

/// Namespaces that can't be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Whether nothing can be created in a namespace any more.
pub(super) fn is_terminating(namespaces: &Resource, entry: &Entry) -> bool {
    let fields = namespaces.strategy.fields;
    fields.value_of(&entry.fields, "status.phase") == Some("Terminating")
}

/// Deletes a namespace: makes it Terminating, and empties it as far as that goes at once.
pub(super) fn delete(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How,
) -> Result<Deleted, ApiError> {
    let kind = &subject.resource.kind;
    if IMMORTAL.contains(&subject.name) {
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden(kind, subject.name, why));
    }
    let marked = loop {
        let (entry, namespace) = subject.newest(shared)?;
        check(subject, options, &entry, &namespace)?;
        if namespace.is_deleting() {
            if finalizers(&namespace).is_empty() {
                return delete_object(shared, subject, options, how);
            }
            break entry;
        }
        let marked = terminating(shared, &namespace, &options.finalizers(&namespace));
        if how.dry_run {
            let shown = entry.changed(subject.resource, &marked, entry.revision);
            return Ok(Deleted::Marked(shown));
        }
        if let Some(stored) = replace(shared, subject.resource, &entry, &marked, Step::Mark)? {
            break stored;
        }
    };
    if !how.dry_run {
        empty(shared, subject.resource, subject.name, how);
    }
    Ok(Deleted::Marked(marked))
}

/// Goes on with the deletion of a namespace that may have been waiting for an object that is gone now.
pub(super) fn lost(shared: &Shared, resource: &Resource, namespace: Option<&str>, how: How) {
    let Some(namespace) = namespace else { return };
    let Some(namespaces) = &shared.registry.namespaces else {
        return;
    };
    if !ends(&shared.lock(), namespaces, namespace) {
        return;
    }
    let pods = shared.registry.pods.as_ref().map(|pods| pods.collection);
    if pods == Some(resource.collection) {
        if has_objects(shared, resource, namespace) {
            return;
        }
        delete_all_but_pods(shared, namespaces, namespace, how);
    }
    finish(shared, namespaces, namespace);
}

/// Goes on with the deletion of all namespaces that are Terminating, as after a restart in the middle of it.
#[cfg(feature = "persistence")]
pub(crate) fn resume(shared: &Shared) {
    let Some(namespaces) = &shared.registry.namespaces else {
        return;
    };
    let state = shared.lock();
    let entries = state.newest_below(namespaces.collection, "");
    let entries = entries.filter(|entry| is_ending(namespaces, entry));
    let names: Vec<String> = entries.map(|entry| entry.name().to_owned()).collect();
    drop(state);
    for name in names {
        empty(shared, namespaces, &name, How::request(Part::All, false));
    }
}

fn check(
    subject: Subject<'_>,
    options: &DeleteOptions,
    entry: &Entry,
    namespace: &Object,
) -> Result<(), ApiError> {
    let kind = &subject.resource.kind;
    let uid = namespace.text("uid");
    if let Some(wanted) = options.uid.as_ref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
        );
        return Err(ApiError::conflict(kind, subject.name, &why));
    }
    let revision = entry.revision.to_string();
    if let Some(wanted) = options.revision.as_ref().filter(|it| **it != revision) {
        let why = format!(
            "Precondition failed: ResourceVersion in precondition: {wanted}, ResourceVersion in object meta: {revision}"
        );
        return Err(ApiError::conflict(kind, subject.name, &why));
    }
    Ok(())
}

/// The namespace once its deletion was asked for.
fn terminating(shared: &Shared, namespace: &Object, finalizers: &[String]) -> Object {
    let mut marked = namespace.clone();
    let finalizers = (!finalizers.is_empty()).then(|| json!(finalizers));
    marked.set_meta("finalizers", finalizers);
    let now = shared.settings.clock.now().to_string();
    marked.set_meta("deletionTimestamp", Some(json!(now)));
    let mut status = namespace.part("status");
    status["phase"] = json!("Terminating");
    marked.set("status", Some(status));
    marked
}

/// Whether a namespace is being deleted now: it may have gone, and another may have its name.
fn ends(state: &State, namespaces: &Resource, name: &str) -> bool {
    let entry = state.newest(namespaces.collection, name);
    entry.is_some_and(|entry| is_ending(namespaces, entry))
}

/// Whether a namespace is being deleted; the phase alone is something that its owner may have written.
fn is_ending(namespaces: &Resource, entry: &Entry) -> bool {
    is_terminating(namespaces, entry) && Object::stored(entry.object(namespaces)).is_deleting()
}

/// Deletes what is in a Terminating namespace, and then the namespace, as far as nothing has to be waited for.
fn empty(shared: &Shared, namespaces: &Resource, name: &str, how: How) {
    if let Some(pods) = &shared.registry.pods {
        delete_all(shared, namespaces, name, pods, how);
        if has_objects(shared, pods, name) {
            return;
        }
    }
    delete_all_but_pods(shared, namespaces, name, how);
    finish(shared, namespaces, name);
}

fn delete_all_but_pods(shared: &Shared, namespaces: &Resource, name: &str, how: How) {
    let pods = shared.registry.pods.as_ref().map(|pods| pods.collection);
    for resource in shared.registry.namespaced() {
        if pods != Some(resource.collection) {
            delete_all(shared, namespaces, name, resource, how);
        }
    }
}

/// Deletes the objects of a kind that are in a Terminating namespace now.
fn delete_all(shared: &Shared, namespaces: &Resource, name: &str, resource: &Resource, how: How) {
    let prefix = resource.key(Some(name), "");
    let state = shared.lock();
    if !ends(&state, namespaces, name) {
        return;
    }
    let found: Vec<Arc<Entry>> = state
        .newest_below(resource.collection, &prefix)
        .cloned()
        .collect();
    drop(state);
    for entry in found {
        let subject = Subject {
            resource,
            namespace: Some(name),
            name: entry.name(),
        };
        let object = Object::stored(entry.object(resource));
        let options = DeleteOptions::in_background(object.text("uid"));
        // It fails only where somebody else was faster.
        drop(delete_object(shared, subject, &options, how));
    }
}

fn has_objects(shared: &Shared, resource: &Resource, namespace: &str) -> bool {
    let prefix = resource.key(Some(namespace), "");
    let state = shared.lock();
    let mut found = state.newest_below(resource.collection, &prefix);
    found.next().is_some()
}

/// Takes the finalizer from a Terminating namespace if it is empty.
fn finish(shared: &Shared, namespaces: &Resource, name: &str) {
    let subject = Subject {
        resource: namespaces,
        namespace: None,
        name,
    };
    // Somebody else may have finished it, or may change it meanwhile.
    while let Ok((entry, namespace)) = subject.newest(shared) {
        // Looked at before its contents: nothing comes into it as long as this is its state.
        if !is_ending(namespaces, &entry) {
            return;
        }
        let mut resources = shared.registry.namespaced();
        if resources.any(|resource| has_objects(shared, resource, name)) {
            return;
        }
        let mut held_by = finalizers(&namespace);
        let before = held_by.len();
        held_by.retain(|finalizer| finalizer != FINALIZER);
        if held_by.len() == before {
            return;
        }
        let mut released = namespace.clone();
        set_finalizers(&mut released, &held_by);
        let removes = held_by.is_empty() && namespace.finalizers().is_empty();
        let step = if removes { Step::Remove } else { Step::Mark };
        if !matches!(
            replace(shared, namespaces, &entry, &released, step),
            Ok(None)
        ) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;

    fn server() -> Server {
        let server = Server::builder().build();
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}}),
        ];
        assert_eq!(server.create_all(objects), Ok(2));
        server
    }

    #[test]
    fn a_step_that_comes_late_spares_the_next_namespace_of_the_name() {
        let server = server();
        let shared = server.shared();
        let namespaces = shared.registry.namespaces.as_ref().unwrap();
        let before = server.revision();
        empty(shared, namespaces, "n", How::DIRECT);
        assert_eq!(server.revision(), before, "what is in it stays");
        server.delete("v1", "configmaps", "n/m").unwrap();
        finish(shared, namespaces, "n");
        assert!(server.get("v1", "namespaces", "n").is_some());
    }

    #[test]
    fn a_namespace_is_not_finished_before_it_is_empty() {
        let server = server();
        let shared = server.shared();
        let namespaces = shared.registry.namespaces.as_ref().unwrap();
        let subject = Subject {
            resource: namespaces,
            namespace: None,
            name: "n",
        };
        let (entry, namespace) = subject.newest(shared).unwrap();
        let marked = terminating(shared, &namespace, &[]);
        assert!(
            replace(shared, namespaces, &entry, &marked, Step::Mark)
                .unwrap()
                .is_some()
        );
        finish(shared, namespaces, "n");
        assert!(server.get("v1", "namespaces", "n").is_some());
        empty(shared, namespaces, "n", How::DIRECT);
        assert!(server.get("v1", "namespaces", "n").is_none());
        assert!(server.get("v1", "configmaps", "n/m").is_none());
    }

    #[test]
    fn a_phase_that_the_owner_wrote_deletes_nothing() {
        let server = server();
        let mut namespace = server.get("v1", "namespaces", "n").unwrap();
        namespace["status"]["phase"] = json!("Terminating");
        server.update(namespace).unwrap();
        server.delete("v1", "configmaps", "n/m").unwrap();
        assert!(server.get("v1", "namespaces", "n").is_some());
    }
}
