//! Does the work of Kubernetes' controllers for `CustomResourceDefinition`s.
//!
//! Guarantees:
//! - the names of a new definition are accepted unless another definition of the group uses them. Then the
//!   definition is established, and its kind is served;
//! - a deleted definition stays until all objects of its kind are deleted. Meanwhile, none can be created;
//! - each change of a definition is a write of its own, with an event, as in Kubernetes;
//! - no background task runs: the request that changes a definition, or that removes the last object of a
//!   deleted one, also does this work before the server responds.
//!
//! The module `definition` reads the served kinds from a definition. This module does not.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::vec;

use serde_json::{Value, json};

use super::delete_object::{DeleteOptions, Deleted, delete_object};
use super::write::{How, Step, Subject, replace};
use crate::long_write::{FollowUp, Work};
use crate::object::Object;
use crate::resource::{CollectionId, Resource};
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::strategy::definition::{
    complete, condition, prepare_status, set_approval, set_condition,
};

/// Finalizer of a definition until the objects of its kind are deleted.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Marks a definition for deletion. The caller then deletes the objects of its kind with [`Definitions`].
pub(super) fn delete(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How,
) -> Result<Deleted, ApiError> {
    loop {
        let (entry, definition) = subject.newest(shared)?;
        if definition.is_deleting() {
            return delete_object(shared, subject, options, how);
        }
        options.check(subject, &definition, &entry)?;
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

/// Gives a new definition the status of an established one, with its names accepted.
pub(crate) fn establish(definition: &mut Object, now: &str) {
    complete(definition);
    let mut status = json!({});
    prepare_status(&mut status, definition, now);
    definition.set("status", Some(status));
    accept(definition, &BTreeSet::new(), &BTreeSet::new(), now);
    established(definition, now);
    set_approval(definition, now);
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

fn is_true(definition: &Object, kind: &str) -> bool {
    condition(definition, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Accepts the names of a definition that no other definition of the group uses.
///
/// Follows `calculateNamesAndConditions` in Kubernetes' `naming_controller.go`. `resources` and `kinds` are
/// the names that are in use in the group.
fn accept(
    definition: &mut Object,
    resources: &BTreeSet<String>,
    kinds: &BTreeSet<String>,
    now: &str,
) {
    let requested = definition.part("spec")["names"].clone();
    let mut status = definition.part("status");
    let old = status["acceptedNames"].clone();
    let mut accepted = old.clone();
    let mut conflict = None;
    let is_used = |name: &Value, used: &BTreeSet<String>| {
        name.as_str().is_some_and(|name| used.contains(name))
    };
    let scalars = [
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ];
    for (member, reason, used) in scalars {
        let (wanted, has) = (&requested[member], &old[member]);
        let wanted_names = wanted
            .as_array()
            .map_or(std::slice::from_ref(wanted), Vec::as_slice);
        let is_own =
            |name: &Value| name == has || has.as_array().is_some_and(|own| own.contains(name));
        let refused = wanted_names
            .iter()
            .filter(|name| !is_own(name) && is_used(name, used));
        let refused: Vec<String> = refused
            .map(|name| format!("{name} is already in use"))
            .collect();
        match refused.as_slice() {
            [] => assign(&mut accepted, member, wanted),
            [only] => conflict = Some((reason, only.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    assign(&mut accepted, "categories", &requested["categories"]);
    status["acceptedNames"] = accepted;
    definition.set("status", Some(status));
    let (state, reason, why) = match &conflict {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, why)) => ("False", *reason, &**why),
    };
    set_condition(definition, "NamesAccepted", (state, reason, why), now);
    if is_true(definition, "Established") {
        return;
    }
    if conflict.is_none() {
        let why = "the initial names have been accepted";
        set_condition(definition, "Established", ("False", "Installing", why), now);
    } else if condition(definition, "Established").is_none() {
        let why = "not all names are accepted";
        set_condition(
            definition,
            "Established",
            ("False", "NotAccepted", why),
            now,
        );
    }
}

fn assign(names: &mut Value, member: &str, value: &Value) {
    if !value.is_null() {
        names[member] = value.clone();
    } else if let Some(names) = names.as_object_mut() {
        names.remove(member);
    }
}

/// The work that follows a write, for the definitions that it may affect.
pub(crate) struct Definitions {
    shared: Arc<Shared>,
    /// Names of the definitions to check. The first one is checked next.
    queue: VecDeque<String>,
    /// The objects of a deleted definition that are deleted next.
    found: Option<(Arc<Resource>, vec::IntoIter<Arc<Entry>>)>,
    /// Whether the objects of the first definition in `queue` were deleted already.
    has_deleted: bool,
}

/// What a check of a definition has done.
enum Checked {
    /// The definition was changed, or another client has changed it, so it must be checked again.
    Changed,
    /// The objects in [`Definitions::found`] must be deleted.
    Deletes,
    Nothing,
}

impl Definitions {
    /// Returns the work that follows a write to `subject`, if it is a definition, and the work for each
    /// deleted definition, of whose kind the write may have removed the last object.
    pub(crate) fn after_write(
        shared: &Arc<Shared>,
        resource: &Resource,
        name: Option<&str>,
    ) -> FollowUp<Definitions> {
        let definitions = shared.builtin.definitions.as_ref();
        let is_definition = definitions.is_some_and(|it| it.collection == resource.collection);
        let registry = shared.registry();
        let written = name.filter(|_| is_definition).map(str::to_owned);
        let queue = written.into_iter().chain(registry.terminating()).collect();
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
            return Ok(Checked::Nothing);
        };
        let subject = Subject {
            resource: definitions,
            namespace: None,
            name,
        };
        let Ok((entry, definition)) = subject.newest(&shared) else {
            return Ok(Checked::Nothing);
        };
        let now = shared.settings.clock.now().to_string();
        let mut changed = definition.clone();
        if definition.is_deleting() && definition.finalizers().contains(&CLEANUP) {
            return self.finalize(subject, &entry, &definition);
        }
        let spec = definition.part("spec");
        if spec["names"] != definition.part("status")["acceptedNames"] {
            let group = spec["group"].as_str().unwrap_or_default();
            let (resources, kinds) = used_names(&shared, definitions, group, name);
            accept(&mut changed, &resources, &kinds, &now);
        }
        if changed == definition {
            set_approval(&mut changed, &now);
        }
        if changed == definition
            && is_true(&definition, "NamesAccepted")
            && !is_true(&definition, "Established")
        {
            established(&mut changed, &now);
        }
        if changed == definition {
            return Ok(Checked::Nothing);
        }
        replace(&shared, definitions, &entry, &changed, Step::Mark)?;
        if changed.part("status")["acceptedNames"] != definition.part("status")["acceptedNames"] {
            self.check_others(name);
        }
        Ok(Checked::Changed)
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
        if condition(definition, "Terminating")
            .is_none_or(|it| it["reason"] != "InstanceDeletionInProgress")
        {
            let why = "CustomResource deletion is in progress";
            terminating(
                &mut changed,
                ("True", "InstanceDeletionInProgress", why),
                &now,
            );
            replace(&shared, subject.resource, entry, &changed, Step::Mark)?;
            return Ok(Checked::Changed);
        }
        let registry = shared.registry();
        let (reason, why) = if registry.is_fixed(subject.name) {
            (
                "OverlappingBuiltInResource",
                "instances overlap with built-in resources in storage",
            )
        } else if !is_true(definition, "Established") {
            ("NeverEstablished", "resource was never established")
        } else if let Some(objects) = registry.collection_id(subject.name) {
            let state = shared.lock();
            let found: Vec<_> = state.newest_below(objects, "").cloned().collect();
            drop(state);
            if !found.is_empty() {
                let resource = registry.resource_named(subject.name).cloned();
                let Some(resource) = resource.filter(|_| !self.has_deleted) else {
                    return Ok(Checked::Nothing);
                };
                self.has_deleted = true;
                self.found = Some((resource, found.into_iter()));
                return Ok(Checked::Deletes);
            }
            ("InstanceDeletionCompleted", "removed all instances")
        } else {
            ("InstanceDeletionCompleted", "removed all instances")
        };
        terminating(&mut changed, ("False", reason, why), &now);
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
        if step == Step::Remove {
            self.check_others(subject.name);
        }
        Ok(Checked::Changed)
    }

    /// Adds the other definitions of the group to the queue, because names may have become free.
    fn check_others(&mut self, name: &str) {
        let Some(definitions) = &self.shared.builtin.definitions else {
            return;
        };
        let Some((_, group)) = name.split_once('.') else {
            return;
        };
        let state = self.shared.lock();
        let others = state.newest_below(definitions.collection, "");
        let others = others.map(|entry| entry.name()).filter(|other| {
            *other != name && other.split_once('.').is_some_and(|(_, of)| of == group)
        });
        self.queue.extend(others.map(str::to_owned));
    }
}

impl Work for Definitions {
    const NAME: &'static str = "the change of a definition";

    fn step(&mut self) -> Option<CollectionId> {
        loop {
            if let Some((resource, entries)) = &mut self.found
                && let Some(entry) = entries.next()
            {
                let subject = Subject {
                    resource,
                    namespace: entry.namespace(),
                    name: entry.name(),
                };
                let object = Object::stored(entry.object(resource));
                let options = DeleteOptions::in_background(object.text("uid"));
                // The deletion fails only if another client has deleted or replaced the object first.
                drop(delete_object(
                    &self.shared,
                    subject,
                    &options,
                    How::EMPTYING,
                ));
                return Some(resource.collection);
            }
            self.found = None;
            let name = self.queue.front()?.clone();
            match self.check(&name) {
                Ok(Checked::Changed | Checked::Deletes) => {}
                Ok(Checked::Nothing) => {
                    self.queue.pop_front();
                    self.has_deleted = false;
                }
                Err(cause) => {
                    tracing::warn!(%name, %cause, "failed to store the status of a CustomResourceDefinition");
                    self.queue.pop_front();
                }
            }
        }
    }
}

/// Returns the resource names and the kinds that other definitions of a group use.
fn used_names(
    shared: &Shared,
    definitions: &Resource,
    group: &str,
    name: &str,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let state = shared.lock();
    let others = state.newest_below(definitions.collection, "");
    let is_other = |entry: &&Arc<Entry>| {
        entry.name() != name
            && entry
                .name()
                .split_once('.')
                .is_some_and(|(_, of)| of == group)
    };
    let others: Vec<Arc<Entry>> = others.filter(is_other).cloned().collect();
    drop(state);
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in others {
        let status = Object::stored(other.object(definitions)).part("status");
        let names = &status["acceptedNames"];
        let text = |member: &str| {
            names[member]
                .as_str()
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
        };
        resources.extend([text("plural"), text("singular")].into_iter().flatten());
        let short = names["shortNames"].as_array().into_iter().flatten();
        resources.extend(short.filter_map(Value::as_str).map(str::to_owned));
        kinds.extend([text("kind"), text("listKind")].into_iter().flatten());
    }
    (resources, kinds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;
    use crate::verb::create::create;

    #[test]
    fn a_request_that_began_before_the_deletion_of_a_definition_creates_nothing() {
        let server = Server::builder().build();
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        });
        server.create(definition).unwrap();
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
}
