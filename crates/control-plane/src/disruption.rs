//! The disruption controller: writes into the status of each `PodDisruptionBudget` how many pods may be evicted.
//!
//! It works like that of kube-controller-manager. The server checks an eviction by this status, so without the
//! controller a budget permits none.
//!
//! Differences: the scale of a pod's controller is known for ReplicaSets and Deployments only, and the condition
//! `DisruptionTarget` of a pod whose eviction did not end stays.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus},
    },
    apimachinery::pkg::{
        apis::meta::v1::{Condition, Time},
        util::intstr::IntOrString,
    },
};
use kube_client::api::PostParams;
use kube_core::ResourceExt;
use kube_informer::{
    Event, EventHandler, Object, ObjectName, Selector,
    workqueue::{RateLimitingQueue, rate_limiter},
};

use crate::{
    cache::Cache,
    clock::Clock,
    control_plane::{ControlPlane, Process, Reconciler, Writes},
    events::Events,
    node_agent::is_ready,
    object::{controller_name, controller_uid, is_leaving},
    percent::{Round, pods_of},
    step::Loop,
};

/// Number of budgets that are reconciled concurrently.
const WORKERS: usize = 1;

/// Time after which an evicted pod that still exists counts as healthy again; `DeletionTimeout` in Kubernetes.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(120);

const CONDITION: &str = "DisruptionAllowed";

struct Controller {
    budgets: Cache<PodDisruptionBudget>,
    pods: Cache<Pod>,
    replica_sets: Cache<ReplicaSet>,
    deployments: Cache<Deployment>,
    queue: RateLimitingQueue<ObjectName>,
    events: Events,
    clock: Clock,
    write_budgets: Writes<PodDisruptionBudget>,
}

struct Budgets {
    queue: RateLimitingQueue<ObjectName>,
}

/// Event handler that queues the budgets whose selectors match a pod, or matched it before.
struct Pods {
    queue: RateLimitingQueue<ObjectName>,
    budgets: Cache<PodDisruptionBudget>,
}

/// How many pods a budget expects, and how many must stay healthy.
struct Demand {
    expected: i32,
    desired: i32,
}

/// Adds the disruption controller to `process`.
///
/// # Errors
/// Returns an error if `process` has been shut down.
pub(crate) fn open(plane: &mut ControlPlane, process: &mut Process) -> Result<(), anyhow::Error> {
    let budgets = process.informer::<PodDisruptionBudget>();
    let pods = process.informer::<Pod>();
    let replica_sets = process.informer::<ReplicaSet>();
    let deployments = process.informer::<Deployment>();
    let queue = RateLimitingQueue::new(rate_limiter::controller_default());
    budgets
        .handler(Budgets {
            queue: queue.clone(),
        })
        .register()?;
    pods.handler(Pods {
        queue: queue.clone(),
        budgets: process.cache(&budgets),
    })
    .register()?;
    let controller = Controller {
        budgets: process.cache(&budgets),
        pods: process.cache(&pods),
        replica_sets: process.cache(&replica_sets),
        deployments: process.cache(&deployments),
        queue: queue.clone(),
        events: process.events("controllermanager", None),
        clock: process.clock(),
        write_budgets: process.writes(),
    };
    plane.staff(Loop::Disruption.as_str(), queue, controller, WORKERS);
    Ok(())
}

// === observing ===

impl EventHandler<PodDisruptionBudget> for Budgets {
    async fn handle(&mut self, event: Event<PodDisruptionBudget>) {
        if let Some(name) = event.object_name() {
            self.queue.add(name.clone());
        }
    }
}

impl EventHandler<Pod> for Pods {
    async fn handle(&mut self, event: Event<Pod>) {
        let (old, new) = match &event {
            Event::Added { object, .. } => (None, Some(object)),
            Event::Updated { old, new, .. } => (Some(old), Some(new)),
            Event::Deleted(deleted) => (deleted.object(), None),
            Event::Synced => return,
        };
        let pods: Vec<&Pod> = [old, new]
            .into_iter()
            .flatten()
            .filter_map(Object::live)
            .collect();
        let Some(name) = event.object_name() else {
            return;
        };
        for budget in self.budgets.beside(name) {
            let Some(selector) = budget.live().map(selector_of) else {
                continue;
            };
            if pods.iter().any(|pod| selector.matches_labels(pod.labels())) {
                self.queue.add(budget.object_name().clone());
            }
        }
    }
}

/// Returns the selector of the pods that a budget protects. A budget without one protects none.
fn selector_of(budget: &PodDisruptionBudget) -> Selector {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
    let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
    selector.unwrap_or_else(Selector::nothing)
}

// === acting ===

impl Reconciler for Controller {
    async fn reconcile(&self, name: &ObjectName) -> Result<(), anyhow::Error> {
        let Some(budget) = self.budgets.find(name) else {
            return Ok(());
        };
        let budget = budget.get()?;
        if is_leaving(&*budget) {
            return Ok(());
        }
        let mut pods = Vec::new();
        let selector = selector_of(&budget);
        for pod in self.pods.beside(name) {
            let pod = pod.get()?;
            if selector.matches_labels(pod.labels()) {
                pods.push(pod);
            }
        }
        let status = match self.demand(&budget, &pods) {
            Ok(demand) => self.status(&budget, &pods, &demand),
            Err(why) => {
                let text = format!("Failed to calculate the number of expected pods: {why}");
                self.events
                    .warning(&*budget, "CalculateExpectedPodCountFailed", text);
                self.failed(&budget, why)
            }
        };
        let evicted = status.disrupted_pods.iter().flatten();
        let rechecks = evicted.map(|(_, since)| self.clock.left(since, EVICTION_TIMEOUT));
        if let Some(later) = rechecks.min() {
            // The times have no fractions of a second.
            self.queue
                .add_after(name.clone(), later + Duration::from_secs(1));
        }
        self.write(&budget, status).await
    }
}

impl Controller {
    /// # Errors
    /// Returns a text if the scale of a pod's controller is needed and not known.
    fn demand(&self, budget: &PodDisruptionBudget, pods: &[Arc<Pod>]) -> Result<Demand, String> {
        let Some(spec) = &budget.spec else {
            return Ok(Demand {
                expected: 0,
                desired: 0,
            });
        };
        if let Some(max) = &spec.max_unavailable {
            let expected = self.scale(pods)?;
            let unavailable = pods_of(Some(max), expected, Round::Up);
            let desired = (expected - unavailable).max(0);
            return Ok(Demand { expected, desired });
        }
        let expected = match &spec.min_available {
            Some(IntOrString::String(_)) => self.scale(pods)?,
            _ => i32::try_from(pods.len()).unwrap_or(i32::MAX),
        };
        let desired = pods_of(spec.min_available.as_ref(), expected, Round::Up);
        Ok(Demand { expected, desired })
    }

    /// Returns the sum of `spec.replicas` of the controllers of `pods`. Pods without a controller do not count.
    fn scale(&self, pods: &[Arc<Pod>]) -> Result<i32, String> {
        let mut scales = BTreeMap::new();
        for pod in pods {
            let owners = pod.owner_references().iter();
            let Some(owner) = owners.clone().find(|owner| owner.controller == Some(true)) else {
                continue;
            };
            let scale = controller_name(&**pod, "ReplicaSet")
                .and_then(|set| self.scale_of(&set, &owner.uid));
            let name = pod.name_any();
            let (uid, scale) =
                scale.ok_or_else(|| format!("found no controllers for pod {name:?}"))?;
            scales.insert(uid, scale);
        }
        Ok(scales.into_values().sum())
    }

    /// Returns uid and scale of the ReplicaSet, or of the Deployment that controls it.
    fn scale_of(&self, set: &ObjectName, uid: &str) -> Option<(String, i32)> {
        let set = self.replica_sets.find(set)?;
        let set = set
            .live()
            .filter(|set| set.metadata.uid.as_deref() == Some(uid))?;
        let Some(deployment) = controller_name(set, "Deployment") else {
            let replicas = set.spec.as_ref()?.replicas.unwrap_or(1);
            return Some((uid.to_owned(), replicas));
        };
        let deployment = self.deployments.find(&deployment)?;
        let deployment = deployment.live()?;
        let owner = controller_uid(set, "Deployment")
            .filter(|uid| deployment.metadata.uid.as_ref() == Some(uid))?;
        Some((owner, deployment.spec.as_ref()?.replicas.unwrap_or(1)))
    }

    fn status(
        &self,
        budget: &PodDisruptionBudget,
        pods: &[Arc<Pod>],
        demand: &Demand,
    ) -> PodDisruptionBudgetStatus {
        let before = budget.status.clone().unwrap_or_default();
        let mut disrupted = before.disrupted_pods.unwrap_or_default();
        let staying = |name: &str| {
            pods.iter()
                .any(|pod| pod.name_any() == name && !is_leaving(&**pod))
        };
        disrupted.retain(|name, since: &mut Time| {
            staying(name) && !self.clock.left(since, EVICTION_TIMEOUT).is_zero()
        });
        let is_healthy = |pod: &&Arc<Pod>| {
            !is_leaving(&***pod) && is_ready(pod) && !disrupted.contains_key(&pod.name_any())
        };
        let healthy = i32::try_from(pods.iter().filter(is_healthy).count()).unwrap_or(i32::MAX);
        let allowed = match demand.expected {
            ..=0 => 0,
            _ => (healthy - demand.desired).max(0),
        };
        let verdict = match allowed {
            0 => ("False", "InsufficientPods", String::new()),
            _ => ("True", "SufficientPods", String::new()),
        };
        PodDisruptionBudgetStatus {
            current_healthy: Some(healthy),
            desired_healthy: Some(demand.desired),
            expected_pods: Some(demand.expected),
            disruptions_allowed: Some(allowed),
            disrupted_pods: Some(disrupted).filter(|disrupted| !disrupted.is_empty()),
            observed_generation: budget.metadata.generation,
            conditions: Some(vec![self.condition(budget, verdict)]),
        }
    }

    /// Returns the status of a budget whose demand is not known, and that permits no eviction.
    fn failed(&self, budget: &PodDisruptionBudget, why: String) -> PodDisruptionBudgetStatus {
        PodDisruptionBudgetStatus {
            disruptions_allowed: Some(0),
            observed_generation: budget.metadata.generation,
            conditions: Some(vec![self.condition(budget, ("False", "SyncFailed", why))]),
            ..budget.status.clone().unwrap_or_default()
        }
    }

    fn condition(
        &self,
        budget: &PodDisruptionBudget,
        (status, reason, message): (&str, &str, String),
    ) -> Condition {
        let before = budget
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        let same = before
            .into_iter()
            .find(|it| it.type_ == CONDITION && it.status == status);
        Condition {
            type_: CONDITION.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: budget.metadata.generation,
            last_transition_time: same
                .map_or_else(|| self.clock.time(), |it| it.last_transition_time.clone()),
        }
    }

    /// Writes the status if it differs. An eviction that was recorded meanwhile causes a conflict, and a retry.
    async fn write(
        &self,
        budget: &PodDisruptionBudget,
        status: PodDisruptionBudgetStatus,
    ) -> Result<(), anyhow::Error> {
        if budget.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let mut budget = budget.clone();
        budget.status = Some(status);
        let api = self.write_budgets.in_namespace_of(&budget);
        api.replace_status(&budget.name_any(), &PostParams::default(), &budget)
            .await?;
        Ok(())
    }
}
