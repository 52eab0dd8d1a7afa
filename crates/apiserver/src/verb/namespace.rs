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
//!   objects of the namespace, before the server responds;
//! - a request that deletes many objects yields, so that watchers can read ([`FollowUp`]).
//!
//! The module `strategy::namespace` sets the finalizer and the name label of a new namespace. This module
//! does not.

use std::sync::Arc;
use std::vec;

use serde_json::json;

use super::delete_object::{DeleteOptions, Deleted, Doomed, delete_object};
use super::write::{How, Step, Subject, replace};
use crate::long_write::{FollowUp, Work};
use crate::object::Object;
use crate::resource::{CollectionId, Resource};
use crate::shared::{Shared, State};
use crate::status::ApiError;
use crate::storage::Entry;
use crate::strategy::namespace::{FINALIZER, finalizers, set_finalizers};

/// Names of the namespaces that the server refuses to delete.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Starts the deletion of a namespace: sets its phase to Terminating.
///
/// The caller then deletes the contents with [`Emptying`]. If the namespace is already being deleted and has
/// no finalizers in `spec`, the function instead deletes the namespace like any other object.
pub(super) fn delete(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How<'_>,
) -> Result<Deleted, ApiError> {
    let kind = &subject.resource.kind;
    if IMMORTAL.contains(&subject.name) {
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden(kind, subject.name, why));
    }
    loop {
        let (entry, namespace) = subject.newest(shared)?;
        check(subject, options, &entry, &namespace)?;
        if namespace.is_deleting() {
            if finalizers(&namespace).is_empty() {
                return delete_object(shared, subject, options, how);
            }
            return Ok(Deleted::Marked(entry));
        }
        let marked = terminating(
            shared,
            &namespace,
            &options.finalizers(&namespace, shared.garbage_policy(subject.resource)),
        );
        if how.dry_run {
            let shown = entry.changed(subject.resource, &marked, entry.revision);
            return Ok(Deleted::Marked(shown));
        }
        if let Some(stored) = replace(shared, subject.resource, &entry, &marked, Step::Mark)? {
            return Ok(Deleted::Marked(stored));
        }
    }
}

/// Continues the namespace deletions that were in progress when the server last stopped, and creates the objects that
/// namespaces lack.
pub(crate) fn resume(shared: &Arc<Shared>) {
    super::namespace_content::complete_all(shared);
    let Some(namespaces) = &shared.builtin.namespaces else {
        return;
    };
    let state = shared.lock();
    let entries = state.newest_below(namespaces.collection, "");
    let entries = entries.filter(|entry| is_ending(namespaces, entry));
    let names: Vec<String> = entries.map(|entry| entry.name().to_owned()).collect();
    drop(state);
    for name in names {
        Emptying::new(shared, Some(&name), Stage::Pods, How::EMPTYING).complete();
    }
}

/// Checks the preconditions of the deletion of a namespace or a definition.
pub(super) fn check(
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

/// Returns a copy of `namespace` that is marked for deletion. `finalizers` replaces `metadata.finalizers`.
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
/// A deletion checks this repeatedly, because a new namespace of the same name may have replaced the old one.
fn ends(state: &State, namespaces: &Resource, name: &str) -> bool {
    let entry = state.newest(namespaces.collection, name);
    entry.is_some_and(|entry| is_ending(namespaces, entry))
}

fn is_ending(namespaces: &Resource, entry: &Entry) -> bool {
    entry.is_in_phase(namespaces, "Terminating")
        && Object::stored(entry.object(namespaces)).is_deleting()
}

fn has_objects(shared: &Shared, resource: &Resource, namespace: &str) -> bool {
    let prefix = resource.key(Some(namespace), "");
    let state = shared.lock();
    let mut found = state.newest_below(resource.collection, &prefix);
    found.next().is_some()
}

/// Deletes the contents of a Terminating namespace one by one, and then removes the namespace.
///
/// Does nothing if the namespace is not Terminating. Does not wait until grace periods end or finalizers are
/// removed: the write that removes a remaining object continues the deletion with a new `Emptying`.
pub(crate) struct Emptying {
    shared: Arc<Shared>,
    namespace: String,
    how: How<'static>,
    /// The objects of one resource that are deleted next.
    found: Option<Doomed>,
    stage: Stage,
}

/// The next step of a namespace's deletion, after the objects in [`Emptying::found`] are deleted.
enum Stage {
    /// All pods must be deleted, and then all other objects.
    Pods,
    /// A check whether any pod still exists, for example during its grace period.
    ///
    /// If no pod exists, all other objects must be deleted. Otherwise, this [`Emptying`] ends. The write that
    /// removes the last pod then continues the deletion with a new `Emptying`.
    AfterPods,
    /// The objects of these resources must be deleted.
    Others(vec::IntoIter<Arc<Resource>>),
    /// If no object exists any more, the namespace must be removed.
    Last,
    Done,
}

impl Emptying {
    /// Returns the work that continues the deletion of a namespace after a deletion of `subject`.
    ///
    /// The namespace is `subject` itself, or contains `subject`. The work does nothing if there is no such
    /// namespace, or if the namespace is not Terminating.
    pub(crate) fn after_delete(
        shared: &Arc<Shared>,
        subject: Subject<'_>,
        how: How<'static>,
    ) -> FollowUp<Emptying> {
        let namespaces = shared.builtin.namespaces.as_ref();
        if namespaces.is_some_and(|it| it.collection == subject.resource.collection) {
            return Emptying::new(shared, Some(subject.name), Stage::Pods, how);
        }
        Emptying::after_write(shared, subject.resource, subject.namespace, how)
    }

    /// Returns the work that continues the deletion of `namespace` after a write of an object of `resource`.
    ///
    /// The write may have removed the last pod or the last object of a Terminating namespace. Otherwise, the
    /// work does nothing.
    pub(crate) fn after_write(
        shared: &Arc<Shared>,
        resource: &Resource,
        namespace: Option<&str>,
        how: How<'static>,
    ) -> FollowUp<Emptying> {
        let pods = shared.builtin.pods.as_ref();
        let stage = match pods {
            Some(pods) if pods.collection == resource.collection => Stage::AfterPods,
            _ => Stage::Last,
        };
        Emptying::new(shared, namespace, stage, how)
    }

    fn new(
        shared: &Arc<Shared>,
        namespace: Option<&str>,
        stage: Stage,
        how: How<'static>,
    ) -> FollowUp<Emptying> {
        let work = Emptying {
            shared: Arc::clone(shared),
            namespace: namespace.unwrap_or_default().to_owned(),
            how,
            found: None,
            stage: if namespace.is_some() {
                stage
            } else {
                Stage::Done
            },
        };
        FollowUp::new(shared, work)
    }

    /// Returns all objects of a resource in the namespace, or none if the namespace is not Terminating.
    fn find(&self, resource: &Arc<Resource>) -> Doomed {
        let prefix = resource.key(Some(&self.namespace), "");
        let state = self.shared.lock();
        let namespaces = self.shared.builtin.namespaces.as_ref();
        // The check and the search share one lock: a new namespace of the same name has other objects.
        let found: Vec<Arc<Entry>> = match namespaces {
            Some(namespaces) if ends(&state, namespaces, &self.namespace) => {
                let found = state.newest_below(resource.collection, &prefix);
                found.cloned().collect()
            }
            _ => Vec::new(),
        };
        Doomed::new(resource, found)
    }

    fn has_pods(&self) -> bool {
        let pods = self.shared.builtin.pods.as_ref();
        pods.is_some_and(|pods| has_objects(&self.shared, pods, &self.namespace))
    }

    /// Returns all namespaced resources except pods.
    fn others(&self) -> Vec<Arc<Resource>> {
        let registry = self.shared.registry();
        let pods = self
            .shared
            .builtin
            .pods
            .as_ref()
            .map(|pods| pods.collection);
        let others = registry.namespaced();
        let others = others.filter(|resource| pods != Some(resource.collection));
        others.cloned().collect()
    }
}

impl Work for Emptying {
    const NAME: &'static str = "the deletion of a namespace";

    /// Deletes the next object in the namespace, and returns the object's collection.
    ///
    /// If no object is left, calls [`finish`] and returns `None`. Also returns `None` if the remaining
    /// objects wait for a grace period or a finalizer, or if the namespace is not being deleted.
    fn step(&mut self) -> Option<CollectionId> {
        loop {
            let options = DeleteOptions::in_background;
            if let Some(found) = &mut self.found
                && let Some(collection) = found.delete_next(&self.shared, options, self.how)
            {
                return Some(collection);
            }
            self.found = None;
            let shared = Arc::clone(&self.shared);
            let Some(namespaces) = &shared.builtin.namespaces else {
                return None;
            };
            // A new namespace of the same name may have been created during the deletion.
            if !ends(&shared.lock(), namespaces, &self.namespace) {
                self.stage = Stage::Done;
            }
            self.stage = match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::Pods => {
                    self.found = shared.builtin.pods.as_ref().map(|pods| self.find(pods));
                    Stage::AfterPods
                }
                Stage::AfterPods if self.has_pods() => Stage::Done,
                Stage::AfterPods => Stage::Others(self.others().into_iter()),
                Stage::Others(mut resources) => match resources.next() {
                    Some(resource) => {
                        self.found = Some(self.find(&resource));
                        Stage::Others(resources)
                    }
                    None => Stage::Last,
                },
                Stage::Last => {
                    finish(&shared, namespaces, &self.namespace);
                    Stage::Done
                }
                Stage::Done => return None,
            };
        }
    }
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
        let registry = shared.registry();
        let mut resources = registry.namespaced();
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
        assert_eq!(objects.map(|it| server.create(it).is_ok()), [true; 2]);
        server
    }

    #[test]
    fn a_late_step_does_not_affect_a_new_namespace_of_the_same_name() {
        let server = server();
        let shared = server.shared();
        let namespaces = shared.builtin.namespaces.as_ref().unwrap();
        let before = server.revision();
        Emptying::new(shared, Some("n"), Stage::Pods, How::DIRECT).complete();
        assert_eq!(server.revision(), before, "the content is kept");
        server.delete("v1", "configmaps", "n/m").unwrap();
        finish(shared, namespaces, "n");
        assert!(server.get("v1", "namespaces", "n").is_some());
    }

    #[test]
    fn a_namespace_is_not_finished_before_it_is_empty() {
        let server = server();
        let shared = server.shared();
        let namespaces = shared.builtin.namespaces.as_ref().unwrap();
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
        Emptying::new(shared, Some("n"), Stage::Pods, How::DIRECT).complete();
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
