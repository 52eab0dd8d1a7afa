//! Binds volume claims to volumes on clusters that have no controller manager to bind them.
//!
//! The binder also sets a volume to `Released` when its claim is deleted, and removes the finalizers of
//! deleted claims and volumes.
//!
//! Guarantees:
//! - the binder and the provisioner communicate only through objects on the cluster;
//! - the binder changes only objects of one storage class;
//! - if a real controller manager has already changed an object, the binder's request fails with a conflict,
//!   and the binder retries.

use std::{fmt::Debug, future::Future, sync::Arc, time::Duration};

use anyhow::ensure;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube_client::{
    Api, Client, Error,
    api::{Patch, PatchParams},
};
use kube_core::Resource;
use kube_informer::{
    Event, EventHandler, ObjectName, SharedInformer, SharedInformerFactory, enqueue,
    indexer::IndexToken,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Binds the claims of one storage class to their volumes.
pub(crate) struct Binder {
    client: Client,
    class: Arc<str>,
    claims: SharedInformer<PersistentVolumeClaim>,
    volumes: SharedInformer<PersistentVolume>,
    factory: SharedInformerFactory,
}

/// Event handler for volumes. Adds the volume's claim (`spec.claimRef`) to the queue.
///
/// Volumes of other storage classes than `class` are ignored.
struct EnqueueClaim {
    queue: RateLimitingQueue<ObjectName>,
    class: Arc<str>,
}

impl EventHandler<PersistentVolume> for EnqueueClaim {
    async fn handle(&mut self, event: Event<PersistentVolume>) {
        let (Event::Added { object, .. } | Event::Updated { new: object, .. }) = event else {
            return;
        };
        let volume = object.get().ok();
        let claim = volume.and_then(|volume| claim_of(&volume, &self.class));
        if let Some(claim) = claim {
            self.queue.add(claim);
        }
    }
}

// === impl Binder ===

impl Binder {
    pub(crate) fn new(client: Client, class: &str) -> Self {
        let factory = SharedInformerFactory::builder(client.clone()).build();
        Self {
            client,
            class: Arc::from(class),
            claims: factory.informer(),
            volumes: factory.informer(),
            factory,
        }
    }

    /// Binds claims and releases volumes until `shutdown` resolves.
    ///
    /// Returns an error if the binder's caches do not sync.
    pub(crate) async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        let queue = RateLimitingQueue::new(rate_limiter::controller_default());
        let class = Arc::clone(&self.class);
        self.claims
            .handler(enqueue(&queue))
            .filter(move |claim| claim.get().is_ok_and(|claim| asks_for(&claim, &class)))
            .register()?;
        let (class, queue_of_claims) = (Arc::clone(&self.class), queue.clone());
        let volumes = EnqueueClaim {
            queue: queue_of_claims,
            class,
        };
        self.volumes.handler(volumes).register()?;
        let class = Arc::clone(&self.class);
        let claim = move |volume: &PersistentVolume| {
            claim_of(volume, &class).map(|claim| claim.to_string())
        };
        let by_claim = self.volumes.add_index("claim", claim).await?;

        self.factory.start();
        let synced = self.factory.wait_for_cache_sync();
        synced.deadline(Duration::from_secs(30)).await?;
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.work(&queue, &by_claim) => {}
        }
        self.factory.shutdown().await;
        Ok(())
    }

    async fn work(&self, queue: &RateLimitingQueue<ObjectName>, by_claim: &IndexToken) {
        while let Some(item) = queue.get().await {
            match self.sync(item.key(), by_claim).await {
                Ok(()) => item.forget(),
                // Most errors are conflicts because the cache is stale. It is up to date at the retry.
                Err(_) => item.retry(),
            }
        }
    }

    /// Binds or releases each volume that refers to the claim `name`.
    ///
    /// A volume is bound if the claim exists and has the uid in the volume's `claimRef`. Otherwise, the
    /// volume is released. If the claim is marked for deletion, its finalizers are then removed.
    async fn sync(&self, name: &ObjectName, by_claim: &IndexToken) -> anyhow::Result<()> {
        let claim = self.claims.lister().find(name);
        let claim = claim.map(|claim| claim.get()).transpose()?;
        for volume in self.volumes.indexer().by_index(by_claim, name.as_str())? {
            let volume = volume.get()?;
            match &claim {
                Some(claim) if claim.metadata.uid == wanted_uid(&volume) => {
                    self.bind(name, claim, &volume).await?;
                }
                _ => self.release(name, &volume).await?,
            }
        }
        if let Some(claim) = claim.filter(|claim| asks_for(claim, &self.class)) {
            let_go(&self.api(name), &*claim).await?;
        }
        Ok(())
    }

    async fn bind(
        &self,
        name: &ObjectName,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
    ) -> anyhow::Result<()> {
        let (Some(claim_spec), Some(volume_spec)) = (&claim.spec, &volume.spec) else {
            return Ok(());
        };
        if volume_phase(volume) != Some("Bound") {
            let volumes = Api::<PersistentVolume>::all(self.client.clone());
            set_status(&volumes, volume, json!({"phase": "Bound"})).await?;
        }
        let claims = self.api(name);
        if claim_spec.volume_name.is_none() {
            let bound = Patch::Merge(json!({
                // The server rejects the patch if the claim has changed, for example because it was bound.
                "metadata": {"resourceVersion": claim.metadata.resource_version},
                "spec": {"volumeName": volume.metadata.name},
            }));
            let default = PatchParams::default();
            claims.patch(name.name(), &default, &bound).await?;
        }
        let status = claim.status.as_ref();
        if status.and_then(|status| status.phase.as_deref()) != Some("Bound") {
            let status = json!({
                "phase": "Bound",
                "accessModes": volume_spec.access_modes,
                "capacity": volume_spec.capacity,
            });
            set_status(&claims, claim, status).await?;
        }
        Ok(())
    }

    /// Sets the phase of a volume to `Released`, because the volume's claim is not in the cache.
    ///
    /// The cache may be stale, so the method first checks that the server does not have the claim either.
    ///
    /// # Errors
    /// Returns an error if a request fails, or if the check finds the claim on the server.
    async fn release(&self, claim: &ObjectName, volume: &PersistentVolume) -> anyhow::Result<()> {
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        if volume_phase(volume) == Some("Released") {
            return let_go(&volumes, volume).await;
        }
        // A claim that is missing in the cache may be new. Releasing loses data, so the server is checked
        // first.
        let there = self.api(claim).get_opt(claim.name()).await?;
        let uid = there.and_then(|claim| claim.metadata.uid);
        ensure!(
            uid != wanted_uid(volume),
            "the cache does not have claim {claim} yet"
        );
        set_status(&volumes, volume, json!({"phase": "Released"})).await
    }

    fn api(&self, claim: &ObjectName) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), claim.namespace().unwrap_or_default())
    }
}

async fn set_status<K>(api: &Api<K>, object: &K, status: Value) -> anyhow::Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let name = object.meta().name.as_deref().unwrap_or_default();
    let revision = &object.meta().resource_version;
    let patch = Patch::Merge(json!({"metadata": {"resourceVersion": revision}, "status": status}));
    api.patch_status(name, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Removes the finalizers of an object if the object is marked for deletion.
///
/// On a real cluster, these finalizers protect objects that pods use. No pod uses the objects of this
/// example.
async fn let_go<K>(api: &Api<K>, object: &K) -> anyhow::Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let meta = object.meta();
    let held = meta
        .finalizers
        .as_ref()
        .is_some_and(|held| !held.is_empty());
    if meta.deletion_timestamp.is_none() || !held {
        return Ok(());
    }
    let name = meta.name.as_deref().unwrap_or_default();
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    match api.patch(name, &PatchParams::default(), &patch).await {
        Err(Error::Api(status)) if status.is_not_found() => {}
        patched => drop(patched?),
    }
    Ok(())
}

fn asks_for(claim: &PersistentVolumeClaim, class: &str) -> bool {
    let asked = claim.spec.as_ref();
    asked.and_then(|spec| spec.storage_class_name.as_deref()) == Some(class)
}

/// Returns the name of the claim that a volume refers to.
///
/// Returns `None` if the volume refers to no claim, or has another storage class than `class`.
fn claim_of(volume: &PersistentVolume, class: &str) -> Option<ObjectName> {
    let spec = volume.spec.as_ref()?;
    let claim = spec.claim_ref.as_ref()?;
    let name = ObjectName::new(claim.namespace.as_deref(), claim.name.as_deref()?);
    (spec.storage_class_name.as_deref() == Some(class)).then_some(name)
}

/// Returns the uid of the claim that a volume refers to. A new claim with the same name has a different uid.
fn wanted_uid(volume: &PersistentVolume) -> Option<String> {
    volume.spec.as_ref()?.claim_ref.as_ref()?.uid.clone()
}

fn volume_phase(volume: &PersistentVolume) -> Option<&str> {
    volume.status.as_ref()?.phase.as_deref()
}
