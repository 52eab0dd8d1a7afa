//! The deployment controller: creates a ReplicaSet per Deployment, and writes the Deployment's status.
//!
//! Guarantees:
//! - Each pod template of a Deployment has at most one ReplicaSet. The name of the ReplicaSet consists of the
//!   Deployment's name and a hash of the template. If a stale cache causes a second creation, the server
//!   rejects it.
//! - ReplicaSets of earlier templates are scaled to zero immediately. There is no rolling update.

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube_client::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube_core::Resource;
use kube_informer::{
    Event, EventHandler, Object, ObjectName,
    indexer::IndexToken,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use serde_json::json;

use super::{
    ControlPlane, Process, Reconciler, Writes,
    cache::Cache,
    controller_name, controller_uid, is_leaving,
    step::{Kind, Loop, Teller},
};

/// Key of the label that distinguishes the ReplicaSets of a Deployment, as in Kubernetes.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Number of Deployments that are reconciled concurrently.
const WORKERS: usize = 2;

/// Characters of a template hash, as in Kubernetes (`SafeEncodeString` in `util/rand`).
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

struct Controller {
    deployments: Cache<Deployment>,
    replica_sets: Cache<ReplicaSet>,
    /// Index of ReplicaSets by the uid of the controlling Deployment.
    owned: IndexToken,
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
    let queue = RateLimitingQueue::new(rate_limiter::controller_default());
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
    let controller = Controller {
        deployments: process.cache(&deployments),
        replica_sets: process.cache(&replica_sets),
        owned,
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

/// Returns `spec.replicas` of the Deployment, or 1 if the field is missing.
fn wanted(deployment: &Deployment) -> i32 {
    let spec = deployment.spec.as_ref();
    spec.and_then(|spec| spec.replicas).unwrap_or(1)
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
        if is_leaving(&*deployment) {
            return Ok(());
        }
        let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
        let replica_set = replica_set_of(&deployment)?;
        let mut current = None;
        for set in self.replica_sets.by_index(&self.owned, uid) {
            let set = set.get()?;
            let is_current = set.metadata.name == replica_set.metadata.name;
            let wanted = if is_current { wanted(&deployment) } else { 0 };
            self.scale(&set, wanted).await?;
            if is_current {
                current = Some(set);
            }
        }
        let Some(current) = current else {
            self.write_replica_sets
                .in_namespace_of(&*deployment)
                .create(&PostParams::default(), &replica_set)
                .await?;
            return Ok(());
        };
        self.write_status(&deployment, &current).await
    }
}

impl Controller {
    async fn scale(&self, set: &ReplicaSet, wanted: i32) -> Result<(), kube_client::Error> {
        let has = set.spec.as_ref().and_then(|spec| spec.replicas);
        if has == Some(wanted) {
            return Ok(());
        }
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let patch = json!({"metadata": {"uid": set.metadata.uid}, "spec": {"replicas": wanted}});
        self.write_replica_sets
            .in_namespace_of(set)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    async fn write_status(
        &self,
        deployment: &Deployment,
        set: &ReplicaSet,
    ) -> Result<(), anyhow::Error> {
        let of = set.status.clone().unwrap_or_default();
        let ready = of.ready_replicas.unwrap_or(0);
        let wanted = (
            deployment.metadata.generation,
            of.replicas,
            ready,
            of.available_replicas.unwrap_or(0),
        );
        let is = |status: &DeploymentStatus| {
            (
                status.observed_generation,
                status.replicas.unwrap_or(0),
                status.ready_replicas.unwrap_or(0),
                status.available_replicas.unwrap_or(0),
            )
        };
        if deployment
            .status
            .as_ref()
            .is_some_and(|status| is(status) == wanted)
        {
            return Ok(());
        }
        let patch = json!({"metadata": {"uid": deployment.metadata.uid}, "status": {
            "observedGeneration": wanted.0,
            "replicas": wanted.1,
            "updatedReplicas": wanted.1,
            "readyReplicas": wanted.2,
            "availableReplicas": wanted.3,
            "unavailableReplicas": (self::wanted(deployment) - wanted.3).max(0),
        }});
        let name = deployment.metadata.name.as_deref().unwrap_or_default();
        self.write_deployments
            .in_namespace_of(deployment)
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }
}

/// Returns the ReplicaSet that the controller creates for the Deployment's current pod template.
fn replica_set_of(deployment: &Deployment) -> Result<ReplicaSet, serde_json::Error> {
    let spec = deployment.spec.clone().unwrap_or_default();
    let hash = template_hash(&spec.template)?;
    let mut template = spec.template;
    let labels = template
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    labels.insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector.match_labels.unwrap_or_default();
    selector.insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    Ok(ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: deployment
                .controller_owner_ref(&())
                .map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(spec.replicas.unwrap_or(1)),
            selector: LabelSelector {
                match_labels: Some(selector),
                ..LabelSelector::default()
            },
            template: Some(template),
            ..ReplicaSetSpec::default()
        }),
        ..ReplicaSet::default()
    })
}

/// Returns the FNV-1a hash of a pod template's JSON, in characters of [`ALPHABET`].
fn template_hash(template: &PodTemplateSpec) -> Result<String, serde_json::Error> {
    let bytes = serde_json::to_vec(template)?;
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    let safe = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    Ok(hash.to_string().bytes().map(safe).collect())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use kube_informer_apiserver::Server;
    use serde_json::Value;
    use tokio::sync::mpsc;

    use super::{
        super::{Scope, step::STEPS_MAX},
        *,
    };

    fn described(image: &str) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default", "uid": "u"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "main", "image": image}]},
                },
            },
        })
    }

    fn deployment(image: &str) -> Deployment {
        serde_json::from_value(described(image)).unwrap()
    }

    #[test]
    fn each_template_has_its_own_replica_set() {
        let name = |image| replica_set_of(&deployment(image)).unwrap().metadata.name;
        assert_eq!(name("a:1"), name("a:1"));
        assert_ne!(name("a:1"), name("a:2"));
    }

    #[test]
    fn the_replica_set_is_owned_and_selects_the_pods_of_its_template() {
        let set = replica_set_of(&deployment("a:1")).unwrap();
        assert_eq!(controller_uid(&set, "Deployment").as_deref(), Some("u"));
        let spec = set.spec.unwrap();
        let labels = spec.template.unwrap().metadata.unwrap().labels.unwrap();
        assert_eq!(spec.selector.match_labels.unwrap(), labels);
        assert_eq!(labels.len(), 2);
        assert_eq!(spec.replicas, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_template_creates_a_replica_set_and_scales_the_first_to_zero() {
        const LONG: Duration = Duration::from_secs(60);
        let server = Server::builder().seed([described("a:1")]).build();
        let (tell, _) = mpsc::channel(STEPS_MAX);
        let scope = Scope {
            namespace: Some("default".to_owned()),
            selector: kube_informer::Selector::everything(),
        };
        let mut plane = ControlPlane::new(scope, tell);
        let mut process = plane.process("controller", server.client());
        open(&mut plane, &mut process).await.unwrap();
        plane.host(process);
        plane.observe(LONG).await.unwrap();
        plane.act();
        let wanted = |server: &Server| -> BTreeMap<String, Value> {
            let sets = server.list("apps/v1", "replicasets");
            let of = |set: &Value| {
                let image = &set["spec"]["template"]["spec"]["containers"][0]["image"];
                (
                    image.as_str().unwrap().to_owned(),
                    set["spec"]["replicas"].clone(),
                )
            };
            sets.iter().map(of).collect()
        };
        tokio::time::sleep(LONG).await;
        assert_eq!(
            wanted(&server),
            BTreeMap::from([("a:1".to_owned(), json!(2))])
        );

        let spec = json!({"spec": described("a:2")["spec"]});
        server
            .patch("apps/v1", "deployments", "default/web", spec)
            .unwrap();
        tokio::time::sleep(LONG).await;
        let both = [("a:1".to_owned(), json!(0)), ("a:2".to_owned(), json!(2))];
        assert_eq!(wanted(&server), BTreeMap::from(both));
        let stored = server.get("apps/v1", "deployments", "default/web").unwrap();
        assert_eq!(
            stored["status"]["observedGeneration"],
            stored["metadata"]["generation"]
        );
        plane.shutdown().await;
    }
}
