//! The scheduler: binds each pod without a node to a node with enough capacity for the pod.
//!
//! If several nodes have enough capacity, the scheduler selects the node with the most free CPU.
//!
//! Guarantees:
//! - The scheduler subtracts a pod's requests from the free capacity of a node before it sends the binding.
//!   It does not wait until the cache contains the binding. Therefore it does not bind too many pods to a
//!   node.
//! - A pod that fits on no node stays `Pending` and has a `PodScheduled` condition. The scheduler retries the
//!   pod when another pod terminates or is deleted, when a node is added, or when the capacity of a node
//!   changes.
//!
//! The scheduler considers only the resource requests of pods. It ignores affinity, taints and priorities, and
//! binds no pod to a cordoned node.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::{
    api::core::v1::{Binding, Node, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::Status,
};
use kube_client::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube_informer::{
    Event, EventHandler, Object, ObjectName,
    indexer::IndexToken,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    cache::Cache,
    control_plane::{ControlPlane, Process, Reconciler, Writes},
    node_agent::{has_ended, node_of},
    object::is_leaving,
    room::{Lack, Room},
    step::{Kind, Loop, Teller},
};

/// Number of workers; several could assign the same free capacity twice.
const WORKERS: usize = 1;

struct Controller {
    pods: Cache<Pod>,
    nodes: Cache<Node>,
    /// Index of bound pods that have not terminated, by node name.
    on_node: IndexToken,
    memory: Arc<Memory>,
    teller: Teller,
    write_pods: Writes<Pod>,
}

/// The scheduler's own state, in addition to its informer caches.
#[derive(Default)]
struct Memory {
    /// Nodes and resource requests of pods whose binding was sent but is not in the cache.
    assumed: Mutex<BTreeMap<ObjectName, Assumed>>,
    /// Pods that fit on no node. They are queued again when capacity may be available.
    ///
    /// The worker adds a pod before it checks the nodes, so that a capacity change during the check also
    /// queues this pod again.
    unschedulable: Mutex<BTreeSet<ObjectName>>,
}

struct Assumed {
    node: String,
    takes: Room,
}

/// Event handler for pods without a node: queues each new pod, and reports it as a `Step`.
struct Unbound {
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
    memory: Arc<Memory>,
}

/// Event handler for bound pods: reports each new binding as a `Step`. When a bound pod ends or is deleted,
/// queues the unschedulable pods again.
struct Bound {
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
    memory: Arc<Memory>,
}

/// Event handler for nodes, which queues the unschedulable pods when capacity may be available.
struct Nodes {
    queue: RateLimitingQueue<ObjectName>,
    memory: Arc<Memory>,
}

/// The resources that the scheduler may list and watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The scheduler lists and watches only pods, and binds none. It reports a `Step` for each pod without a
    /// node, and for each pod that another scheduler binds.
    Pods,
    PodsAndNodes,
}

/// Adds the scheduler to `process`.
///
/// If `reach` is [`Reach::Pods`], adds only the informer of pods and its event handlers, and no workers.
///
/// # Errors
/// Returns an error if the process has been shut down, or already has a scheduler.
pub(crate) async fn open(
    plane: &mut ControlPlane,
    process: &mut Process,
    reach: Reach,
) -> Result<(), anyhow::Error> {
    let who = Loop::Scheduler.as_str();
    let teller = process.teller(who);
    let pods = process.informer::<Pod>();
    let queue = RateLimitingQueue::new(rate_limiter::controller_default());
    let memory = Arc::new(Memory::default());
    let on_node = pods
        .add_index("node", |pod| {
            node_of(pod).filter(|_| takes_room(pod)).map(str::to_owned)
        })
        .await?;
    pods.handler(Unbound {
        queue: queue.clone(),
        teller: teller.clone(),
        memory: Arc::clone(&memory),
    })
    .filter(|pod| {
        pod.live()
            .is_some_and(|pod| node_of(pod).is_none() && takes_room(pod))
    })
    .register()?;
    pods.handler(Bound {
        queue: queue.clone(),
        teller: teller.clone(),
        memory: Arc::clone(&memory),
    })
    .filter(|pod| {
        pod.live()
            .is_some_and(|pod| node_of(pod).is_some() && takes_room(pod))
    })
    .register()?;
    if reach == Reach::Pods {
        return Ok(());
    }
    let nodes = process.informer::<Node>();
    nodes
        .handler(Nodes {
            queue: queue.clone(),
            memory: Arc::clone(&memory),
        })
        .register()?;
    let controller = Controller {
        pods: process.cache(&pods),
        nodes: process.cache(&nodes),
        on_node,
        memory,
        teller,
        write_pods: process.writes(),
    };
    plane.staff(who, queue, controller, WORKERS);
    Ok(())
}

fn takes_room(pod: &Pod) -> bool {
    !has_ended(pod)
}

// === observing ===

impl EventHandler<Pod> for Unbound {
    async fn handle(&mut self, event: Event<Pod>) {
        match event {
            Event::Added { object, .. } => {
                let text = "sees no spec.nodeName: queues it";
                self.teller.tell(Kind::PodQueued, &object, text).await;
                self.queue.add(object.object_name().clone());
            }
            // The pod was bound, has ended or was deleted.
            Event::Deleted(deleted) => self.memory.is_settled(deleted.object_name()),
            Event::Updated { .. } | Event::Synced => {}
        }
    }
}

impl EventHandler<Pod> for Bound {
    async fn handle(&mut self, event: Event<Pod>) {
        match event {
            Event::Added {
                object,
                in_initial_list,
            } => {
                self.memory.assumed.lock().remove(object.object_name());
                if let Some(node) = object.live().and_then(node_of).filter(|_| !in_initial_list) {
                    let text = format!("bound it to {node}");
                    self.teller.tell(Kind::PodBound, &object, text).await;
                }
            }
            Event::Deleted(_) => self.memory.try_again(&self.queue),
            Event::Updated { .. } | Event::Synced => {}
        }
    }
}

impl EventHandler<Node> for Nodes {
    async fn handle(&mut self, event: Event<Node>) {
        let changes = match event {
            Event::Added { .. } => true,
            Event::Updated { old, new, .. } => offers(&old) != offers(&new),
            Event::Deleted(_) | Event::Synced => false,
        };
        if changes {
            self.memory.try_again(&self.queue);
        }
    }
}

/// Returns the node's allocatable capacity, or `None` if it takes no pods or a quantity is invalid.
fn offers(node: &Object<Node>) -> Option<Room> {
    let node = node.live().filter(|node| !is_cordoned(node))?;
    Room::of_node(node).ok()
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

impl Memory {
    /// Removes a pod that no longer needs scheduling from `unschedulable` and `assumed`.
    ///
    /// Called when the cache shows that the pod is bound, has ended or is deleted.
    fn is_settled(&self, pod: &ObjectName) {
        self.unschedulable.lock().remove(pod);
        self.assumed.lock().remove(pod);
    }

    /// Adds all unschedulable pods to the queue.
    fn try_again(&self, queue: &RateLimitingQueue<ObjectName>) {
        for pod in self.unschedulable.lock().iter() {
            queue.add(pod.clone());
        }
    }
}

// === acting ===

impl Reconciler for Controller {
    async fn reconcile(&self, name: &ObjectName) -> Result<(), anyhow::Error> {
        // Checked before the cache is read. A pod that is removed from `assumed` later is bound in the cache.
        let is_assumed = self.memory.assumed.lock().contains_key(name);
        let Some(handle) = self.pods.find(name) else {
            self.memory.is_settled(name);
            return Ok(());
        };
        let pod = handle.get()?;
        if node_of(&pod).is_some() || is_assumed || !takes_room(&pod) || is_leaving(&*pod) {
            self.memory.unschedulable.lock().remove(name);
            return Ok(());
        }
        let asked = Room::of_pod(&pod)?;
        // Recorded before the nodes are checked. A later change of a node then causes a retry.
        self.memory.unschedulable.lock().insert(name.clone());
        match self.place(asked)? {
            Ok(node) => self.bind(name, &pod, Assumed { node, takes: asked }).await,
            Err(lacks) => self.leave_pending(&handle, &pod, &lacks).await,
        }
    }
}

impl Controller {
    /// Returns the name of the fitting node with the highest [`Room::rank`].
    ///
    /// If no node fits, the inner `Err` contains, for each node, the first resource that the node lacks.
    fn place(&self, asked: Room) -> Result<Result<String, Vec<Lack>>, anyhow::Error> {
        let mut fitting = Vec::new();
        let mut lacks = Vec::new();
        for node in self.nodes.list() {
            if is_cordoned(&*node.get()?) {
                lacks.push(Lack::Schedulability);
                continue;
            }
            let free = self.free(&node)?;
            match free.lacks(asked) {
                Some(lack) => lacks.push(lack),
                None => fitting.push((free, node)),
            }
        }
        // Selects the first of several equal nodes, because `max_by_key` returns the last maximum.
        fitting.reverse();
        let emptiest = fitting.into_iter().max_by_key(|(free, _)| free.rank());
        Ok(emptiest
            .map(|(_, node)| node.name().to_owned())
            .ok_or(lacks))
    }

    /// Returns a node's allocatable capacity minus the requests of its pods, including pods being bound.
    fn free(&self, node: &Object<Node>) -> Result<Room, anyhow::Error> {
        // Read before the cache. Otherwise a pod that becomes bound in between would not be counted.
        let assumed: Vec<_> = {
            let assumed = self.memory.assumed.lock();
            let here = assumed.iter().filter(|(_, it)| it.node == node.name());
            here.map(|(name, it)| (name.clone(), it.takes)).collect()
        };
        let mut free = Room::of_node(&*node.get()?)?;
        for pod in self.pods.by_index(&self.on_node, node.name()) {
            if !assumed.iter().any(|(name, _)| name == pod.object_name()) {
                free = free.minus(Room::of_pod(&*pod.get()?)?);
            }
        }
        Ok(assumed
            .iter()
            .fold(free, |free, (_, takes)| free.minus(*takes)))
    }

    async fn bind(
        &self,
        name: &ObjectName,
        pod: &Pod,
        assumed: Assumed,
    ) -> Result<(), anyhow::Error> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: pod.metadata.name.clone(),
                namespace: pod.metadata.namespace.clone(),
                uid: pod.metadata.uid.clone(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(assumed.node.clone()),
                ..ObjectReference::default()
            },
        };
        // Recorded before the request, because the event may arrive before the response.
        self.memory.assumed.lock().insert(name.clone(), assumed);
        let answer: Result<Status, _> = self
            .write_pods
            .to(name.namespace())
            .create_subresource("binding", name.name(), &PostParams::default(), &binding)
            .await;
        if let Err(error) = answer {
            self.memory.assumed.lock().remove(name);
            return Err(error.into());
        }
        self.memory.unschedulable.lock().remove(name);
        Ok(())
    }

    async fn leave_pending(
        &self,
        handle: &Object<Pod>,
        pod: &Pod,
        lacks: &[Lack],
    ) -> Result<(), anyhow::Error> {
        let message = nowhere(lacks);
        let conditions = pod.status.as_ref().and_then(|s| s.conditions.clone());
        let mut conditions = conditions.unwrap_or_default();
        let said = conditions.iter().any(|condition| {
            condition.type_ == "PodScheduled" && condition.message.as_ref() == Some(&message)
        });
        if said {
            return Ok(());
        }
        let text = format!("leaves it Pending: {message}");
        self.teller.tell(Kind::NoNodeFits, handle, text).await;
        conditions.retain(|condition| condition.type_ != "PodScheduled");
        let mut conditions = serde_json::to_value(conditions)?;
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.push(json!({
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": message,
            }));
        }
        let patch = json!({
            "metadata": {"uid": pod.metadata.uid},
            "status": {"conditions": conditions},
        });
        self.write_pods
            .in_namespace_of(pod)
            .patch_status(handle.name(), &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }
}

/// Returns kube-scheduler's message for a pod that fits on no node.
///
/// `lacks` contains one element per node.
fn nowhere(lacks: &[Lack]) -> String {
    let mut by_lack = BTreeMap::<Lack, usize>::new();
    for lack in lacks {
        *by_lack.entry(*lack).or_default() += 1;
    }
    let reasons: Vec<_> = by_lack
        .into_iter()
        .map(|(lack, nodes)| format!("{nodes} {lack}"))
        .collect();
    let among = lacks.len();
    if reasons.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    format!("0/{among} nodes are available: {}", reasons.join(", "))
}

#[cfg(test)]
mod tests;
