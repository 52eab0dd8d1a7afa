//! The provisioner: creates a volume for each volume claim, and deletes released volumes.
//!
//! The provisioner handles only claims whose storage class names this provisioner.
//!
//! Guarantees:
//!
//! - The provisioner never creates two volumes for a claim, even if its caches are stale. The name of a
//!   volume is derived from the uid of the claim. The server therefore rejects a second creation, and the
//!   provisioner treats this rejection as success.
//! - If the processing of a claim or volume fails, the provisioner retries the processing with an increasing
//!   delay. After [`RETRIES_MAX`] retries, the provisioner ignores the claim or volume until it is queued
//!   again, for example after an update.
//! - If the caller passes an informer, the provisioner neither starts nor stops this informer. When the
//!   provisioner stops, it removes its handler from the informer.

use std::{future::Future, sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        core::v1::{HostPathVolumeSource, PersistentVolume, PersistentVolumeClaim},
        storage::v1::StorageClass,
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube_client::{
    Api, Client, Error,
    api::{DeleteParams, PostParams, Preconditions},
};
use kube_core::Resource;
use kube_informer::{
    Lister, Object, ObjectName, SharedInformer, SharedInformerFactory,
    factory::wait_for_cache_sync,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{storage::Storage, transcript::Transcript};

/// Key of an annotation of provisioned volumes. The value is the name of the volume's provisioner.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Maximum number of retries for a claim or a volume before it is removed from the queue.
///
/// The value is the default of kubernetes-sigs' `sig-storage-lib-external-provisioner`.
const RETRIES_MAX: u32 = 15;

/// Builder with the settings of a [`ProvisionController`].
pub(crate) struct Builder {
    client: Client,
    name: String,
    storage: Storage,
    output: Transcript,
    workers: usize,
    claims: Option<SharedInformer<PersistentVolumeClaim>>,
}

/// A provisioner that has not started yet, with its informers and queues.
pub(crate) struct ProvisionController {
    /// Factory of the provisioner's own informers. The provisioner starts and stops the factory.
    ///
    /// If the caller has passed an informer of claims, that informer does not belong to this factory.
    factory: SharedInformerFactory,
    claims: SharedInformer<PersistentVolumeClaim>,
    volumes: SharedInformer<PersistentVolume>,
    classes: SharedInformer<StorageClass>,
    claim_queue: RateLimitingQueue<ObjectName>,
    volume_queue: RateLimitingQueue<ObjectName>,
    workers: usize,
    provisioner: Arc<Provisioner>,
}

/// The state that all workers of a provisioner share: its name, its caches and its clients.
struct Provisioner {
    name: String,
    claims: Lister<PersistentVolumeClaim>,
    volumes: Lister<PersistentVolume>,
    classes: Lister<StorageClass>,
    api: Api<PersistentVolume>,
    storage: Storage,
    output: Transcript,
}

/// The kind of object that a worker processes.
#[derive(Clone, Copy)]
enum Work {
    Claims,
    Volumes,
}

// === impl Builder ===

impl Builder {
    /// Creates a builder for the provisioner named `name`.
    ///
    /// The provisioner handles claims whose storage class has `name` in the field `provisioner`.
    pub(crate) fn new(client: Client, name: &str, storage: Storage, output: Transcript) -> Self {
        Self {
            client,
            name: name.to_owned(),
            storage,
            output,
            workers: 4,
            claims: None,
        }
    }

    /// Sets the number of workers per queue. One queue contains claims, and the other contains volumes.
    pub(crate) fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets an informer of claims. The caller must start and stop the informer.
    ///
    /// By default, the provisioner creates, starts and stops its own informer of claims.
    pub(crate) fn claims(mut self, informer: SharedInformer<PersistentVolumeClaim>) -> Self {
        self.claims = Some(informer);
        self
    }

    pub(crate) fn build(self) -> ProvisionController {
        let factory = SharedInformerFactory::builder(self.client.clone()).build();
        let claims = self.claims.unwrap_or_else(|| factory.informer());
        let volumes = factory.informer::<PersistentVolume>();
        let classes = factory.informer::<StorageClass>();
        let provisioner = Provisioner {
            name: self.name,
            claims: claims.lister(),
            volumes: volumes.lister(),
            classes: classes.lister(),
            api: Api::all(self.client),
            storage: self.storage,
            output: self.output,
        };
        ProvisionController {
            factory,
            claims,
            volumes,
            classes,
            claim_queue: RateLimitingQueue::new(rate_limiter::controller_default()),
            volume_queue: RateLimitingQueue::new(rate_limiter::controller_default()),
            workers: self.workers,
            provisioner: Arc::new(provisioner),
        }
    }
}

// === impl ProvisionController ===

impl ProvisionController {
    /// Creates and deletes volumes until `shutdown` resolves.
    ///
    /// Returns an error if a cache does not sync within 30 seconds, or if an informer has stopped before its
    /// handler is registered.
    pub(crate) async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        let (added, updated) = (self.claim_queue.clone(), self.claim_queue.clone());
        // The deletion of a claim needs no handler: it releases the volume, which is an update of the volume.
        let claims = self
            .claims
            .on_add(move |claim, _| added.add(claim.object_name().clone()))
            .on_update(move |_, claim| updated.add(claim.object_name().clone()))
            .register()?;
        let served = self.serve(shutdown).await;
        claims.remove().await;
        self.factory.shutdown().await;
        served
    }

    async fn serve(&self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        let (added, updated) = (self.volume_queue.clone(), self.volume_queue.clone());
        self.volumes
            .on_add(move |volume, _| added.add(volume.object_name().clone()))
            .on_update(move |_, volume| updated.add(volume.object_name().clone()))
            .register()?;
        let (queue, claims) = (self.claim_queue.clone(), self.claims.indexer());
        // Claims may have been created before their class.
        self.classes
            .on_add(move |class, _| {
                let waiting = claims.list().into_iter();
                waiting
                    .filter(|claim| class_name(claim).as_deref() == Some(class.name()))
                    .for_each(|claim| queue.add(claim.object_name().clone()));
            })
            .register()?;

        self.factory.start();
        wait_for_cache_sync([
            self.claims.wait_for_sync(),
            self.volumes.wait_for_sync(),
            self.classes.wait_for_sync(),
        ])
        .deadline(Duration::from_secs(30))
        .await?;
        let mut workers = JoinSet::new();
        for _ in 0..self.workers {
            let (claims, volumes) = (self.claim_queue.clone(), self.volume_queue.clone());
            workers.spawn(Arc::clone(&self.provisioner).work(claims, Work::Claims));
            workers.spawn(Arc::clone(&self.provisioner).work(volumes, Work::Volumes));
        }
        shutdown.await;
        self.claim_queue.shut_down();
        self.volume_queue.shut_down();
        while let Some(ended) = workers.join_next().await {
            ended?;
        }
        Ok(())
    }
}

// === impl Provisioner ===

impl Provisioner {
    /// Runs one worker: processes the claims or volumes in the queue until the queue is shut down.
    async fn work(self: Arc<Self>, queue: RateLimitingQueue<ObjectName>, work: Work) {
        while let Some(item) = queue.get().await {
            let (name, failures) = (item.key(), item.requeues());
            let done = match work {
                Work::Claims => self.sync_claim(name).await,
                Work::Volumes => self.sync_volume(name).await,
            };
            match done {
                Ok(()) => item.forget(),
                Err(error) if failures < RETRIES_MAX => {
                    let attempt = failures + 1;
                    self.output
                        .say(format!("{name} failed, attempt {attempt}: {error:#}"));
                    item.retry();
                }
                Err(error) => {
                    self.output.say(format!("{name} is dropped: {error:#}"));
                    item.give_up();
                }
            }
        }
    }

    /// Creates a disk and a volume for a claim if the claim has no volume yet.
    ///
    /// Ignores the claim if its storage class does not name this provisioner.
    async fn sync_claim(&self, name: &ObjectName) -> anyhow::Result<()> {
        let Some(claim) = self.claims.find(name) else {
            return Ok(());
        };
        let Some(class) = class_name(&claim).map(|class| ObjectName::cluster(&class)) else {
            return Ok(());
        };
        let (claim, Some(class)) = (claim.get()?, self.classes.find(&class)) else {
            return Ok(());
        };
        let class = class.get()?;
        if class.provisioner != self.name {
            let whose = &class.provisioner;
            self.output.say(format!("claim {name} belongs to {whose}"));
            return Ok(());
        }
        let volume = ObjectName::cluster(&volume_name(&claim));
        if !wants_volume(&claim, &class) || self.volumes.find(&volume).is_some() {
            return Ok(());
        }
        let labels = claim.metadata.labels.clone().unwrap_or_default();
        let disk = self.storage.provide(volume.name(), &labels).await?;
        let made = self.volume(volume.name(), &claim, &class, &disk)?;
        match self.api.create(&PostParams::default(), &made).await {
            Ok(_) => self
                .output
                .say(format!("volume {volume} was created for {name}")),
            Err(Error::Api(status)) if status.is_already_exists() => {
                self.output.say(format!("volume {volume} existed already"));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Deletes an unused volume and its disk.
    ///
    /// A volume is unused if this provisioner created the volume, the volume is released, and its reclaim
    /// policy is `Delete`.
    async fn sync_volume(&self, name: &ObjectName) -> anyhow::Result<()> {
        let Some(volume) = self.volumes.find(name) else {
            return Ok(());
        };
        let volume = volume.get()?;
        if !self.is_to_be_removed(&volume) {
            return Ok(());
        }
        self.storage.remove(name.name());
        // If the cache is stale, the uid prevents the deletion of a newer volume with this name.
        let this = DeleteParams::default().preconditions(Preconditions {
            uid: volume.metadata.uid.clone(),
            resource_version: None,
        });
        match self.api.delete(name.name(), &this).await {
            Err(Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
            deleted => drop(deleted?),
        }
        Ok(())
    }

    fn is_to_be_removed(&self, volume: &PersistentVolume) -> bool {
        let provisioned_by = volume
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(PROVISIONED_BY));
        let policy = volume
            .spec
            .as_ref()
            .and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        let phase = volume
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        provisioned_by == Some(&self.name)
            && policy == Some("Delete")
            && phase == Some("Released")
            && volume.metadata.deletion_timestamp.is_none()
    }

    fn volume(
        &self,
        name: &str,
        claim: &PersistentVolumeClaim,
        class: &StorageClass,
        disk: &HostPathVolumeSource,
    ) -> serde_json::Result<PersistentVolume> {
        let spec = claim.spec.clone().unwrap_or_default();
        let size = spec.resources.and_then(|resources| resources.requests);
        let size = size.and_then(|mut requests| requests.remove("storage"));
        serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: self.name}},
            "spec": {
                "storageClassName": class.metadata.name,
                "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
                "accessModes": spec.access_modes,
                "volumeMode": spec.volume_mode,
                "capacity": {"storage": size.unwrap_or_else(|| Quantity("1Gi".to_owned()))},
                "claimRef": claim.object_ref(&()),
                "hostPath": disk,
            },
        }))
    }
}

/// Returns the name of the volume for a claim. The name is derived from the claim's uid.
pub(crate) fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default())
}

fn class_name(claim: &Object<PersistentVolumeClaim>) -> Option<String> {
    let claim = claim.get().ok()?;
    claim.spec.as_ref()?.storage_class_name.clone()
}

fn wants_volume(claim: &PersistentVolumeClaim, class: &StorageClass) -> bool {
    let bound = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.as_ref());
    let mode = class.volume_binding_mode.as_deref().unwrap_or("Immediate");
    bound.is_none() && claim.metadata.deletion_timestamp.is_none() && mode == "Immediate"
}
