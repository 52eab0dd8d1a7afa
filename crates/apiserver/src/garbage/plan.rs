//! The decisions: what has to be written for a task.

use std::sync::Arc;

use super::graph::Graph;
use super::node::{Node, NodeId, Phase, Place, Standing, Target};
use super::queue::Task;
use super::seen::{FOREGROUND, ORPHAN, Seen};

/// What a look for the owner of a reference finds.
pub(crate) enum Found {
    /// No kind with this name is served.
    NoKind,
    /// The owner would be in a namespace, and the dependent is in none. Such a reference is never followed.
    NoNamespace,
    NoObject,
    Object(Place, Seen),
}

/// The newest states of the stored objects.
pub(crate) trait Objects {
    /// Looks for the object that a reference names, in the namespace of the dependent.
    fn find(&self, target: &Target, namespace: Option<&str>) -> Found;

    /// Looks for an object with this uid, and with this kind and name, in all namespaces.
    fn find_elsewhere(&self, target: &Target, uid: &str) -> Option<(Place, Seen)>;
}

/// How the dependents of a deleted object are deleted (`propagationPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Background,
    Foreground,
    Orphan,
}

/// A change of one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Delete(Policy),
    /// Removes the references to the owners with these uids.
    RemoveReferences(Vec<Arc<str>>),
    /// Sets `blockOwnerDeletion` to false in all references.
    Unblock,
    RemoveFinalizer(&'static str),
    /// Creates the event of a reference to an owner in another namespace.
    Report {
        owner: Arc<str>,
        target: Arc<Target>,
    },
}

/// The changes that a task requires.
#[derive(Debug)]
pub(crate) enum Plan {
    Nothing,
    /// The task can't be completed now, for example because the kind of an owner is not served.
    Later,
    /// The changes of the object with this place and uid, in this order.
    Write {
        place: Place,
        uid: Arc<str>,
        changes: Vec<Change>,
    },
}

/// The references of an object, by what they name.
#[derive(Default)]
struct Owners {
    solid: usize,
    dangling: Vec<Arc<str>>,
    /// The owners whose deletion waits for their dependents.
    waiting: Vec<Arc<str>>,
}

/// Why the references of an object are not classified.
enum Unclassified {
    NoKind,
    NoNamespace,
}

impl Graph {
    /// Removes the oldest task and returns it with what it requires. Returns `None` if no task waits.
    ///
    /// `objects` has exactly the changes that the graph has observed.
    pub(crate) fn next(&mut self, objects: &dyn Objects) -> Option<(Task, Plan)> {
        let task = self.queue.pop()?;
        let plan = match task {
            Task::Verify(owner) => self.verify(owner, objects),
            Task::Attempt(id) => self.attempt(id, objects),
            Task::Orphan { owner, from } => self.orphan(owner, from),
            Task::Report { dependent, owner } => self.report(dependent, owner),
        };
        if matches!(plan, Plan::Nothing) {
            self.queue.succeeded(task);
        }
        Some((task, plan))
    }

    /// Records that the changes of a task were made.
    pub(crate) fn succeeded(&mut self, task: Task) {
        self.queue.succeeded(task);
    }

    /// Looks for an owner under each name that its dependents have for it.
    fn verify(&mut self, owner: NodeId, objects: &dyn Objects) -> Plan {
        let Some(node) = self.nodes.get(&owner) else {
            return Plan::Nothing;
        };
        if !matches!(node.standing, Standing::Unknown) {
            return Plan::Nothing;
        }
        let uid = Arc::clone(&node.uid);
        let claims = self.claims(owner);
        for (target, namespace) in &claims {
            if let Found::Object(place, seen) = objects.find(target, namespace.as_deref())
                && seen.uid == uid
            {
                self.observe(&place, &seen);
                return Plan::Nothing;
            }
        }
        let mut elsewhere = claims.iter();
        if let Some((place, seen)) = elsewhere.find_map(|(it, _)| objects.find_elsewhere(it, &uid))
        {
            self.observe(&place, &seen);
            return Plan::Nothing;
        }
        let dependents = self.nodes.get(&owner).map(|node| node.dependents.clone());
        for dependent in dependents.into_iter().flatten() {
            self.queue.add(Task::Attempt(dependent));
        }
        Plan::Nothing
    }

    fn attempt(&mut self, id: NodeId, objects: &dyn Objects) -> Plan {
        let Some(node) = self.nodes.get(&id) else {
            return Plan::Nothing;
        };
        match node.phase {
            Phase::Ends | Phase::OrphansDependents => return Plan::Nothing,
            Phase::DeletesDependents if node.blocking > 0 => return Plan::Nothing,
            Phase::DeletesDependents => {
                return write(node, vec![Change::RemoveFinalizer(FOREGROUND)]);
            }
            Phase::Stays if node.owners.is_empty() => return Plan::Nothing,
            Phase::Stays => {}
        }
        let owners = match self.classify(node, objects) {
            Ok(owners) => owners,
            Err(Unclassified::NoKind) => return Plan::Later,
            Err(Unclassified::NoNamespace) => return Plan::Nothing,
        };
        if owners.solid > 0 {
            let mut removed = owners.dangling;
            removed.extend(owners.waiting);
            if removed.is_empty() {
                return Plan::Nothing;
            }
            return write(node, vec![Change::RemoveReferences(removed)]);
        }
        if owners.waiting.is_empty() || node.dependents.is_empty() {
            return write(node, vec![Change::Delete(own_policy(node, objects))]);
        }
        let mut changes = Vec::new();
        let is_deleting = |id| {
            let node = self.nodes.get(id);
            node.is_some_and(|node| node.phase == Phase::DeletesDependents)
        };
        if node.dependents.iter().any(is_deleting) {
            // The owners may wait for this object, and this object for its dependent, which may be an owner.
            changes.push(Change::Unblock);
        }
        changes.push(Change::Delete(Policy::Foreground));
        write(node, changes)
    }

    fn classify(&self, node: &Node, objects: &dyn Objects) -> Result<Owners, Unclassified> {
        let mut owners = Owners::default();
        let namespace = node.namespace();
        for reference in &node.owners {
            let owner = self.nodes.get(&reference.node);
            let Some(owner) = owner else { continue };
            let phase = match &owner.standing {
                // A kind that is not served any more can't be looked up.
                Standing::Gone(place) if place.is_named_by(&reference.target, namespace) => None,
                _ => match objects.find(&reference.target, namespace) {
                    Found::NoKind => return Err(Unclassified::NoKind),
                    Found::NoNamespace => return Err(Unclassified::NoNamespace),
                    Found::Object(_, seen) if seen.uid == owner.uid => Some(seen.phase),
                    Found::NoObject | Found::Object(..) => None,
                },
            };
            match phase {
                None => owners.dangling.push(Arc::clone(&owner.uid)),
                Some(Phase::DeletesDependents) => owners.waiting.push(Arc::clone(&owner.uid)),
                Some(_) => owners.solid += 1,
            }
        }
        Ok(owners)
    }

    /// Removes the reference of the next dependent, or the finalizer if no dependent is left.
    fn orphan(&mut self, owner: NodeId, from: NodeId) -> Plan {
        let Some(node) = self.nodes.get(&owner) else {
            return Plan::Nothing;
        };
        if node.phase != Phase::OrphansDependents || node.place().is_none() {
            return Plan::Nothing;
        }
        let next = node.dependents.range(from..).next();
        let Some(next) = next.copied() else {
            if node.dependents.is_empty() {
                return write(node, vec![Change::RemoveFinalizer(ORPHAN)]);
            }
            return Plan::Later;
        };
        let uid = Arc::clone(&node.uid);
        self.queue.add(Task::Orphan {
            owner,
            from: NodeId(next.0 + 1),
        });
        let dependent = self.nodes.get(&next);
        dependent.map_or(Plan::Nothing, |dependent| {
            write(dependent, vec![Change::RemoveReferences(vec![uid])])
        })
    }

    fn report(&self, dependent: NodeId, owner: NodeId) -> Plan {
        let Some(node) = self.nodes.get(&dependent) else {
            return Plan::Nothing;
        };
        let reference = node.owners.iter().find(|it| it.node == owner);
        let uid = self.nodes.get(&owner).map(|node| &node.uid);
        let (Some(reference), Some(uid)) = (reference, uid) else {
            return Plan::Nothing;
        };
        let report = Change::Report {
            owner: Arc::clone(uid),
            target: Arc::clone(&reference.target),
        };
        write(node, vec![report])
    }
}

/// Returns a plan with changes of the object of a node, or [`Plan::Nothing`] if the object does not exist.
fn write(node: &Node, changes: Vec<Change>) -> Plan {
    node.place().map_or(Plan::Nothing, |place| Plan::Write {
        place: place.clone(),
        uid: Arc::clone(&node.uid),
        changes,
    })
}

/// Returns the policy of a deletion that no owner determines: that of the object's finalizers.
fn own_policy(node: &Node, objects: &dyn Objects) -> Policy {
    let Some(place) = node.place() else {
        return Policy::Background;
    };
    let own = Target {
        api_version: place.kind.api_version(),
        kind: place.kind.kind.clone(),
        name: place.name().to_owned(),
    };
    match objects.find(&own, place.namespace()) {
        Found::Object(_, seen) => match seen.finalizer {
            Some(ORPHAN) => Policy::Orphan,
            Some(FOREGROUND) => Policy::Foreground,
            _ => Policy::Background,
        },
        _ => Policy::Background,
    }
}
