//! The job controller: creates the pods of each Job until enough have succeeded or too many have failed.
//!
//! It works like that of kube-controller-manager: parallelism, completions (also indexed), back-off and its limit,
//! deadlines, suspension, and the deletion of finished Jobs after `ttlSecondsAfterFinished`.
//!
//! Guarantees:
//! - Each pod counts once, even if it is deleted before the controller sees its end. A finalizer holds the pod
//!   until the Job's status lists its uid, and the uid is listed until the finalizer is gone.
//! - A stale cache does not cause too many pods (see the module `expectations`).
//!
//! Differences: `podFailurePolicy`, `successPolicy` and `backoffLimitPerIndex` have no effect, and an event on the
//! Job says so; pods without an owner are not adopted.

mod indexes;
mod pod;
mod step;
mod tally;
mod verdict;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube_client::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube_core::{Resource, ResourceExt};
use kube_informer::{
    Event, EventHandler, ObjectName,
    indexer::IndexToken,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use serde_json::json;

use self::{step::Step, tally::has_finalizer};
use crate::{
    cache::Cache,
    clock::Clock,
    control_plane::{ControlPlane, Process, Reconciler, Writes},
    events::Events,
    expectations::{EXPECTATION_TIMEOUT, Expectations},
    object::{controller_name, controller_uid, is_gone, is_leaving},
    step::Loop,
};

/// Number of Jobs that are reconciled concurrently.
const WORKERS: usize = 2;

/// Maximum number of pods that one reconciliation creates or deletes; `MaxPodCreateDeletePerSync` in Kubernetes.
const BURST_MAX: usize = 500;

/// Finalizer of pods that the status does not count yet.
const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// Annotation and label with the index of a pod, and the variable of its containers.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

struct Controller {
    jobs: Cache<Job>,
    pods: Cache<Pod>,
    /// Index of the pods by the name of the Job that controls them.
    owned: IndexToken,
    expectations: Arc<Expectations>,
    queue: RateLimitingQueue<ObjectName>,
    events: Events,
    clock: Clock,
    write_jobs: Writes<Job>,
    write_pods: Writes<Pod>,
}

/// Event handler that queues Jobs.
struct Jobs {
    queue: RateLimitingQueue<ObjectName>,
}

/// Event handler that queues the Job of each pod, and confirms the controller's creations and deletions.
struct Pods {
    queue: RateLimitingQueue<ObjectName>,
    expectations: Arc<Expectations>,
}

/// Adds the job controller to `process`.
///
/// # Errors
/// Returns an error if `process` has been shut down, or already has a job controller.
pub(crate) async fn open(
    plane: &mut ControlPlane,
    process: &mut Process,
) -> Result<(), anyhow::Error> {
    let jobs = process.informer::<Job>();
    let pods = process.informer::<Pod>();
    let queue = RateLimitingQueue::new(rate_limiter::controller_default());
    let expectations = Arc::new(Expectations::default());
    let owned = pods
        .add_index("job", |pod| {
            controller_name(pod, "Job").map(|name| name.to_string())
        })
        .await?;
    jobs.handler(Jobs {
        queue: queue.clone(),
    })
    .register()?;
    pods.handler(Pods {
        queue: queue.clone(),
        expectations: Arc::clone(&expectations),
    })
    .register()?;
    let controller = Controller {
        jobs: process.cache(&jobs),
        pods: process.cache(&pods),
        owned,
        expectations,
        queue: queue.clone(),
        events: process.events("job-controller", None),
        clock: process.clock(),
        write_jobs: process.writes(),
        write_pods: process.writes(),
    };
    plane.staff(Loop::Job.as_str(), queue, controller, WORKERS);
    Ok(())
}

// === observing ===

impl EventHandler<Job> for Jobs {
    async fn handle(&mut self, event: Event<Job>) {
        if let Some(name) = event.object_name() {
            self.queue.add(name.clone());
        }
    }
}

impl EventHandler<Pod> for Pods {
    async fn handle(&mut self, event: Event<Pod>) {
        let object = match &event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => Some(object),
            Event::Deleted(deleted) => deleted.object(),
            Event::Synced => None,
        };
        let Some((object, pod)) = object.and_then(|object| Some((object, object.live()?))) else {
            return;
        };
        let Some(owner) = controller_name(pod, "Job") else {
            return;
        };
        if matches!(event, Event::Added { .. }) {
            self.expectations.created(&owner);
        }
        if matches!(event, Event::Deleted(_)) || is_leaving(pod) {
            self.expectations.deleted(&owner, object.uid());
        }
        self.queue.add(owner);
    }
}

// === acting ===

impl Reconciler for Controller {
    async fn reconcile(&self, name: &ObjectName) -> Result<(), anyhow::Error> {
        // Checked before the cache is read. The cache then contains the events that met the expectations.
        let met = self.expectations.met(name);
        let job = match self.jobs.find(name) {
            Some(job) => Some(job.get()?),
            None => None,
        };
        if job.as_deref().is_some_and(is_managed_elsewhere) {
            return Ok(());
        }
        let uid = job.as_ref().and_then(|job| job.metadata.uid.clone());
        let mut pods = Vec::new();
        for pod in self.pods.by_index(&self.owned, &name.to_string()) {
            let pod = pod.get()?;
            if controller_uid(&*pod, "Job") == uid {
                pods.push(pod);
            } else {
                // The Job of this pod is gone, and nothing will count it.
                self.release(&pod).await?;
            }
        }
        let Some(job) = job else {
            self.expectations.forget(name);
            return Ok(());
        };
        if verdict::is_finished(&job) {
            for pod in &pods {
                self.release(pod).await?;
            }
            return self.delete_expired(name, &job).await;
        }
        if !met {
            self.queue.add_after(name.clone(), EXPECTATION_TIMEOUT);
        }
        Step {
            controller: self,
            name,
            job: &job,
            met,
        }
        .advance(&pods)
        .await
    }
}

/// Returns whether another controller manages the Job (`spec.managedBy`).
fn is_managed_elsewhere(job: &Job) -> bool {
    let manager = job
        .spec
        .as_ref()
        .and_then(|spec| spec.managed_by.as_deref());
    manager.is_some_and(|manager| manager != "kubernetes.io/job-controller")
}

impl Controller {
    /// Removes the controller's finalizer from a pod.
    async fn release(&self, pod: &Pod) -> Result<(), anyhow::Error> {
        if !has_finalizer(pod) {
            return Ok(());
        }
        let others: Vec<&String> = pod
            .finalizers()
            .iter()
            .filter(|it| *it != FINALIZER)
            .collect();
        let version = pod.metadata.resource_version.as_deref();
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": others}});
        let api = self.write_pods.in_namespace_of(pod);
        let patch = Patch::Merge(patch);
        match api
            .patch(&pod.name_any(), &PatchParams::default(), &patch)
            .await
        {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Deletes a finished Job whose time is over, or queues it for that time.
    async fn delete_expired(&self, name: &ObjectName, job: &Job) -> Result<(), anyhow::Error> {
        match verdict::expires(job, self.clock) {
            Some(Duration::ZERO) if !is_leaving(job) => {
                let params = DeleteParams::foreground().preconditions(this_one(job));
                let api = self.write_jobs.in_namespace_of(job);
                match api.delete(name.name(), &params).await {
                    Err(error) if !is_gone(&error) => Err(error.into()),
                    _ => Ok(()),
                }
            }
            Some(left) if !left.is_zero() => {
                self.queue.add_after(name.clone(), left);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn this_one<K: Resource>(object: &K) -> Preconditions {
    Preconditions {
        uid: object.meta().uid.clone(),
        ..Preconditions::default()
    }
}

#[cfg(test)]
mod tests;
