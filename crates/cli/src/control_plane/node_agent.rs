//! The node agent: simulates the containers of its node's pods, and writes the status of these pods.
//!
//! A container runs as soon as the agent starts it. While the counter [`Fates`] is above zero, each started
//! container decrements the counter, and fails after 400 ms. All other containers run until their pods are
//! deleted.
//!
//! Guarantees:
//! - The agent never changes a pod of another node.
//! - Before the agent reports that a pod has failed, it gets the pod from the server. The pod in the cache
//!   may be stale, and the final status must be based on the newest pod.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube_informer::{
    Event, EventHandler, Object, ObjectName,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    ControlPlane, Process, Reconciler, Writes,
    cache::Cache,
    is_gone, is_leaving,
    step::{Kind, Loop, Teller},
};

/// Lifetime of a container that must fail, long enough for its pod to become ready.
pub(crate) const LIFETIME: Duration = Duration::from_millis(400);

/// Number of pods of one node that are reconciled concurrently.
const WORKERS: usize = 2;

/// Number of containers that must still fail, shared by all node agents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates(Arc<AtomicU32>);

struct Agent {
    node: String,
    pods: Cache<Pod>,
    containers: Mutex<BTreeMap<ObjectName, Container>>,
    fates: Fates,
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
    write_pods: Writes<Pod>,
}

/// The simulated container of one pod.
#[derive(Clone, Debug)]
struct Container {
    /// Uid of the pod; a new pod with the same name has another uid.
    pod_uid: String,
    ends: Option<Instant>,
}

/// Event handler that queues new and changed pods of `node`, and all deleted pods.
///
/// Reports each new pod without a node. Reports each pod of `node` that starts, becomes ready or ends.
struct Pods {
    /// Name of the node whose new and changed pods are queued, or `None` for the pods of all nodes.
    node: Option<String>,
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
}

/// Adds the agent of the node `node` to `process`, which must have no other control loop.
///
/// # Errors
/// Returns an error if the process has been shut down.
pub(crate) fn open(
    plane: &mut ControlPlane,
    process: &mut Process,
    node: &str,
    fates: &Fates,
) -> Result<(), anyhow::Error> {
    let who = process.user_agent();
    let teller = process.teller(&who);
    let pods = process.informer::<Pod>();
    let queue = RateLimitingQueue::new(rate_limiter::controller_default());
    pods.handler(Pods {
        node: Some(node.to_owned()),
        queue: queue.clone(),
        teller: teller.clone(),
    })
    .register()?;
    let agent = Agent {
        node: node.to_owned(),
        pods: process.cache(&pods),
        containers: Mutex::default(),
        fates: fates.clone(),
        queue: queue.clone(),
        teller,
        write_pods: process.writes(),
    };
    plane.staff(&who, queue, agent, WORKERS);
    Ok(())
}

/// Registers an event handler that reports each new pod without a node, and each pod that starts, becomes
/// ready or ends on any node. Starts no worker, so no pod is simulated.
///
/// # Errors
/// Returns an error if the process has been shut down.
pub(crate) fn observe_all(process: &mut Process) -> Result<(), anyhow::Error> {
    let pods = process.informer::<Pod>();
    pods.handler(Pods {
        node: None,
        queue: RateLimitingQueue::new(rate_limiter::controller_default()),
        teller: process.teller(Loop::NodeAgent.as_str()),
    })
    .register()?;
    Ok(())
}

pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.node_name.as_deref())
        .filter(|node| !node.is_empty())
}

fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Failed" | "Succeeded")
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let mut conditions = status.iter().flat_map(|s| s.conditions.iter().flatten());
    phase(pod) == "Running" && conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}

impl Fates {
    /// Creates a counter with the value `doomed`, so the first `doomed` containers that start will fail.
    pub(crate) fn new(doomed: u32) -> Self {
        Self(Arc::new(AtomicU32::new(doomed)))
    }

    /// Returns whether a container that starts now must fail. If so, decrements the counter.
    fn dooms_next(&self) -> bool {
        let left = |doomed: u32| doomed.checked_sub(1);
        let counted = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        counted.is_ok()
    }
}

// === observing ===

impl EventHandler<Pod> for Pods {
    async fn handle(&mut self, event: Event<Pod>) {
        let (old, new) = match &event {
            Event::Added { object, .. } => (None, object),
            Event::Updated { old, new, .. } => (old.live(), new),
            Event::Deleted(deleted) => {
                self.queue.add(deleted.object_name().clone());
                return;
            }
            Event::Synced => return,
        };
        let Some(pod) = new.live() else { return };
        if node_of(pod).is_none() {
            if old.is_none() {
                let text = "sees no node in it: not mine, back to sleep";
                self.teller.tell(Kind::NotMine, new, text).await;
            }
            return;
        }
        if !self.is_mine(pod) {
            return;
        }
        self.queue.add(new.object_name().clone());
        if old.is_none_or(|old| node_of(old).is_none()) {
            let text = "wakes, for it is mine: starts it";
            self.teller.tell(Kind::PodStarts, new, text).await;
        }
        if is_ready(pod) && !old.is_some_and(is_ready) {
            let text = "wrote its status: Running, ready";
            self.teller.tell(Kind::PodRuns, new, text).await;
        }
        if has_ended(pod) && !old.is_some_and(has_ended) {
            let text = format!("wrote its status: {}", phase(pod));
            self.teller.tell(Kind::PodFailed, new, text).await;
        }
    }
}

impl Pods {
    fn is_mine(&self, pod: &Pod) -> bool {
        self.node.is_none() || node_of(pod) == self.node.as_deref()
    }
}

// === acting ===

impl Reconciler for Agent {
    async fn reconcile(&self, name: &ObjectName) -> Result<(), anyhow::Error> {
        let Some(handle) = self.pods.find(name) else {
            self.containers.lock().remove(name);
            return Ok(());
        };
        let pod = handle.get()?;
        if node_of(&pod) != Some(&self.node) || has_ended(&pod) {
            self.containers.lock().remove(name);
            return Ok(());
        }
        if is_leaving(&*pod) {
            self.containers.lock().remove(name);
            return self.remove(&pod).await;
        }
        let container = self.start(name, &pod);
        match container.ends {
            Some(at) if Instant::now() >= at => self.end(name, &container).await,
            _ if is_ready(&pod) => Ok(()),
            _ => self.write(name, &container, running(&pod)).await,
        }
    }
}

impl Agent {
    /// Returns the pod's simulated container. If the pod has no container, starts one first.
    fn start(&self, name: &ObjectName, pod: &Pod) -> Container {
        let pod_uid = pod.metadata.uid.clone().unwrap_or_default();
        let mut containers = self.containers.lock();
        if let Some(container) = containers.get(name).filter(|c| c.pod_uid == pod_uid) {
            return container.clone();
        }
        let ends = self.fates.dooms_next().then(|| Instant::now() + LIFETIME);
        let container = Container { pod_uid, ends };
        containers.insert(name.clone(), container.clone());
        if ends.is_some() {
            self.queue.add_after(name.clone(), LIFETIME);
        }
        container
    }

    /// Writes the status `Failed` of a pod whose container has ended.
    async fn end(&self, name: &ObjectName, container: &Container) -> Result<(), anyhow::Error> {
        let pod = match self.write_pods.to(name.namespace()).get(name.name()).await {
            Ok(pod) => pod,
            // The cache observes the deletion later, and the container is removed then.
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if pod.metadata.uid.as_ref() != Some(&container.pod_uid) || has_ended(&pod) {
            return Ok(());
        }
        let handle = Object::new(pod)?;
        let text = "its container ended: reads it from the server";
        self.teller.tell(Kind::PodEnds, &handle, text).await;
        self.write(name, container, failed(&*handle.get()?)).await
    }

    async fn write(
        &self,
        name: &ObjectName,
        container: &Container,
        status: Value,
    ) -> Result<(), anyhow::Error> {
        let patch = json!({"metadata": {"uid": container.pod_uid}, "status": status});
        let patched = self
            .write_pods
            .to(name.namespace())
            .patch_status(name.name(), &PatchParams::default(), &Patch::Merge(patch))
            .await;
        match patched {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Deletes a pod, whose container must already be stopped, without a grace period.
    async fn remove(&self, pod: &Pod) -> Result<(), anyhow::Error> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let this_one = Preconditions {
            uid: pod.metadata.uid.clone(),
            ..Preconditions::default()
        };
        let at_once = DeleteParams::default()
            .grace_period(0)
            .preconditions(this_one);
        match self
            .write_pods
            .in_namespace_of(pod)
            .delete(name, &at_once)
            .await
        {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Returns the status of a running pod in which all containers are ready.
fn running(pod: &Pod) -> Value {
    json!({
        "phase": "Running",
        "conditions": conditions(pod, "True", None),
        "containerStatuses": containers(pod, true, &json!({"running": {}})),
    })
}

/// Returns the status of a pod whose containers have ended with an error.
fn failed(pod: &Pod) -> Value {
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    json!({
        "phase": "Failed",
        "reason": "Error",
        "message": "the container ended by itself",
        "conditions": conditions(pod, "False", Some("PodFailed")),
        "containerStatuses": containers(pod, false, &ended),
    })
}

/// Returns all conditions for the pod's status, because a merge patch replaces the whole list.
fn conditions(pod: &Pod, ready: &str, reason: Option<&str>) -> Value {
    const OWN: [&str; 3] = ["Initialized", "ContainersReady", "Ready"];
    let status = pod.status.as_ref();
    let others = status.iter().flat_map(|s| s.conditions.iter().flatten());
    let others = others.filter(|condition| !OWN.contains(&condition.type_.as_str()));
    let own = OWN.map(|kind| match (kind, reason) {
        ("Initialized", _) => json!({"type": kind, "status": "True"}),
        (_, None) => json!({"type": kind, "status": ready}),
        (_, Some(reason)) => json!({"type": kind, "status": ready, "reason": reason}),
    });
    others
        .map(|condition| json!(condition))
        .chain(own)
        .collect()
}

fn containers(pod: &Pod, ready: bool, state: &Value) -> Value {
    let spec = pod.spec.as_ref();
    let containers = spec.iter().flat_map(|spec| &spec.containers);
    let of = |name: &str, image: Option<&str>| {
        json!({
            "name": name,
            "image": image.unwrap_or_default(),
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": state,
        })
    };
    containers
        .map(|container| of(&container.name, container.image.as_deref()))
        .collect()
}

#[cfg(test)]
mod tests;
