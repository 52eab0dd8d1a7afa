//! The replica set controller: creates and deletes pods until each ReplicaSet has the desired number.
//!
//! Guarantees:
//! - A stale cache does not cause too many pods. Before the controller counts the pods again, it waits for
//!   the events of all its creations and deletions, for at most five minutes (see the module `expectations`).
//! - Pods that have ended are deleted and replaced. In Kubernetes, the controller only replaces them, and the
//!   garbage collector deletes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetStatus},
    core::v1::Pod,
};
use kube_client::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube_core::Resource;
use kube_informer::{
    Event, EventHandler, Object, ObjectName,
    indexer::IndexToken,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use parking_lot::Mutex;
use serde_json::json;

use super::{
    ControlPlane, Process, Reconciler, Writes,
    cache::Cache,
    controller_name, controller_uid,
    deployment::pods,
    expectations::{EXPECTATION_TIMEOUT, Expectations},
    is_gone, is_leaving,
    node_agent::{has_ended, is_ready},
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
        let (mut ended, active): (Vec<_>, Vec<_>) = pods
            .into_iter()
            .filter(|pod| !is_leaving(&**pod))
            .partition(|pod| has_ended(pod));
        let ready = active.iter().filter(|pod| is_ready(pod)).count();
        let has = i32::try_from(active.len())?;
        let ready = i32::try_from(ready)?;
        if !met {
            self.queue.add_after(name.clone(), EXPECTATION_TIMEOUT);
        } else if has == wanted(&set) && ended.is_empty() {
            self.tell_content(name, ready, newest).await;
        } else {
            let missing = usize::try_from(wanted(&set) - has).unwrap_or(0);
            let spare = usize::try_from(has - wanted(&set)).unwrap_or(0);
            ended.extend(least_useful(active, spare));
            ended.truncate(BURST_MAX);
            self.change(name, &set, missing.min(BURST_MAX), &ended)
                .await?;
        }
        self.write_status(&set, has, ready).await
    }
}

impl Controller {
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
            match deleted {
                Ok(true) => {}
                Ok(false) => self.expectations.deleted(name, &uid(pod)),
                Err(error) => {
                    self.expectations.deleted(name, &uid(pod));
                    outcome = Err(error);
                }
            }
        }
        for _ in 0..missing {
            if outcome.is_ok() {
                let pod = pod_of(set);
                let created = self
                    .write_pods
                    .in_namespace_of(set)
                    .create(&PostParams::default(), &pod)
                    .await;
                outcome = created.map(drop);
            }
            if outcome.is_err() {
                self.expectations.created(name);
            }
        }
        Ok(outcome?)
    }

    /// Deletes a pod. Returns `false` if the pod did not exist any more.
    async fn delete(&self, pod: &Pod) -> Result<bool, kube_client::Error> {
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
            Err(error) => Err(error),
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
        has: i32,
        ready: i32,
    ) -> Result<(), anyhow::Error> {
        let generation = set.metadata.generation;
        let status = set.status.as_ref();
        if status.is_some_and(|status| counts_of(status) == (generation, has, ready, ready)) {
            return Ok(());
        }
        let patch = json!({"metadata": {"uid": set.metadata.uid}, "status": {
            "observedGeneration": generation,
            "replicas": has,
            "fullyLabeledReplicas": has,
            "readyReplicas": ready,
            "availableReplicas": ready,
        }});
        let name = set.metadata.name.as_deref().unwrap_or_default();
        self.write_replica_sets
            .in_namespace_of(set)
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }
}

/// Returns the ready pod with the highest resource version.
fn newest_ready(pods: &[Object<Pod>]) -> Option<&Object<Pod>> {
    let ready = pods.iter().filter(|pod| pod.live().is_some_and(is_ready));
    ready.reduce(|newest, pod| {
        if pod.revision() > newest.revision() {
            pod
        } else {
            newest
        }
    })
}

/// Selects `number` pods to delete: first pods without a node, then pods that are not ready, then ready pods.
fn least_useful(mut pods: Vec<Arc<Pod>>, number: usize) -> Vec<Arc<Pod>> {
    let has_node = |pod: &Pod| {
        let spec = pod.spec.as_ref();
        spec.is_some_and(|spec| spec.node_name.is_some())
    };
    pods.sort_by_key(|pod| (has_node(pod), is_ready(pod)));
    pods.truncate(number);
    pods
}

/// Returns the pod to create for the ReplicaSet, built from the ReplicaSet's template.
fn pod_of(set: &ReplicaSet) -> Pod {
    let template = set.spec.as_ref().and_then(|spec| spec.template.clone());
    let template = template.unwrap_or_default();
    let meta = template.metadata.unwrap_or_default();
    let name = set.metadata.name.as_deref().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: set.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: meta.annotations,
            owner_references: set.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        ..Pod::default()
    }
}

#[cfg(test)]
mod tests;
