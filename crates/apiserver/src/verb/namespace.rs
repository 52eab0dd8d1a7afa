//! Deletes namespaces and their contents, as the namespace controller of Kubernetes does.
//!
//! Guarantees:
//! - the deletion of a namespace sets its phase to Terminating, with a MODIFIED event. The server then
//!   rejects new objects in the namespace, and the deletion can't be undone;
//! - contents are deleted in the order of kube-controller-manager: first all pods, with their grace periods,
//!   then all other objects;
//! - when a Terminating namespace contains no objects, its finalizer `kubernetes` is removed. The namespace
//!   is removed too, unless it has other finalizers;
//! - as in Kubernetes, a namespace with an empty `spec.finalizers` stays Terminating until it is deleted a
//!   second time;
//! - only contents of the deleted namespace are removed, never objects in a new namespace of the same name;
//! - no background task runs. For example, the request that removes the last pod also deletes all other
//!   objects of the namespace, before the server responds.
//!
//! The module `strategy::namespace` sets the finalizer and the name label of a new namespace. This module
//! does not.

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

/// Names of the namespaces that the server refuses to delete.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Returns whether the namespace's phase is Terminating.
pub(super) fn is_terminating(namespaces: &Resource, entry: &Entry) -> bool {
    let fields = namespaces.strategy.fields;
    fields.value_of(&entry.fields, "status.phase") == Some("Terminating")
}

/// Sets a namespace's phase to Terminating, and starts the deletion of its contents.
///
/// Does not wait for grace periods and finalizers.
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

/// Continues the deletion of `namespace` after an object of the type `resource` was removed from it.
///
/// Does nothing if the namespace is not being deleted.
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

/// Continues the namespace deletions that were in progress when the server last stopped.
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

/// Returns a copy of `namespace` that is marked for deletion.
///
/// The copy has the phase Terminating, the current time as its deletion timestamp, and `finalizers` as its
/// `metadata.finalizers`.
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

/// Returns whether a namespace called `name` exists and is being deleted.
///
/// Checked repeatedly during a deletion, because a new namespace of the same name may have been created.
fn ends(state: &State, namespaces: &Resource, name: &str) -> bool {
    let entry = state.newest(namespaces.collection, name);
    entry.is_some_and(|entry| is_ending(namespaces, entry))
}

/// Returns whether the namespace's phase is Terminating and the namespace has a deletion timestamp.
fn is_ending(namespaces: &Resource, entry: &Entry) -> bool {
    is_terminating(namespaces, entry) && Object::stored(entry.object(namespaces)).is_deleting()
}

/// Deletes the contents of a Terminating namespace, and removes the namespace if no content remains.
///
/// Does not wait until grace periods end or finalizers are removed. When an object that remains is removed
/// later, [`lost`] continues the deletion.
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

/// Deletes all objects of a type in a namespace, if the namespace is being deleted.
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
        // The deletion fails only if another client has deleted or replaced the object first.
        drop(delete_object(shared, subject, &options, how));
    }
}

fn has_objects(shared: &Shared, resource: &Resource, namespace: &str) -> bool {
    let prefix = resource.key(Some(namespace), "");
    let state = shared.lock();
    let mut found = state.newest_below(resource.collection, &prefix);
    found.next().is_some()
}

/// Removes the finalizer `kubernetes` from an empty Terminating namespace.
///
/// Removes the namespace too, unless it has other finalizers.
fn finish(shared: &Shared, namespaces: &Resource, name: &str) {
    let subject = Subject {
        resource: namespaces,
        namespace: None,
        name,
    };
    // Another client may finish the deletion or change the namespace meanwhile.
    while let Ok((entry, namespace)) = subject.newest(shared) {
        // The namespace is checked before its contents, because no object can be created in a Terminating
        // namespace.
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
    fn a_late_step_does_not_affect_a_new_namespace_of_the_same_name() {
        let server = server();
        let shared = server.shared();
        let namespaces = shared.registry.namespaces.as_ref().unwrap();
        let before = server.revision();
        empty(shared, namespaces, "n", How::DIRECT);
        assert_eq!(server.revision(), before, "the content is kept");
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
    fn a_phase_written_by_a_client_deletes_nothing() {
        let server = server();
        let mut namespace = server.get("v1", "namespaces", "n").unwrap();
        namespace["status"]["phase"] = json!("Terminating");
        server.update(namespace).unwrap();
        server.delete("v1", "configmaps", "n/m").unwrap();
        assert!(server.get("v1", "namespaces", "n").is_some());
    }
}
