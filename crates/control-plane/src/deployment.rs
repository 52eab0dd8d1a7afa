//! The deployment controller: rolls out the pod template of each Deployment with ReplicaSets, and writes the
//! Deployment's status.
//!
//! It works like that of kube-controller-manager: rolling updates and `Recreate`, scaling during a rollout, pauses,
//! revisions, the history limit, the conditions `Available`, `Progressing` and `ReplicaFailure`, and events.
//!
//! Guarantees:
//! - Each pod template of a Deployment has at most one ReplicaSet. The name of the ReplicaSet consists of the
//!   Deployment's name and a hash of the template. If a stale cache causes a second creation, the server
//!   rejects it.
//! - A decision from a stale cache has no effect: each write has the resource version of the object that the
//!   controller has read.
//!
//! Differences: the hash in the name is another one than in Kubernetes; ReplicaSets without an owner are not
//! adopted; the annotation `deprecated.deployment.rollback.to` has no effect (`kubectl rollout undo` does not use it).

mod replica_set;
mod revision;
mod rollout;
mod size;
mod status;

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube_informer::{
    Event, EventHandler, Object, ObjectName,
    indexer::IndexToken,
    workqueue::{RateLimitingQueue, rate_limiter},
};

use self::{rollout::Rollout, size::wanted};
use crate::{
    cache::Cache,
    clock::Clock,
    control_plane::{ControlPlane, Process, Reconciler, Writes},
    events::Events,
    object::{controller_name, controller_uid},
    step::{Kind, Loop, Teller},
};

/// Number of Deployments that are reconciled concurrently.
const WORKERS: usize = 2;

/// A ReplicaSet of the cache, or as the server returned it.
type Set = Arc<ReplicaSet>;

struct Controller {
    deployments: Cache<Deployment>,
    replica_sets: Cache<ReplicaSet>,
    /// Index of ReplicaSets by the uid of the controlling Deployment.
    owned: IndexToken,
    pods: Cache<Pod>,
    /// Index of pods by the uid of the controlling ReplicaSet.
    pods_by_set: IndexToken,
    queue: RateLimitingQueue<ObjectName>,
    events: Events,
    clock: Clock,
    write_deployments: Writes<Deployment>,
    write_replica_sets: Writes<ReplicaSet>,
}

/// Event handler that queues Deployments.
///
/// Reports each new Deployment, and each change of a Deployment's ready state.
struct Deployments {
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
}

/// Event handler that queues the Deployment of each deleted pod whose strategy waits for that.
struct Pods {
    queue: RateLimitingQueue<ObjectName>,
    deployments: Cache<Deployment>,
    replica_sets: Cache<ReplicaSet>,
}

/// Event handler that queues the Deployment of each ReplicaSet, and reports new ReplicaSets.
struct ReplicaSets {
    queue: RateLimitingQueue<ObjectName>,
    teller: Teller,
}

/// Adds the informers, event handlers and workers of the deployment controller to a process.
///
/// # Errors
/// Returns an error if the process has been shut down, or already has a deployment controller.
pub(crate) async fn open(
    plane: &mut ControlPlane,
    process: &mut Process,
) -> Result<(), anyhow::Error> {
    let who = Loop::Deployment.as_str();
    let teller = process.teller(who);
    let deployments = process.informer::<Deployment>();
    let replica_sets = process.informer::<ReplicaSet>();
    let pods = process.informer::<Pod>();
    let queue = RateLimitingQueue::new(rate_limiter::controller_default());
    let pods_by_set = pods
        .add_index("replica-set-of-deployment", |pod| {
            controller_uid(pod, "ReplicaSet")
        })
        .await?;
    let owned = replica_sets
        .add_index("deployment", |set| controller_uid(set, "Deployment"))
        .await?;
    deployments
        .handler(Deployments {
            queue: queue.clone(),
            teller: teller.clone(),
        })
        .register()?;
    replica_sets
        .handler(ReplicaSets {
            queue: queue.clone(),
            teller,
        })
        .register()?;
    pods.handler(Pods {
        queue: queue.clone(),
        deployments: process.cache(&deployments),
        replica_sets: process.cache(&replica_sets),
    })
    .register()?;
    let controller = Controller {
        deployments: process.cache(&deployments),
        replica_sets: process.cache(&replica_sets),
        owned,
        pods: process.cache(&pods),
        pods_by_set,
        queue: queue.clone(),
        events: process.events("deployment-controller", None),
        clock: process.clock(),
        write_deployments: process.writes(),
        write_replica_sets: process.writes(),
    };
    plane.staff(who, queue, controller, WORKERS);
    Ok(())
}

// === observing ===

impl EventHandler<Deployment> for Deployments {
    async fn handle(&mut self, event: Event<Deployment>) {
        if let Some(name) = event.object_name() {
            self.queue.add(name.clone());
        }
        match event {
            Event::Added { object, .. } => {
                let text = format!("sees a Deployment of {}", pods(wanted_of(&object)));
                self.teller.tell(Kind::DeploymentSeen, &object, text).await;
            }
            Event::Updated { old, new, .. } if standing(&old) != standing(&new) => {
                let (ready, wanted) = (standing(&new).1, wanted_of(&new));
                let kind = if is_reached(&new) {
                    Kind::AllReady
                } else {
                    Kind::NotAllReady
                };
                let text = format!("wrote its status: {ready} of {wanted} ready");
                self.teller.tell(kind, &new, text).await;
            }
            _ => {}
        }
    }
}

impl EventHandler<ReplicaSet> for ReplicaSets {
    async fn handle(&mut self, event: Event<ReplicaSet>) {
        let object = match &event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => Some(object),
            Event::Deleted(deleted) => deleted.object(),
            Event::Synced => None,
        };
        let Some(set) = object.and_then(Object::live) else {
            return;
        };
        let Some(owner) = controller_name(set, "Deployment") else {
            return;
        };
        self.queue.add(owner);
        if let Event::Added { object, .. } = &event {
            let text = "made a ReplicaSet of the template";
            self.teller
                .tell(Kind::ReplicaSetCreated, object, text)
                .await;
        }
    }
}

impl EventHandler<Pod> for Pods {
    async fn handle(&mut self, event: Event<Pod>) {
        let Event::Deleted(deleted) = &event else {
            return;
        };
        let pod = deleted.object().and_then(Object::live);
        let set = pod.and_then(|pod| controller_name(pod, "ReplicaSet"));
        let set = set.and_then(|set| self.replica_sets.find(&set));
        let set = set.as_ref().and_then(Object::live);
        let Some(name) = set.and_then(|set| controller_name(set, "Deployment")) else {
            return;
        };
        let deployment = self.deployments.find(&name);
        let deployment = deployment.as_ref().and_then(Object::live);
        if deployment.is_some_and(size::is_recreated) {
            self.queue.add(name);
        }
    }
}

/// Returns whether the Deployment's status is up to date, and its number of ready replicas.
fn standing(deployment: &Object<Deployment>) -> (bool, i32) {
    let Some(deployment) = deployment.live() else {
        return (false, 0);
    };
    let status = deployment.status.clone().unwrap_or_default();
    let current = status.observed_generation == deployment.metadata.generation;
    (current, status.ready_replicas.unwrap_or(0))
}

fn is_reached(deployment: &Object<Deployment>) -> bool {
    let (current, ready) = standing(deployment);
    current && ready == wanted_of(deployment)
}

fn wanted_of(deployment: &Object<Deployment>) -> i32 {
    deployment.live().map_or(0, wanted)
}

/// Returns a number of pods as text, such as `3 pods`.
pub(crate) fn pods(number: i32) -> String {
    match number {
        1 => "1 pod".to_owned(),
        number => format!("{number} pods"),
    }
}

// === acting ===

impl Reconciler for Controller {
    async fn reconcile(&self, name: &ObjectName) -> Result<(), anyhow::Error> {
        let Some(deployment) = self.deployments.find(name) else {
            return Ok(());
        };
        let deployment = deployment.get()?;
        let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
        let mut sets = Vec::new();
        for set in self.replica_sets.by_index(&self.owned, uid) {
            sets.push(set.get()?);
        }
        let rollout = Rollout::new(self, Deployment::clone(&deployment), sets);
        if let Some(later) = rollout.step().await? {
            self.queue.add_after(name.clone(), later);
        }
        Ok(())
    }
}

/// Returns the age of a ReplicaSet as a sort key, the oldest first. Of equal ages, the name decides.
fn age(set: &ReplicaSet) -> (Option<jiff::Timestamp>, String) {
    let created = set.metadata.creation_timestamp.as_ref();
    (
        created.map(|created| created.0),
        set.metadata.name.clone().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
