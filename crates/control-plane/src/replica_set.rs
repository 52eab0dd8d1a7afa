//! The replica set controller: creates and deletes pods until each ReplicaSet has the desired number.
//!
//! Guarantees:
//! - A stale cache does not cause too many pods. Before the controller counts the pods again, it waits for
//!   the events of all its creations and deletions, for at most five minutes (see the module `expectations`).
//! - Pods that have ended are deleted and replaced. In Kubernetes, the controller only replaces them, and the
//!   garbage collector deletes them.

mod pod;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetStatus},
    core::v1::Pod,
};
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube_core::ResourceExt;
use kube_informer::{
    Event, EventHandler, Object, ObjectName,
    indexer::IndexToken,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use parking_lot::Mutex;
use serde_json::json;

use self::{
    pod::{least_useful, newest_ready, pod_of},
    status::{conditions, normalized},
};
use crate::{
    cache::Cache,
    clock::Clock,
    control_plane::{ControlPlane, Process, Reconciler, Writes},
    deployment::pods,
    events::Events,
    expectations::{EXPECTATION_TIMEOUT, Expectations},
    node_agent::{has_ended, is_ready, ready_since},
    object::{
        controller_name, controller_uid, is_gone, is_in_ending_namespace, is_leaving, message_of,
    },
    step::{Kind, Loop, Teller},
};

/// Number of ReplicaSets that are reconciled concurrently.
const WORKERS: usize = 2;

/// Maximum number of pods that one reconciliation creates or deletes.
///
/// The value is that of `BurstReplicas` in `replica_set.go`.
const BURST_MAX: usize = 500;

struct Controller {
    replica_sets: Cache<ReplicaSet>,
    pods: Cache<Pod>,
    /// Index of the pods by the uid of the ReplicaSet that controls them.
    owned: IndexToken,
    expectations: Arc<Expectations>,
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
    events: Events,
    clock: Clock,
    /// Number of ready pods of each ReplicaSet at the latest call of [`Controller::tell_content`].
    content: Mutex<BTreeMap<ObjectName, i32>>,
    write_replica_sets: Writes<ReplicaSet>,
    write_pods: Writes<Pod>,
}

/// Event handler that adds ReplicaSets to the queue, and reports new ReplicaSets and changes of their status.
struct ReplicaSets {
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
}

/// Event handler that adds a pod's ReplicaSet to the queue, and reports added, ended and deleted pods.
///
/// Also confirms the controller's own creations and deletions in `expectations`.
struct Pods {
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
    expectations: Arc<Expectations>,
}

/// Adds the replica set controller to `process`.
///
/// # Errors
/// Returns an error if `process` has been shut down, or already has a replica set controller.
pub(crate) async fn open(
    plane: &mut ControlPlane,
    process: &mut Process,
) -> Result<(), anyhow::Error> {
    let who = Loop::ReplicaSet.as_str();
    let teller = process.teller(who);
    let replica_sets = process.informer::<ReplicaSet>();
    let pods = process.informer::<Pod>();
    let queue = RateLimitingQueue::new(rate_limiter::controller_default());
    let expectations = Arc::new(Expectations::default());
    let owned = pods
        .add_index("replica-set", |pod| controller_uid(pod, "ReplicaSet"))
        .await?;
    replica_sets
        .handler(ReplicaSets {
            queue: queue.clone(),
            teller: teller.clone(),
        })
        .register()?;
    pods.handler(Pods {
        queue: queue.clone(),
        teller: teller.clone(),
        expectations: Arc::clone(&expectations),
    })
    .register()?;
    let controller = Controller {
        replica_sets: process.cache(&replica_sets),
        pods: process.cache(&pods),
        owned,
        expectations,
        queue: queue.clone(),
        teller,
        events: process.events("replicaset-controller", None),
        clock: process.clock(),
        content: Mutex::default(),
        write_replica_sets: process.writes(),
        write_pods: process.writes(),
    };
    plane.staff(who, queue, controller, WORKERS);
    Ok(())
}

// === observing ===

impl EventHandler<ReplicaSet> for ReplicaSets {
    async fn handle(&mut self, event: Event<ReplicaSet>) {
        if let Some(name) = event.object_name() {
            self.queue.add(name.clone());
        }
        match event {
            Event::Added { object, .. } => {
                let wanted = object.live().map_or(0, wanted);
                let text = format!("sees a ReplicaSet of {}", pods(wanted));
                self.teller.tell(Kind::ReplicaSetSeen, &object, text).await;
            }
            Event::Updated { old, new, .. } if counts(&old) != counts(&new) => {
                let (_, has, ready, _) = counts(&new);
                let text = format!("wrote its status: {}, {ready} ready", pods(has));
                self.teller.tell(Kind::ReplicaSetStatus, &new, text).await;
            }
            _ => {}
        }
    }
}

impl EventHandler<Pod> for Pods {
    async fn handle(&mut self, event: Event<Pod>) {
        let (Event::Added { object, .. } | Event::Updated { new: object, .. }) = &event else {
            if let Event::Deleted(deleted) = &event
                && let Some(object) = deleted.object()
            {
                self.deleted(object).await;
            }
            return;
        };
        let Some(pod) = object.live() else { return };
        let Some(owner) = controller_name(pod, "ReplicaSet") else {
            return;
        };
        if is_leaving(pod) {
            // A pod whose grace period has started counts as deleted.
            self.expectations.deleted(&owner, object.uid());
        }
        match &event {
            Event::Added { .. } => {
                self.expectations.created(&owner);
                let text = "made a pod";
                self.teller.tell(Kind::PodCreated, object, text).await;
            }
            Event::Updated { old, .. } if has_ended(pod) && !old.live().is_some_and(has_ended) => {
                let text = "sees it ended, so one is missing";
                self.teller.tell(Kind::FailureSeen, object, text).await;
            }
            _ => {}
        }
        self.queue.add(owner);
    }
}

impl Pods {
    async fn deleted(&self, object: &Object<Pod>) {
        let owner = object
            .live()
            .and_then(|pod| controller_name(pod, "ReplicaSet"));
        let Some(owner) = owner else { return };
        self.expectations.deleted(&owner, object.uid());
        let text = "deleted it";
        self.teller.tell(Kind::PodDeleted, object, text).await;
        self.queue.add(owner);
    }
}

fn counts(set: &Object<ReplicaSet>) -> (Option<i64>, i32, i32, i32) {
    let status = set.live().and_then(|set| set.status.as_ref());
    status.map(counts_of).unwrap_or_default()
}

fn counts_of(status: &ReplicaSetStatus) -> (Option<i64>, i32, i32, i32) {
    (
        status.observed_generation,
        status.replicas,
        status.ready_replicas.unwrap_or(0),
        status.available_replicas.unwrap_or(0),
    )
}

fn wanted(set: &ReplicaSet) -> i32 {
    let spec = set.spec.as_ref();
    spec.and_then(|spec| spec.replicas).unwrap_or(1)
}

// === acting ===

impl Reconciler for Controller {
    async fn reconcile(&self, name: &ObjectName) -> Result<(), anyhow::Error> {
        let Some(handle) = self.replica_sets.find(name) else {
            self.expectations.forget(name);
            return Ok(());
        };
        let set = handle.get()?;
        if is_leaving(&*set) {
            return Ok(());
        }
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        // Checked before the cache is read. The cache then contains the events that met the expectations.
        let met = self.expectations.met(name);
        let handles = self.pods.by_index(&self.owned, uid);
        let newest = newest_ready(&handles);
        let mut pods = Vec::new();
        for pod in &handles {
            pods.push(pod.get()?);
        }
        let (leaving, pods): (Vec<_>, Vec<_>) =
            pods.into_iter().partition(|pod| is_leaving(&**pod));
        let (mut ended, active): (Vec<_>, Vec<_>) =
            pods.into_iter().partition(|pod| has_ended(pod));
        let mut status = self.count(&set, &active)?;
        let terminating = leaving.iter().filter(|pod| !has_ended(pod)).count();
        status.terminating_replicas = Some(i32::try_from(terminating)?);
        let has = status.replicas;
        let mut changed = Ok(());
        if !met {
            self.queue.add_after(name.clone(), EXPECTATION_TIMEOUT);
        } else if has == wanted(&set) && ended.is_empty() {
            let ready = status.ready_replicas.unwrap_or(0);
            self.tell_content(name, ready, newest).await;
        } else {
            let missing = usize::try_from(wanted(&set) - has).unwrap_or(0);
            let spare = usize::try_from(has - wanted(&set)).unwrap_or(0);
            ended.extend(least_useful(active, spare));
            ended.truncate(BURST_MAX);
            changed = self
                .change(name, &set, missing.min(BURST_MAX), &ended)
                .await;
        }
        if met {
            status.conditions = Some(conditions(&set, changed.as_ref().err(), (has, self.clock)));
        }
        let written = self.write_status(&set, &status).await;
        changed?;
        written
    }
}

impl Controller {
    /// Counts the pods that are neither ended nor being deleted.
    ///
    /// If a ready pod becomes available only later, queues the ReplicaSet for that time.
    fn count(
        &self,
        set: &ReplicaSet,
        active: &[Arc<Pod>],
    ) -> Result<ReplicaSetStatus, anyhow::Error> {
        let spec = set.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        let min_ready = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let labels =
            spec.and_then(|spec| spec.template.as_ref()?.metadata.as_ref()?.labels.clone());
        let labels = labels.unwrap_or_default();
        let (mut labeled, mut ready, mut available) = (0, 0, 0);
        let mut next = None;
        for pod in active {
            let of_pod = pod.labels();
            labeled += i32::from(
                labels
                    .iter()
                    .all(|(key, value)| of_pod.get(key) == Some(value)),
            );
            if !is_ready(pod) {
                continue;
            }
            ready += 1;
            match self.left_until_available(pod, min_ready) {
                Duration::ZERO => available += 1,
                left => next = Some(next.map_or(left, |next: Duration| next.min(left))),
            }
        }
        if let (Some(next), Some(name)) = (next, set.metadata.name.as_deref()) {
            let name = ObjectName::new(set.metadata.namespace.as_deref(), name);
            self.queue.add_after(name, next);
        }
        Ok(ReplicaSetStatus {
            observed_generation: set.metadata.generation,
            replicas: i32::try_from(active.len())?,
            fully_labeled_replicas: Some(labeled),
            ready_replicas: Some(ready),
            available_replicas: Some(available),
            ..set.status.clone().unwrap_or_default()
        })
    }

    /// Returns for how long a ready pod must stay ready until it counts as available.
    fn left_until_available(&self, pod: &Pod, min_ready: Duration) -> Duration {
        match ready_since(pod) {
            _ if min_ready.is_zero() => Duration::ZERO,
            Some(since) => self.clock.left(since, min_ready),
            None => min_ready,
        }
    }

    /// Deletes the pods in `surplus`, and creates `missing` new pods, until the first error.
    async fn change(
        &self,
        name: &ObjectName,
        set: &ReplicaSet,
        missing: usize,
        surplus: &[Arc<Pod>],
    ) -> Result<(), anyhow::Error> {
        let uid = |pod: &Arc<Pod>| pod.metadata.uid.clone().unwrap_or_default();
        let deletions: BTreeSet<_> = surplus.iter().map(uid).collect();
        self.expectations.expect(name, missing, deletions);
        let mut outcome = Ok(());
        for pod in surplus {
            let deleted = match outcome {
                Ok(()) => self.delete(pod).await,
                Err(_) => Ok(false),
            };
            let pod_name = pod.name_any();
            match deleted {
                Ok(true) => {
                    let text = format!("Deleted pod: {pod_name}");
                    self.events.normal(set, "SuccessfulDelete", text);
                }
                Ok(false) => self.expectations.deleted(name, &uid(pod)),
                Err(error) => {
                    self.expectations.deleted(name, &uid(pod));
                    let text = format!("Error deleting: {}", message_of(&error));
                    self.events.warning(set, "FailedDelete", text);
                    outcome = Err(error);
                }
            }
        }
        let mut created = 0;
        while created < missing && outcome.is_ok() {
            outcome = self.create(set).await;
            created += usize::from(outcome.is_ok());
        }
        for _ in created..missing {
            self.expectations.created(name);
        }
        // Nothing can be created in a namespace that is being deleted.
        outcome.or_else(|error| {
            if is_in_ending_namespace(&error) {
                Ok(())
            } else {
                Err(error)
            }
        })
    }

    async fn create(&self, set: &ReplicaSet) -> Result<(), anyhow::Error> {
        let api = self.write_pods.in_namespace_of(set);
        match api.create(&PostParams::default(), &pod_of(set)).await {
            Ok(pod) => {
                let text = format!("Created pod: {}", pod.name_any());
                self.events.normal(set, "SuccessfulCreate", text);
                Ok(())
            }
            Err(error) => {
                let error = error.into();
                if !is_in_ending_namespace(&error) {
                    let text = format!("Error creating: {}", message_of(&error));
                    self.events.warning(set, "FailedCreate", text);
                }
                Err(error)
            }
        }
    }

    /// Deletes a pod. Returns `false` if the pod did not exist any more.
    async fn delete(&self, pod: &Pod) -> Result<bool, anyhow::Error> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let this_one = Preconditions {
            uid: pod.metadata.uid.clone(),
            ..Preconditions::default()
        };
        let params = DeleteParams::default().preconditions(this_one);
        match self
            .write_pods
            .in_namespace_of(pod)
            .delete(name, &params)
            .await
        {
            Ok(_) => Ok(true),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reports a step of [`Kind::Content`] if more pods of `set` are ready than at the previous call.
    ///
    /// The first call for `set` also reports a step. The caller must check first that the ReplicaSet `set`
    /// has the desired number of pods. `newest` is the ready pod with the highest resource version.
    async fn tell_content(&self, set: &ObjectName, ready: i32, newest: Option<&Object<Pod>>) {
        let told = self.content.lock().insert(set.clone(), ready);
        if let Some(newest) = newest.filter(|_| told.is_none_or(|told| told < ready)) {
            let text = format!("sees {} ready, has nothing to do", pods(ready));
            self.teller.tell(Kind::Content, newest, text).await;
        }
    }

    async fn write_status(
        &self,
        set: &ReplicaSet,
        status: &ReplicaSetStatus,
    ) -> Result<(), anyhow::Error> {
        let patch = json!({"metadata": {"uid": set.metadata.uid}, "status": {
            "observedGeneration": status.observed_generation,
            "replicas": status.replicas,
            "fullyLabeledReplicas": status.fully_labeled_replicas,
            "readyReplicas": status.ready_replicas,
            "availableReplicas": status.available_replicas,
            "terminatingReplicas": status.terminating_replicas,
            "conditions": status.conditions,
        }});
        if set
            .status
            .as_ref()
            .is_some_and(|old| normalized(old) == normalized(status))
        {
            return Ok(());
        }
        let name = set.metadata.name.as_deref().unwrap_or_default();
        self.write_replica_sets
            .in_namespace_of(set)
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
