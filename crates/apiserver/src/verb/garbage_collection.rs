//! Collects garbage: carries out the decisions of [`garbage::Graph`](crate::garbage::Graph).
//!
//! Guarantees:
//! - each change is that of a client: it obeys finalizers, grace periods and validation, and each has its revision and
//!   its event;
//! - an object is deleted only in the state in which its owners were looked up;
//! - no background task runs. The call whose write leaves garbage collects it before it returns, at any depth, as far
//!   as no finalizer or grace period delays it. The write that ends the delay continues the collection;
//! - a change that fails is tried again by a later write: after 5 ms at the earliest, and after twice as long for each
//!   further failure.
//!
//! In Kubernetes, the garbage collector is a controller of kube-controller-manager, which works after the
//! response.

use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::create::create;
use super::definition::Definitions;
use super::delete::delete;
use super::delete_object::DeleteOptions;
use super::namespace::Emptying;
use super::update::change;
use super::write::{How, Subject};
use crate::garbage::{Change, Found, Objects, Place, Plan, Seen, Target, Task};
use crate::long_write::{FollowUp, Work};
use crate::object::Object;
use crate::resource::{CollectionId, Registry, Resource};
use crate::shared::{Shared, State};
use crate::status::ApiError;
use crate::storage::Entry;

/// Maximum number of decisions that are made without releasing the lock of the state, about a millisecond of
/// them.
const DECISIONS_MAX: usize = 1_000;

/// Number of failures of one task after which further ones are not logged.
const LOGGED_FAILURES: u32 = 1;

/// The collection of all garbage that exists.
pub(crate) struct Collecting {
    shared: Arc<Shared>,
    /// The changes of the current task that are left.
    current: Option<Current>,
}

/// The changes of one object that a task requires.
struct Current {
    task: Task,
    place: Place,
    uid: Arc<str>,
    /// The revision of the state in which the owners were looked up.
    revision: u64,
    changes: std::vec::IntoIter<Change>,
}

impl Collecting {
    /// Returns the work that collects the garbage which writes leave. `None` if the server collects none.
    ///
    /// The value can be made before the writes.
    pub(crate) fn after_writes(shared: &Arc<Shared>) -> Option<FollowUp<Collecting>> {
        let work = shared.settings.collects_garbage().then(|| Collecting {
            shared: Arc::clone(shared),
            current: None,
        });
        work.map(|work| FollowUp::new(shared, work))
    }

    /// Collects the garbage that writes have left, without yielding.
    pub(crate) fn complete(shared: &Arc<Shared>) {
        if let Some(work) = Collecting::after_writes(shared) {
            work.complete();
        }
    }

    /// Takes the next task that requires changes. Returns `None` if no task waits.
    fn take_task(&self) -> Option<Current> {
        loop {
            if let ControlFlow::Break(taken) = self.decide() {
                return taken;
            }
        }
    }

    /// Decides tasks until one requires changes, at most [`DECISIONS_MAX`]. Breaks with that task, or if no
    /// task waits.
    fn decide(&self) -> ControlFlow<Option<Current>> {
        let mut state = self.shared.lock();
        let registry = self.shared.registry();
        let now = Instant::now();
        match &state.garbage {
            Some(graph) if graph.is_stale() => state.rebuild_relations(&registry),
            Some(graph) if graph.has_work(now) => {}
            _ => return ControlFlow::Break(None),
        }
        let Some(mut graph) = state.garbage.take() else {
            return ControlFlow::Break(None);
        };
        graph.retry_due(now);
        let objects = Stored {
            state: &state,
            registry: &registry,
            shared: &self.shared,
        };
        let mut taken = ControlFlow::Continue(());
        for _ in 0..DECISIONS_MAX {
            let Some((task, plan)) = graph.next(&objects) else {
                taken = ControlFlow::Break(None);
                break;
            };
            match plan {
                Plan::Nothing => {}
                Plan::Later => {
                    graph.failed(task, now);
                }
                Plan::Write {
                    place,
                    uid,
                    changes,
                } => {
                    let entry = state.newest(place.collection, &place.key);
                    taken = ControlFlow::Break(Some(Current {
                        task,
                        revision: entry.map_or(0, |entry| entry.revision),
                        place,
                        uid,
                        changes: changes.into_iter(),
                    }));
                    break;
                }
            }
        }
        state.garbage = Some(graph);
        taken
    }

    /// Makes one change, and continues the deletion of the object's namespace or definition.
    fn make(&self, current: &mut Current, change: &Change) -> Result<(), ApiError> {
        let (place, uid) = (&current.place, &*current.uid);
        let registry = self.shared.registry();
        let kind = &place.kind;
        let resource = registry
            .by_path(&kind.group, &kind.version, &kind.plural)
            .or_else(|| registry.last_resource(&kind.group_resource()))
            .ok_or_else(ApiError::no_such_path)?;
        let subject = Subject {
            resource,
            namespace: place.namespace(),
            name: place.name(),
        };
        match change {
            Change::Delete(policy) => {
                let options = DeleteOptions::of_state(uid, current.revision, *policy);
                delete(&self.shared, subject, &options, How::EMPTYING)?;
                Emptying::after_delete(&self.shared, subject, How::EMPTYING).complete();
            }
            Change::Report { owner, target } => {
                // An event is not worth a second attempt.
                if let Err(cause) = report(&self.shared, (place, uid), owner, target) {
                    let key = &place.key;
                    tracing::warn!(%key, %cause, "failed to create an event about an owner in another namespace");
                }
                return Ok(());
            }
            Change::RemoveReferences(_) | Change::Unblock | Change::RemoveFinalizer(_) => {
                let entry = patch(&self.shared, subject, uid, change)?;
                current.revision = entry.revision;
                let namespace = place.namespace();
                Emptying::after_write(&self.shared, resource, namespace, How::EMPTYING).complete();
            }
        }
        Definitions::after_write(&self.shared, resource, Some(subject.name)).complete();
        Ok(())
    }

    /// Records the failure of a change.
    fn fail(&self, current: &Current, cause: &ApiError) {
        let mut state = self.shared.lock();
        let Some(graph) = &mut state.garbage else {
            return;
        };
        match cause.code() {
            // Another client has deleted the object, which the graph knows.
            404 => graph.succeeded(current.task),
            409 => graph.again(current.task),
            _ => {
                let failures = graph.failed(current.task, Instant::now());
                drop(state);
                let (resource, key) = (current.place.kind.group_resource(), &current.place.key);
                if failures <= LOGGED_FAILURES {
                    tracing::warn!(%resource, %key, %cause, "the garbage collector failed to change an object; a later write tries it again");
                }
            }
        }
    }
}

impl Work for Collecting {
    const NAME: &'static str = "a garbage collection";

    fn step(&mut self) -> Option<CollectionId> {
        loop {
            let mut current = match self.current.take() {
                Some(current) => current,
                None => self.take_task()?,
            };
            let Some(change) = current.changes.next() else {
                let mut state = self.shared.lock();
                if let Some(graph) = &mut state.garbage {
                    graph.succeeded(current.task);
                }
                continue;
            };
            if let Err(cause) = self.make(&mut current, &change) {
                self.fail(&current, &cause);
                continue;
            }
            let collection = current.place.collection;
            self.current = Some(current);
            return Some(collection);
        }
    }
}

/// The stored objects, for decisions.
struct Stored<'a> {
    state: &'a State,
    registry: &'a Registry,
    shared: &'a Shared,
}

impl Stored<'_> {
    fn object(&self, resource: &Resource, key: &str) -> Option<(Place, Seen)> {
        let entry = self.state.newest(resource.collection, key)?;
        let seen = Seen::read(entry.metadata())?;
        Some((Place::new(resource, &entry.key), seen))
    }
}

impl Objects for Stored<'_> {
    fn find(&self, target: &Target, namespace: Option<&str>) -> Found {
        let Some(resource) = self.registry.by_kind(&target.api_version, &target.kind) else {
            return Found::NoKind;
        };
        if resource.is_namespaced() && namespace.is_none() {
            return Found::NoNamespace;
        }
        let found = self.object(resource, &resource.key(namespace, &target.name));
        found.map_or(Found::NoObject, |(place, seen)| Found::Object(place, seen))
    }

    fn find_elsewhere(&self, target: &Target, uid: &str) -> Option<(Place, Seen)> {
        let resource = self.registry.by_kind(&target.api_version, &target.kind)?;
        let namespaces = self.shared.builtin.namespaces.as_ref()?;
        if !resource.is_namespaced() {
            return None;
        }
        let mut namespaces = self.state.newest_below(namespaces.collection, "");
        namespaces.find_map(|namespace| {
            let key = resource.key(Some(namespace.name()), &target.name);
            let found = self.object(resource, &key);
            found.filter(|(_, seen)| &*seen.uid == uid)
        })
    }
}

/// Changes the owner references or the finalizers of the object with this uid, as a PATCH of a client does.
fn patch(
    shared: &Shared,
    subject: Subject<'_>,
    uid: &str,
    patch: &Change,
) -> Result<Arc<Entry>, ApiError> {
    change(shared, subject, How::EMPTYING, |old| {
        if old.text("uid") != uid {
            return Err(subject.not_found());
        }
        let mut new = old.clone();
        match patch {
            Change::RemoveReferences(owners) => retain(&mut new, "ownerReferences", |reference| {
                let uid = reference["uid"].as_str().unwrap_or_default();
                !owners.iter().any(|owner| **owner == *uid)
            }),
            Change::RemoveFinalizer(finalizer) => {
                retain(&mut new, "finalizers", |value| value != finalizer);
            }
            _ => {
                let mut references = old.meta("ownerReferences").cloned();
                let items = references.as_mut().and_then(Value::as_array_mut);
                for reference in items.into_iter().flatten() {
                    if reference["blockOwnerDeletion"] == true {
                        reference["blockOwnerDeletion"] = json!(false);
                    }
                }
                new.set_meta("ownerReferences", references);
            }
        }
        Ok(new)
    })
}

/// Keeps the items of a list in `metadata` that satisfy `keeps`, and removes an empty list.
fn retain(object: &mut Object, member: &str, keeps: impl Fn(&Value) -> bool) {
    let items = object.meta(member).and_then(Value::as_array);
    let items = items.into_iter().flatten();
    let kept: Vec<Value> = items.filter(|item| keeps(item)).cloned().collect();
    object.set_meta(member, (!kept.is_empty()).then(|| json!(kept)));
}

/// Creates the event `OwnerRefInvalidNamespace` about a dependent, given its place and its uid.
///
/// The event of an object without a namespace is in `default`.
fn report(
    shared: &Shared,
    (place, dependent): (&Place, &str),
    owner: &str,
    target: &Target,
) -> Result<(), ApiError> {
    let registry = shared.registry();
    let Some(events) = registry.by_path("", "v1", "events") else {
        return Ok(());
    };
    let namespace = place.namespace().unwrap_or_default();
    let recorded_in = if namespace.is_empty() {
        "default"
    } else {
        namespace
    };
    let Target {
        api_version,
        kind,
        name,
    } = target;
    let message = format!(
        "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {owner}] does not exist in namespace {namespace:?}"
    );
    let now = shared.settings.clock.now();
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{}.{:x}", place.name(), unique(shared, now)),
            "namespace": recorded_in,
        },
        "involvedObject": {
            "apiVersion": place.kind.api_version(),
            "kind": place.kind.kind,
            "namespace": namespace,
            "name": place.name(),
            "uid": dependent,
        },
        "reason": "OwnerRefInvalidNamespace",
        "message": message,
        "source": {"component": REPORTER},
        "reportingComponent": REPORTER,
        "firstTimestamp": now.to_string(),
        "lastTimestamp": now.to_string(),
        "count": 1,
        "type": "Warning",
    });
    let event = event.as_object().cloned().unwrap_or_default();
    let mut event = Object::stored(event);
    events.complete(&mut event);
    create(shared, events, Some(recorded_in), event, How::EMPTYING)?;
    Ok(())
}

/// Name of the garbage collector in events.
const REPORTER: &str = "garbage-collector-controller";

/// Returns a number for the name of an event: a time in nanoseconds, which differs for each write.
fn unique(shared: &Shared, now: Timestamp) -> i128 {
    now.as_nanosecond() + i128::from(shared.lock().next_revision() % 1_000_000_000)
}
