//! Creates, changes and deletes the storage classes and volume claims of one run of the example.
//!
//! Guarantees: no other storage classes and claims are changed. [`Claims::clear`] deletes the claims and
//! classes of the run, and the volumes that the provisioner of the run created, even after a failed scenario.

use std::{collections::BTreeMap, fmt::Debug};

use anyhow::Context;
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use kube_client::{
    Api, Client, Error,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_core::Resource;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::controller::PROVISIONED_BY;

/// Key of the label of every object that the program creates. The value is the random id of the run.
const LABEL: &str = "kube-informer-example";

/// Creates, changes and deletes the volume claims and storage classes of one run of the program.
///
/// All claims are in the namespace `default`.
pub(crate) struct Claims {
    client: Client,
    api: Api<PersistentVolumeClaim>,
    id: String,
}

impl Claims {
    /// Selects a random id for a new run. Sends no request.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            api: Api::namespaced(client.clone(), "default"),
            client,
            // Different in each run, so that several runs can share one cluster.
            id: format!("{:08x}", fastrand::u32(..)),
        }
    }

    /// Returns the name of this run's provisioner, which contains the run's random id.
    pub(crate) fn provisioner(&self) -> String {
        format!("{}.kube-informer.example.com", self.id)
    }

    /// Creates a storage class for the provisioner `provisioner`, and returns the class's name.
    pub(crate) async fn create_class(&self, provisioner: &str) -> anyhow::Result<String> {
        let class = serde_json::from_value(json!({
            "metadata": {"generateName": "kube-informer-", "labels": {LABEL: self.id}},
            "provisioner": provisioner,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
        }))?;
        let classes = Api::<StorageClass>::all(self.client.clone());
        let created = classes.create(&PostParams::default(), &class).await;
        let created = created.context("can't create a storage class")?;
        created.metadata.name.context("a class without a name")
    }

    /// Creates a volume claim with the storage class `class`. Returns the claim as the server has stored it.
    ///
    /// The claim is named `name`, followed by a hyphen and the id of the run.
    pub(crate) async fn create(
        &self,
        name: &str,
        class: &str,
        labels: &[(&str, &str)],
    ) -> anyhow::Result<PersistentVolumeClaim> {
        let mut all = BTreeMap::from([(LABEL, self.id.as_str())]);
        all.extend(labels.iter().copied());
        let claim = serde_json::from_value(json!({
            "metadata": {"name": format!("{name}-{}", self.id), "labels": all},
            "spec": {
                "storageClassName": class,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }))?;
        let created = self.api.create(&PostParams::default(), &claim).await;
        created.with_context(|| format!("can't create claim {name}"))
    }

    pub(crate) async fn get(
        &self,
        claim: &PersistentVolumeClaim,
    ) -> anyhow::Result<PersistentVolumeClaim> {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        Ok(self.api.get(name).await?)
    }

    pub(crate) async fn label(
        &self,
        claim: &PersistentVolumeClaim,
        key: &str,
        value: &str,
    ) -> anyhow::Result<()> {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        let patched = self.api.patch(name, &PatchParams::default(), &patch).await;
        patched.with_context(|| format!("can't label claim {name}"))?;
        Ok(())
    }

    pub(crate) async fn delete(&self, claim: &PersistentVolumeClaim) -> anyhow::Result<()> {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let deleted = self.api.delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("can't delete claim {name}"))?;
        Ok(())
    }

    pub(crate) async fn has_volume(&self, name: &str) -> anyhow::Result<bool> {
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        Ok(volumes.get_opt(name).await?.is_some())
    }

    /// Deletes all remaining claims and classes of the run, and the volumes that the run's provisioner
    /// created.
    pub(crate) async fn clear(&self) -> anyhow::Result<()> {
        let ours = ListParams::default().labels(&format!("{LABEL}={}", self.id));
        remove(&self.api, self.api.list(&ours).await?.items).await?;
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        let mut made = volumes.list(&ListParams::default()).await?.items;
        let provisioner = self.provisioner();
        made.retain(|volume| {
            let notes = volume.metadata.annotations.as_ref();
            notes.and_then(|notes| notes.get(PROVISIONED_BY)) == Some(&provisioner)
        });
        remove(&volumes, made).await?;
        let classes = Api::<StorageClass>::all(self.client.clone());
        remove(&classes, classes.list(&ours).await?.items).await
    }
}

/// Deletes each object in `objects`, and then removes the finalizers of the object.
///
/// Without finalizers, the server completes the deletion even if no controller runs.
async fn remove<K>(api: &Api<K>, objects: Vec<K>) -> anyhow::Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let unprotected = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for object in objects {
        let name = object.meta().name.as_deref().unwrap_or_default();
        match api.delete(name, &DeleteParams::default()).await {
            Err(Error::Api(status)) if status.is_not_found() => continue,
            deleted => drop(deleted?),
        }
        match api.patch(name, &PatchParams::default(), &unprotected).await {
            Err(Error::Api(status)) if status.is_not_found() => {}
            patched => drop(patched?),
        }
    }
    Ok(())
}
