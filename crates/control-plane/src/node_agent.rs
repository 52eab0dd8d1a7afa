//! The node agent: simulates the containers of its node's pods, and writes the status of these pods.
//!
//! The annotations of a pod say how its containers behave (see the module `plan`). Without annotations, they run
//! and are ready as soon as the agent starts them, and run until the pod is deleted. Containers that end are
//! started again as `restartPolicy` says, with the delays of the kubelet.
//!
//! While the counter [`Fates`] is above zero, each started pod decrements the counter, and fails after 400 ms.
//!
//! Guarantees:
//! - The agent never changes a pod of another node.
//! - Before the agent reports that a pod has ended, it gets the pod from the server. The pod in the cache
//!   may be stale, and the final status must be based on the newest pod.

mod container;
mod logs;
mod plan;
mod pod_status;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time};
use kube_client::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube_informer::{
    Event, EventHandler, Object, ObjectName,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub use self::logs::Logs;
use self::{
    container::{Happening, Life},
    plan::{Plan, Restart},
    pod_status::View,
};
use crate::{
    cache::Cache,
    clock::Clock,
    control_plane::{ControlPlane, Process, Reconciler, Writes},
    events::Events,
    object::{is_gone, is_leaving},
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
    running: Mutex<BTreeMap<ObjectName, Running>>,
    fates: Fates,
    logs: Logs,
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
    events: Events,
    clock: Clock,
    write_pods: Writes<Pod>,
}

/// A pod that the agent has started, until the pod is gone.
#[derive(Clone, Debug)]
struct Running {
    /// Uid of the pod; a new pod with the same name has another uid.
    pod_uid: String,
    /// What the annotations said when the agent last read them.
    declared: Plan,
    life: Life,
    /// When the agent saw the deletion.
    stops: Option<Timestamp>,
    has_stopped: bool,
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
    (fates, logs): (&Fates, &Logs),
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
        running: Mutex::default(),
        fates: fates.clone(),
        logs: logs.clone(),
        queue: queue.clone(),
        teller,
        events: process.events("kubelet", Some(node)),
        clock: process.clock(),
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

/// Returns since when a pod is ready.
pub(super) fn ready_since(pod: &Pod) -> Option<&Time> {
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|it| it.type_ == "Ready" && it.status == "True")?;
    ready.last_transition_time.as_ref()
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
            if let Some(it) = self.running.lock().remove(name) {
                self.logs.forget(name, &it.pod_uid);
            }
            return Ok(());
        };
        let pod = handle.get()?;
        if node_of(&pod) != Some(&self.node) {
            return Ok(());
        }
        if is_leaving(&*pod) {
            return self.stop(name, &pod).await;
        }
        if has_ended(&pod) {
            return Ok(());
        }
        let now = self.clock.now();
        let plan = match Plan::of(&pod) {
            Ok(plan) => plan,
            Err(error) => return self.reject(name, &pod, error.to_string()).await,
        };
        let life = self.advance(name, &pod, plan);
        let view = View::Life(&life, now);
        let shown = view.shown();
        if pod_status::shown_by(&pod).as_ref() == Some(&shown) {
            return Ok(());
        }
        let is_start = pod_status::shown_by(&pod).is_none_or(|before| before.phase == "Pending");
        if matches!(shown.phase, "Failed" | "Succeeded") {
            return self.end(name, &pod, &view).await;
        }
        self.write(name, &pod, view.status(&pod)).await?;
        if is_start && shown.phase == "Running" {
            for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                let text = format!("Container started: {}", container.name);
                self.events.normal(&*pod, "Started", text);
            }
        }
        Ok(())
    }
}

impl Agent {
    /// Returns the life of the pod's containers now. If the pod has none, starts one first, or continues the one in
    /// the pod's status, which an earlier agent has started.
    ///
    /// Queues the pod for the next change. Changed annotations have effect from now on.
    fn advance(&self, name: &ObjectName, pod: &Pod, plan: Plan) -> Life {
        let now = self.clock.now();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let mut running = self.running.lock();
        if running.get(name).is_some_and(|it| it.pod_uid != uid) {
            running.remove(name);
        }
        let it = running.entry(name.clone()).or_insert_with(|| Running {
            pod_uid: uid.clone(),
            declared: plan.clone(),
            life: pod_status::life_of(pod, plan.clone(), now)
                .unwrap_or_else(|| Life::new(self.fated(plan.clone()), now)),
            stops: None,
            has_stopped: false,
        });
        if it.declared != plan {
            it.declared = plan.clone();
            it.life.plan = plan;
        }
        if let Some(next) = it.life.advance(now) {
            let left = Duration::try_from(next.duration_since(now)).unwrap_or_default();
            self.queue.add_after(name.clone(), left);
        }
        for happening in it.life.happened.drain(..) {
            match happening {
                Happening::Started(at) => self.logs.start(name, &uid, (at, &it.life.plan.log)),
                Happening::Ended(end) => self.logs.end(name, (end.at, end.code)),
            }
        }
        it.life.clone()
    }

    /// Replaces the plan of a pod that must fail.
    fn fated(&self, plan: Plan) -> Plan {
        if !self.fates.dooms_next() {
            return plan;
        }
        Plan {
            end: Some((LIFETIME, 1)),
            restart: Restart::Never,
            ..plan
        }
    }

    /// Reports that the annotations of a pod are invalid. The pod waits until it is changed.
    async fn reject(&self, name: &ObjectName, pod: &Pod, why: String) -> Result<(), anyhow::Error> {
        let view = View::Invalid(why.clone(), self.clock.now());
        if pod_status::shown_by(pod).as_ref() == Some(&view.shown()) {
            return Ok(());
        }
        self.events.warning(pod, "Failed", why);
        self.write(name, pod, view.status(pod)).await
    }

    /// Stops the containers of a pod that is being deleted, and removes the pod when they have stopped.
    async fn stop(&self, name: &ObjectName, pod: &Pod) -> Result<(), anyhow::Error> {
        let now = self.clock.now();
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        let delay = Plan::of(pod).map_or(Duration::ZERO, |plan| plan.stop_delay.min(grace));
        let since = {
            let mut running = self.running.lock();
            running.get_mut(name).map(|it| *it.stops.get_or_insert(now))
        };
        let passed =
            since.map(|since| Duration::try_from(now.duration_since(since)).unwrap_or_default());
        // A pod that the agent has not started has nothing to stop.
        let left = passed.map_or(Duration::ZERO, |passed| delay.saturating_sub(passed));
        if !left.is_zero() {
            self.queue.add_after(name.clone(), left);
            return Ok(());
        }
        let stopping = {
            let mut running = self.running.lock();
            let it = running
                .get_mut(name)
                .filter(|it| !has_ended(pod) && !it.has_stopped);
            it.map(|it| it.has_stopped = true).is_some()
        };
        if stopping {
            for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                let text = format!("Stopping container {}", container.name);
                self.events.normal(pod, "Killing", text);
            }
        }
        self.remove(pod).await
    }

    /// Writes the final status of a pod whose containers have ended.
    async fn end(
        &self,
        name: &ObjectName,
        pod: &Pod,
        view: &View<'_>,
    ) -> Result<(), anyhow::Error> {
        let uid = pod.metadata.uid.as_ref();
        let pod = match self.write_pods.to(name.namespace()).get(name.name()).await {
            Ok(pod) => pod,
            // The cache observes the deletion later, and the containers are removed then.
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if pod.metadata.uid.as_ref() != uid || has_ended(&pod) {
            return Ok(());
        }
        let handle = Object::new(pod)?;
        let text = "its container ended: reads it from the server";
        self.teller.tell(Kind::PodEnds, &handle, text).await;
        let pod = handle.get()?;
        self.write(name, &pod, view.status(&pod)).await
    }

    async fn write(
        &self,
        name: &ObjectName,
        pod: &Pod,
        status: Value,
    ) -> Result<(), anyhow::Error> {
        let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": status});
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

#[cfg(test)]
mod tests;
