//! Writes generated pods to a real API server, and changes them while clients watch.
//!
//! Guarantees: all pods are written with requests to the API server, and not directly to etcd.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request};
use kube_client::Client;
use serde_json::{Map, Value, json};
use source::{Corpus, CorpusKind, Encoding, Version};
use tokio::time::{Instant, sleep_until};

const SEED: u64 = 1;

/// Maximum number of concurrent write requests.
const PARALLEL: usize = 32;

/// Distance between the indices of two consecutively changed pods.
///
/// The step is a prime number. Every pod is therefore changed once before a pod is changed again, unless the
/// number of pods is a multiple of the step.
const STEP: usize = 7_919;

/// Query parameter with the field manager of requests that create pods.
const CREATOR: &str = "fieldManager=kube-controller-manager";

/// Query parameter with the field manager of status patches.
const KUBELET: &str = "fieldManager=kubelet";

/// The pods that a measurement has written to the server.
pub(super) struct Pods {
    client: Client,
    /// API path of each pod: `/api/v1/namespaces/NAMESPACE/pods/NAME`.
    paths: Vec<String>,
}

impl Pods {
    /// Creates `count` generated pods and their namespaces, and patches the status of each pod.
    ///
    /// # Errors
    /// Returns an error if the server rejects a request.
    pub(super) async fn write(client: Client, count: usize) -> Result<Self> {
        let corpus = Corpus::new(CorpusKind::Pods, count, SEED)?;
        let pods = (0..count).map(|at| pod(&corpus, at));
        let pods: Vec<Map<String, Value>> = pods.collect::<Result<_>>()?;
        let pods = Self {
            paths: pods.iter().map(path).collect::<Result<_>>()?,
            client,
        }
        .create(pods)
        .await?;
        Ok(pods)
    }

    async fn create(self, pods: Vec<Map<String, Value>>) -> Result<Self> {
        let mut namespaces: Vec<_> = self.paths.iter().filter_map(|path| folder(path)).collect();
        namespaces.dedup();
        for folder in namespaces {
            let name = folder
                .split('/')
                .nth(4)
                .context("the path has a namespace")?;
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.send(
                Method::POST,
                "/api/v1/namespaces",
                "application/json",
                &body,
            )
            .await?;
        }
        stream::iter(pods.into_iter().zip(&self.paths))
            .map(|(pod, path)| self.create_one(pod, path))
            .buffer_unordered(PARALLEL)
            .try_collect::<()>()
            .await?;
        Ok(self)
    }

    async fn create_one(&self, mut pod: Map<String, Value>, path: &str) -> Result<()> {
        let status = pod.remove("status").context("the pod has a status")?;
        let folder = folder(path).context("the path has a folder")?;
        let body = Value::Object(pod);
        self.send(
            Method::POST,
            &format!("{folder}?{CREATOR}"),
            "application/json",
            &body,
        )
        .await?;
        let status = json!({"metadata": {"annotations": {"bench/ts": stamp()}}, "status": status});
        self.patch_status(path, &status).await
    }

    /// Sends `count` status patches in total, with at most `rate` patches per second.
    ///
    /// # Errors
    /// Returns an error if the server rejects a patch.
    pub(super) async fn change(&self, count: usize, rate: u32) -> Result<()> {
        let begun = Instant::now();
        let changes = (0_u32..).take(count).map(|number| async move {
            sleep_until(begun + Duration::from_secs(1) * number / rate).await;
            let at = number as usize * STEP % self.paths.len();
            let patch = json!({"metadata": {"annotations": {"bench/ts": stamp()}}});
            self.patch_status(&self.paths[at], &patch).await
        });
        stream::iter(changes)
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await
    }

    /// Lists the pods, and returns their number and their mean size in bytes of JSON.
    ///
    /// # Errors
    /// Returns an error if the list fails, or if its number of pods differs from the number of written pods.
    pub(super) async fn served(&self) -> Result<Value> {
        let request = Request::get("/api/v1/pods?resourceVersion=0").body(Vec::new())?;
        let list = self.client.request_text(request).await?;
        let items = serde_json::from_str::<Value>(&list)?;
        let count = items["items"].as_array().map_or(0, Vec::len);
        ensure!(count == self.paths.len(), "the server has {count} pods");
        Ok(json!({"pods": count, "json_bytes": list.len() / count}))
    }

    async fn patch_status(&self, path: &str, change: &Value) -> Result<()> {
        let resource = format!("{path}/status?{KUBELET}");
        self.send(
            Method::PATCH,
            &resource,
            "application/merge-patch+json",
            change,
        )
        .await
    }

    async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> Result<()> {
        let what = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(serde_json::to_vec(body)?)?;
        let done = self.client.request_text(request).await;
        done.map(drop).with_context(|| what)
    }
}

/// Returns the generated pod with the index `at`, without the metadata that the server sets.
fn pod(corpus: &Corpus, at: usize) -> Result<Map<String, Value>> {
    let version = Version {
        revision: 1,
        stamp: 0,
    };
    let mut text = b"{".to_vec();
    text.extend(corpus.object(at, version, Encoding::Json));
    let mut pod: Map<String, Value> = serde_json::from_slice(&text)?;
    pod.insert("apiVersion".to_owned(), json!("v1"));
    pod.insert("kind".to_owned(), json!("Pod"));
    let metadata = pod.get_mut("metadata").and_then(Value::as_object_mut);
    let metadata = metadata.context("the pod has metadata")?;
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
    ] {
        metadata.remove(field);
    }
    Ok(pod)
}

fn path(pod: &Map<String, Value>) -> Result<String> {
    let metadata = &pod["metadata"];
    let (namespace, name) = (&metadata["namespace"], &metadata["name"]);
    let (namespace, name) = namespace.as_str().zip(name.as_str()).context("no name")?;
    Ok(format!("/api/v1/namespaces/{namespace}/pods/{name}"))
}

/// Returns the path of the collection that contains the object at `path`.
fn folder(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(folder, _)| folder)
}

/// Returns the current time for the annotation `bench/ts`, in nanoseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "clients compare it with the machine's clock"
)]
fn stamp() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_written_without_fields_set_by_the_server() {
        let corpus = Corpus::new(CorpusKind::Pods, 10, SEED).unwrap();
        let pod = pod(&corpus, 3).unwrap();
        let metadata = pod["metadata"].as_object().unwrap();
        assert!(!metadata.contains_key("managedFields") && !metadata.contains_key("uid"));
        assert!(pod["spec"]["nodeName"].is_string() && pod["status"].is_object());
        let path = path(&pod).unwrap();
        let name = metadata["name"].as_str().unwrap();
        assert!(path.starts_with("/api/v1/namespaces/") && path.ends_with(name));
        assert!(folder(&path).unwrap().ends_with("/pods"));
    }

    #[test]
    fn every_pod_is_changed_equally_often() {
        for count in [500, 10_000] {
            let mut changed: Vec<_> = (0..count).map(|number| number * STEP % count).collect();
            changed.sort_unstable();
            assert!(changed.iter().copied().eq(0..count));
        }
    }
}
