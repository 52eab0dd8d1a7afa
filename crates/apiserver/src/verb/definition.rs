//! Does the work of Kubernetes' controllers for `CustomResourceDefinition`s.
//!
//! Guarantees:
//! - the names of a new definition are accepted unless another definition of the group uses them. Then the
//!   definition is established, and its kind is served;
//! - a deleted definition stays until all objects of its kind are deleted. Meanwhile, none can be created;
//! - only one definition at a time accepts names, so two definitions never accept the same name;
//! - each change of a definition is a write of its own, with an event, as in Kubernetes;
//! - no background task runs: the request that changes a definition, or that removes the last object of a
//!   deleted one, also does this work before the server responds.
//!
//! The module [`crate::definition`] reads the served kinds from a definition. This module does not.

mod names;

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;

use super::delete_object::{DeleteOptions, Deleted, Doomed, delete_object};
use super::namespace;
use super::write::{How, Step, Subject, replace};
use crate::long_write::{FollowUp, Work};
use crate::object::Object;
use crate::resource::{CollectionId, Resource};
use crate::shared::{NamesInUse, Serving, Shared};
use crate::status::ApiError;
use crate::storage::Entry;
use crate::strategy::definition::{
    complete, condition, is_true, prepare_status, set_approval, set_condition,
};

use names::{accept, has_free_name, is_of, used_names};

/// Finalizer of a definition until the objects of its kind are deleted.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Marks a definition for deletion. The caller then deletes the objects of its kind with [`Definitions`].
pub(super) fn delete(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How<'_>,
) -> Result<Deleted, ApiError> {
    loop {
        let (entry, definition) = subject.newest(shared)?;
        namespace::check(subject, options, &entry, &definition)?;
        if definition.is_deleting() {
            return delete_object(shared, subject, options, how);
        }
        let now = shared.settings.clock.now().to_string();
        let mut marked = definition.clone();
        marked.set_meta("deletionTimestamp", Some(json!(now)));
        let mut finalizers = definition.finalizers();
        if !finalizers.contains(&CLEANUP) {
            finalizers.push(CLEANUP);
        }
        marked.set_meta("finalizers", Some(json!(finalizers)));
        let pending =
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        terminating(
            &mut marked,
            ("True", "InstanceDeletionPending", pending),
            &now,
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

/// Gives a new definition the status that it has after all steps, with its names accepted.
///
/// If another definition of the group uses one of the names, the definition is not established.
pub(crate) fn establish(shared: &Shared, definition: &mut Object) {
    let now = shared.settings.clock.now().to_string();
    complete(definition);
    let mut status = json!({});
    prepare_status(&mut status, definition, &now);
    definition.set("status", Some(status));
    let group = definition.part("spec")["group"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let (resources, kinds) = used_names(shared, &mut shared.names.lock(), &group);
    accept(definition, &resources, &kinds, &now);
    if is_true(definition, "NamesAccepted") {
        established(definition, &now);
    }
    set_approval(definition, &now);
}

fn established(definition: &mut Object, now: &str) {
    let why = "the initial names have been accepted";
    set_condition(
        definition,
        "Established",
        ("True", "InitialNamesAccepted", why),
        now,
    );
}

fn terminating(definition: &mut Object, state: (&str, &str, &str), now: &str) {
    set_condition(definition, "Terminating", state, now);
}

/// Work that follows a write: accepts names, establishes definitions, and completes deleted definitions.
pub(crate) struct Definitions {
    shared: Arc<Shared>,
    /// Names of the definitions to check. The first one is checked next.
    queue: VecDeque<String>,
    /// The objects of a deleted definition that are deleted next.
    found: Option<Doomed>,
    /// Whether this work has already deleted the objects of the first definition in `queue`.
    ///
    /// Objects with finalizers may be left.
    has_deleted: bool,
}

/// Result of the check of one definition.
enum Checked {
    /// The check has changed the definition, or a concurrent write has. The definition must be checked again.
    Again,
    /// The objects in [`Definitions::found`] must be deleted before the next check.
    Deletes,
    Done,
}

impl Definitions {
    /// Returns the work that follows a write to the object `name` of `resource`.
    ///
    /// If the object is a definition, the definition is checked. If the write has removed the last object of a
    /// deleted definition, the definition is removed.
    pub(crate) fn after_write(
        shared: &Arc<Shared>,
        resource: &Resource,
        name: Option<&str>,
    ) -> FollowUp<Definitions> {
        let definitions = shared.builtin.definitions.as_ref();
        let is_definition = definitions.is_some_and(|it| it.collection == resource.collection);
        let queue = if is_definition {
            name.map(str::to_owned).into_iter().collect()
        } else if resource.kind.definition.is_some() && is_emptied(shared, resource) {
            VecDeque::from([resource.kind.group_resource()])
        } else {
            VecDeque::new()
        };
        Definitions::check_all(shared, queue)
    }

    /// Returns the work that is left for all definitions, after a start or a restored revision.
    pub(crate) fn resume(shared: &Arc<Shared>) -> FollowUp<Definitions> {
        let mut queue = VecDeque::new();
        if let Some(definitions) = &shared.builtin.definitions {
            let state = shared.lock();
            let stored = state.newest_below(definitions.collection, "");
            queue.extend(stored.map(|entry| entry.name().to_owned()));
        }
        Definitions::check_all(shared, queue)
    }

    fn check_all(shared: &Arc<Shared>, queue: VecDeque<String>) -> FollowUp<Definitions> {
        let work = Definitions {
            shared: Arc::clone(shared),
            queue,
            found: None,
            has_deleted: false,
        };
        FollowUp::new(shared, work)
    }

    fn check(&mut self, name: &str) -> Result<Checked, ApiError> {
        let shared = Arc::clone(&self.shared);
        let Some(definitions) = &shared.builtin.definitions else {
            return Ok(Checked::Done);
        };
        let subject = Subject {
            resource: definitions,
            namespace: None,
            name,
        };
        let mut names = shared.names.lock();
        let Ok((entry, definition)) = subject.newest(&shared) else {
            self.check_others(&mut names, name);
            return Ok(Checked::Done);
        };
        if definition.is_deleting() && definition.finalizers().contains(&CLEANUP) {
            drop(names);
            return self.finalize(subject, &entry, &definition);
        }
        let now = shared.settings.clock.now().to_string();
        let (mut changed, spec) = (definition.clone(), definition.part("spec"));
        let accepted = |definition: &Object| definition.part("status")["acceptedNames"].clone();
        let is_settled =
            spec["names"] == accepted(&definition) && is_true(&definition, "NamesAccepted");
        if !is_settled {
            let group = spec["group"].as_str().unwrap_or_default();
            let (resources, kinds) = used_names(&shared, &mut names, group);
            accept(&mut changed, &resources, &kinds, &now);
        }
        if changed == definition {
            set_approval(&mut changed, &now);
        }
        let may_establish =
            is_true(&definition, "NamesAccepted") && !is_true(&definition, "Established");
        if changed == definition && may_establish {
            established(&mut changed, &now);
        }
        if changed == definition {
            return Ok(Checked::Done);
        }
        replace(&shared, definitions, &entry, &changed, Step::Change)?;
        let released = accepted(&definition);
        if released["plural"].is_string()
            && released["plural"] != ""
            && released != accepted(&changed)
        {
            self.check_others(&mut names, name);
        }
        Ok(Checked::Again)
    }

    /// Deletes the objects of a deleted definition, and then the definition itself.
    ///
    /// Follows `sync` in Kubernetes' `crd_finalizer.go`.
    fn finalize(
        &mut self,
        subject: Subject<'_>,
        entry: &Entry,
        definition: &Object,
    ) -> Result<Checked, ApiError> {
        let shared = Arc::clone(&self.shared);
        let now = shared.settings.clock.now().to_string();
        let mut changed = definition.clone();
        let reason = condition(definition, "Terminating").map(|it| it["reason"].clone());
        if reason.is_none_or(|reason| reason != "InstanceDeletionInProgress") {
            let why = "CustomResource deletion is in progress";
            let state = ("True", "InstanceDeletionInProgress", why);
            terminating(&mut changed, state, &now);
            replace(&shared, subject.resource, entry, &changed, Step::Mark)?;
            return Ok(Checked::Again);
        }
        let registry = shared.registry();
        let mut outcome = ("InstanceDeletionCompleted", "removed all instances");
        if registry.is_fixed(subject.name) {
            let why = "instances overlap with built-in resources in storage";
            outcome = ("OverlappingBuiltInResource", why);
        } else if !is_true(definition, "Established") {
            outcome = ("NeverEstablished", "resource was never established");
        } else if let Some(resource) = registry.last_resource(subject.name) {
            let state = shared.lock();
            let left: Vec<_> = state
                .newest_below(resource.collection, "")
                .cloned()
                .collect();
            drop(state);
            if !left.is_empty() && self.has_deleted {
                return Ok(Checked::Done);
            }
            if !left.is_empty() {
                self.has_deleted = true;
                self.found = Some(Doomed::new(resource, left));
                return Ok(Checked::Deletes);
            }
        }
        terminating(&mut changed, ("False", outcome.0, outcome.1), &now);
        let mut finalizers = definition.finalizers();
        finalizers.retain(|finalizer| *finalizer != CLEANUP);
        let step = if finalizers.is_empty() {
            Step::Remove
        } else {
            Step::Mark
        };
        let finalizers = (!finalizers.is_empty()).then(|| json!(finalizers));
        changed.set_meta("finalizers", finalizers);
        replace(&shared, subject.resource, entry, &changed, step)?;
        Ok(Checked::Again)
    }

    /// Queues the other definitions of the group whose names are not accepted, because a name may be free now.
    fn check_others(&mut self, names: &mut NamesInUse, name: &str) {
        let Some((_, group)) = name.split_once('.') else {
            return;
        };
        let (resources, kinds) = used_names(&self.shared, names, group);
        let waiting = names.iter().filter(|(other, (_, names))| {
            let waits = *other != name && is_of(other, group) && names.requested != names.accepted;
            waits && has_free_name(names, &resources, &kinds)
        });
        self.queue.extend(waiting.map(|(other, _)| other.clone()));
    }
}

impl Work for Definitions {
    const NAME: &'static str = "the change of a definition";

    fn step(&mut self) -> Option<CollectionId> {
        loop {
            let options = DeleteOptions::of_uid;
            if let Some(found) = &mut self.found
                && let Some(collection) = found.delete_next(&self.shared, options, How::EMPTYING)
            {
                return Some(collection);
            }
            self.found = None;
            let name = self.queue.front()?.clone();
            match self.check(&name) {
                Ok(Checked::Again | Checked::Deletes) => {}
                Ok(Checked::Done) => {
                    self.queue.pop_front();
                    self.has_deleted = false;
                }
                Err(cause) => {
                    self.has_deleted = false;
                    tracing::warn!(%name, %cause, "failed to store the status of a CustomResourceDefinition");
                    self.queue.pop_front();
                }
            }
        }
    }
}

/// Returns whether the definition of a resource is being deleted and no object of the resource is left.
fn is_emptied(shared: &Shared, resource: &Resource) -> bool {
    let state = shared.lock();
    let mut left = state.newest_below(resource.collection, "");
    left.next().is_none() && shared.serving(&state, resource) == Serving::Terminating
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::server::Server;
    use crate::verb::create::create;

    fn widgets() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        })
    }

    #[test]
    fn a_request_that_began_before_the_deletion_of_a_definition_creates_nothing() {
        let server = Server::builder().build();
        server.create(widgets()).unwrap();
        let shared = server.shared();
        let widgets = shared
            .registry()
            .resource_named("widgets.example.com")
            .cloned();
        let widgets = widgets.unwrap();
        let crds = "customresourcedefinitions";
        server
            .delete("apiextensions.k8s.io/v1", crds, "widgets.example.com")
            .unwrap();
        let widget = json!({"metadata": {"name": "a"}});
        let widget = Object::stored(widget.as_object().unwrap().clone());
        let refused = create(shared, &widgets, None, widget, How::DIRECT).unwrap_err();
        assert_eq!(refused.code(), 404);
    }

    #[cfg(feature = "persistence")]
    #[test]
    fn a_start_continues_the_work_of_the_last_one() {
        let path = format!("kube-informer-definition-{}", std::process::id());
        let directory = std::env::temp_dir().join(path);
        let server = Server::builder().open(&directory).unwrap();
        let shared = server.shared();
        let before = shared.before_write();
        let definitions = shared.builtin.definitions.as_ref().unwrap();
        let widgets = Object::stored(widgets().as_object().unwrap().clone());
        create(shared, definitions, None, widgets, How::DIRECT).unwrap();
        shared.settle(before).unwrap();
        let is_served = |server: &Server| {
            let registry = server.shared().registry();
            registry.resource_named("widgets.example.com").is_some()
        };
        assert!(!is_served(&server));
        drop(server);
        let server = Server::builder().open(&directory).unwrap();
        assert!(is_served(&server));
        drop(server);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
