//! Creates, changes and deletes the pods of an example.
//!
//! Guarantees:
//!
//! - All pods are in the namespace `default` and have the label [`LABEL`]. The value of the label is the name
//!   of the example. No other pods are changed.
//! - The pods never run, because they name a scheduler that does not exist.
//! - Pods are deleted without a grace period. A real API server may still send an update with a deletion
//!   timestamp before the deletion event.

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube_client::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

/// Key of the label of all pods that examples create. The value is the name of the example.
pub(crate) const LABEL: &str = "kube-informer-example";

/// The pods of one example in the namespace `default`.
pub(crate) struct Pods {
    api: Api<Pod>,
    example: &'static str,
}

impl Pods {
    /// Creates a `Pods` value, and deletes the pods that an earlier failed run of `example` has left.
    ///
    /// Creates no pods on the cluster.
    pub(crate) async fn new(client: Client, example: &'static str) -> anyhow::Result<Self> {
        let api = Api::namespaced(client, "default");
        let pods = Self { api, example };
        pods.clear().await?;
        Ok(pods)
    }

    /// Creates a pod. Returns the pod as the server has stored it.
    pub(crate) async fn create(&self, name: &str) -> anyhow::Result<Pod> {
        let pod = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {LABEL: self.example}},
            "spec": {
                "schedulerName": "no-scheduler",
                "containers": [{"name": "main", "image": "registry.k8s.io/pause"}],
            },
        }))?;
        let created = self.api.create(&PostParams::default(), &pod).await;
        created.with_context(|| format!("can't create pod {name}"))
    }

    /// Sets the label `key` of a pod to `value`. Returns the pod as the server has stored it.
    pub(crate) async fn label(&self, name: &str, key: &str, value: &str) -> anyhow::Result<Pod> {
        let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        let patched = self.api.patch(name, &PatchParams::default(), &patch).await;
        patched.with_context(|| format!("can't label pod {name}"))
    }

    pub(crate) async fn delete(&self, name: &str) -> anyhow::Result<()> {
        let deleted = self.api.delete(name, &at_once()).await;
        deleted.with_context(|| format!("can't delete pod {name}"))?;
        Ok(())
    }

    /// Deletes all pods of the example without a grace period.
    pub(crate) async fn clear(&self) -> anyhow::Result<()> {
        let ours = ListParams::default().labels(&format!("{LABEL}={}", self.example));
        let deleted = self.api.delete_collection(&at_once(), &ours).await;
        deleted.context("can't delete the example's pods")?;
        Ok(())
    }
}

fn at_once() -> DeleteParams {
    DeleteParams::default().grace_period(0)
}
