//! The graph of owners and dependents, and its changes.
//!
//! Guarantees: a node exists only while it [has a relation](Node::is_alone) to another node or waits for
//! dependents.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::node::{Node, NodeId, Owner, Phase, Place, Standing, Target};
use super::queue::{Queue, Task};
use super::seen::{Reference, Seen};

/// The owners and dependents of a server, and the tasks that their changes have left.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) ids: BTreeMap<Arc<str>, NodeId>,
    pub(super) queue: Queue,
    last: u64,
    /// Number of nodes whose object was never observed.
    unknown: usize,
    /// Whether the graph does not follow the stored objects, and has to be built again.
    is_stale: bool,
}

impl Graph {
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Makes the graph ignore changes until [`Graph::clear`], for example because stored objects were
    /// restored.
    pub(crate) fn expire(&mut self) {
        self.is_stale = true;
    }

    /// Removes all nodes and tasks. The caller then observes each stored object.
    pub(crate) fn clear(&mut self) {
        *self = Graph {
            last: self.last,
            ..Graph::default()
        };
    }

    /// Returns whether the creation of an object without owners can matter, because an owner is missing.
    pub(crate) fn misses_owners(&self) -> bool {
        self.unknown > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns whether a task is to be done now.
    pub(crate) fn has_work(&self, now: Instant) -> bool {
        self.is_stale || !self.queue.is_empty() || self.queue.has_due(now)
    }

    /// Queues the failed tasks whose wait is over.
    pub(crate) fn retry_due(&mut self, now: Instant) {
        self.queue.retry_due(now);
    }

    /// Queues all failed tasks, because kinds were added or removed.
    pub(crate) fn retry_all(&mut self) {
        self.queue.retry_all();
    }

    /// Records that the changes of a task failed. The task is tried again after a wait. Returns how often it
    /// failed.
    pub(crate) fn failed(&mut self, task: Task, now: Instant) -> u32 {
        self.queue.failed(task, now)
    }

    /// Queues a task again, because its object has changed meanwhile.
    pub(crate) fn again(&mut self, task: Task) {
        self.queue.add(task);
    }

    /// Records the new state of an object, which a write has stored.
    pub(crate) fn observe(&mut self, place: &Place, seen: &Seen) {
        let id = self.id_of(&seen.uid);
        self.appears(id, place);
        self.change_owners(id, &seen.owners);
        self.change_phase(id, seen.phase);
        self.prune(id);
    }

    /// Records that an object was removed.
    pub(crate) fn remove(&mut self, uid: &str) {
        let Some(id) = self.ids.get(uid).copied() else {
            return;
        };
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let Standing::Exists(place) = node.standing.clone() else {
            return;
        };
        node.standing = Standing::Gone(place);
        let owners = std::mem::take(&mut node.owners);
        let dependents: Vec<NodeId> = node.dependents.iter().copied().collect();
        for dependent in dependents {
            self.queue.add(Task::Attempt(dependent));
        }
        for owner in owners {
            self.unlink(id, &owner);
            self.unblocked(owner.node);
            self.prune(owner.node);
        }
        self.prune(id);
    }

    /// Returns the references to an owner, each kind, name and namespace once.
    pub(super) fn claims(&self, owner: NodeId) -> Vec<(Arc<Target>, Option<String>)> {
        let mut claims: BTreeMap<(Option<&str>, &Target), &Arc<Target>> = BTreeMap::new();
        let dependents = self.nodes.get(&owner).map(|node| &node.dependents);
        for dependent in dependents.into_iter().flatten() {
            let Some(node) = self.nodes.get(dependent) else {
                continue;
            };
            for reference in node.owners.iter().filter(|it| it.node == owner) {
                let claim = (node.namespace(), &*reference.target);
                claims.entry(claim).or_insert(&reference.target);
            }
        }
        let claims = claims.into_iter();
        claims
            .map(|((namespace, _), target)| (Arc::clone(target), namespace.map(str::to_owned)))
            .collect()
    }

    /// Returns the node of an object, and adds it if it does not exist.
    fn id_of(&mut self, uid: &Arc<str>) -> NodeId {
        if let Some(id) = self.ids.get(uid) {
            return *id;
        }
        self.last += 1;
        let id = NodeId(self.last);
        self.ids.insert(Arc::clone(uid), id);
        self.nodes.insert(id, Node::new(Arc::clone(uid)));
        self.unknown += 1;
        id
    }

    /// Records that the object of a node exists. Its dependents may have referred to another object.
    fn appears(&mut self, id: NodeId, place: &Place) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        if node.place().is_some() {
            return;
        }
        self.unknown -= usize::from(matches!(node.standing, Standing::Unknown));
        node.standing = Standing::Exists(place.clone());
        node.phase = Phase::Stays;
        let dependents: Vec<NodeId> = node.dependents.iter().copied().collect();
        for dependent in dependents {
            self.check_claim(dependent, id, place);
        }
    }

    /// Queues a dependent whose reference does not name the place of its owner, which has the uid of the
    /// reference.
    fn check_claim(&mut self, dependent: NodeId, owner: NodeId, place: &Place) {
        let Some(node) = self.nodes.get(&dependent) else {
            return;
        };
        let namespace = node.namespace();
        let mut claims = node.owners.iter().filter(|it| it.node == owner);
        if claims.all(|claim| place.is_named_by(&claim.target, namespace)) {
            return;
        }
        if place.is_elsewhere(namespace) {
            self.queue.add(Task::Report { dependent, owner });
        }
        self.queue.add(Task::Attempt(dependent));
    }

    fn change_owners(&mut self, id: NodeId, references: &[Reference]) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let old = std::mem::take(&mut node.owners);
        let mut owners = Vec::with_capacity(references.len());
        let mut added = Vec::new();
        for reference in references {
            let known = self.ids.contains_key(&reference.uid);
            let owner = self.id_of(&reference.uid);
            let is_old = old.iter().any(|it| it.node == owner);
            let target = self.shared_target(owner, &reference.target);
            if !known {
                self.queue.add(Task::Verify(owner));
            }
            if !is_old {
                added.push(owner);
            }
            owners.push(Owner {
                node: owner,
                target,
                blocks: reference.blocks,
            });
        }
        for owner in &owners {
            if let Some(node) = self.nodes.get_mut(&owner.node) {
                node.dependents.insert(id);
                node.blocking += usize::from(owner.blocks);
            }
        }
        if let Some(node) = self.nodes.get_mut(&id) {
            node.owners = owners;
        }
        self.forget_owners(id, &old);
        for owner in added {
            self.check_added(id, owner);
        }
    }

    /// Takes back the old references of a node, which has its new references.
    fn forget_owners(&mut self, id: NodeId, old: &[Owner]) {
        for owner in old {
            let stays = self.nodes.get(&id);
            let stays =
                stays.is_some_and(|node| node.owners.iter().any(|it| it.node == owner.node));
            if stays {
                if let Some(node) = self.nodes.get_mut(&owner.node) {
                    node.blocking -= usize::from(owner.blocks);
                }
            } else {
                self.unlink(id, owner);
            }
            if owner.blocks {
                self.unblocked(owner.node);
            }
            if !stays {
                self.prune(owner.node);
            }
        }
    }

    /// Queues a node with a new reference if the owner does not exist, or is being deleted in the foreground.
    fn check_added(&mut self, id: NodeId, owner: NodeId) {
        let Some(node) = self.nodes.get(&owner) else {
            return;
        };
        match &node.standing {
            Standing::Exists(_) if node.phase == Phase::DeletesDependents => {
                self.queue.add(Task::Attempt(id));
            }
            Standing::Exists(place) => {
                let place = place.clone();
                self.check_claim(id, owner, &place);
            }
            // The owner is about to be looked for, with the references of all its dependents.
            Standing::Unknown if self.queue.has(Task::Verify(owner)) => {}
            Standing::Unknown | Standing::Gone(_) => self.queue.add(Task::Attempt(id)),
        }
    }

    fn change_phase(&mut self, id: NodeId, phase: Phase) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let old = std::mem::replace(&mut node.phase, phase);
        if old == phase {
            return;
        }
        match phase {
            Phase::Stays | Phase::Ends => {}
            Phase::OrphansDependents => self.queue.add(Task::Orphan {
                owner: id,
                from: NodeId(0),
            }),
            Phase::DeletesDependents => {
                let dependents: Vec<NodeId> = node.dependents.iter().copied().collect();
                for dependent in dependents {
                    self.queue.add(Task::Attempt(dependent));
                }
                self.queue.add(Task::Attempt(id));
            }
        }
    }

    /// Queues an owner that waits for its dependents if the last one that blocks it is gone.
    fn unblocked(&mut self, owner: NodeId) {
        let waits = |node: &Node| node.blocking == 0 && node.phase == Phase::DeletesDependents;
        if self.nodes.get(&owner).is_some_and(waits) {
            self.queue.add(Task::Attempt(owner));
        }
    }

    /// Removes a node from the dependents of an owner.
    fn unlink(&mut self, id: NodeId, owner: &Owner) {
        if let Some(node) = self.nodes.get_mut(&owner.node) {
            node.dependents.remove(&id);
            node.blocking -= usize::from(owner.blocks);
        }
    }

    /// Removes a node without relations.
    fn prune(&mut self, id: NodeId) {
        if self.nodes.get(&id).is_some_and(Node::is_alone)
            && let Some(node) = self.nodes.remove(&id)
        {
            self.unknown -= usize::from(matches!(node.standing, Standing::Unknown));
            self.ids.remove(&node.uid);
        }
    }

    /// Returns the equal target of another reference to the owner, if the first one is equal.
    fn shared_target(&self, owner: NodeId, target: &Arc<Target>) -> Arc<Target> {
        let first = self.nodes.get(&owner);
        let first = first.and_then(|node| self.nodes.get(node.dependents.first()?));
        let known = first.and_then(|node| node.owners.iter().find(|it| it.node == owner));
        match known {
            Some(known) if known.target == *target => Arc::clone(&known.target),
            _ => Arc::clone(target),
        }
    }
}
