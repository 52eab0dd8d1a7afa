//! Provides the demo's API server, and creates and removes the demo's objects on it.
//!
//! The server is an embedded server, or a real server from a kubeconfig. The demo runs control loops, such as
//! a scheduler. On a real server, the loops write only if the user requests it.
//!
//! Guarantees:
//! - every object of the demo has a label that identifies the demo, and the loops observe only these objects;
//! - at the end, also after an error, the objects with that label are removed from a real server. The
//!   embedded server ends with the demo and stores its objects only in memory.

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{anyhow, bail};
use http::{HeaderValue, header::USER_AGENT};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Namespace, Node, Pod},
};
use kube_client::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_informer::Object;
use kube_informer_apiserver::{Listening, RequestLog, Server};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Options, Target,
    kubeconfig::{config_of, one_line},
};

/// Key of a label that all objects of a demo have.
const LABEL: &str = "kube-informer-demo";

/// `User-Agent` of the demo's requests outside the control loops.
const USER: &str = "user";

/// Names of the demo's nodes, without `World::prefix`.
const NODES: [&str; 2] = ["node-1", "node-2"];

/// Maximum time until a real server returns its version.
const ANSWER: Duration = Duration::from_secs(5);

/// Maximum time to remove the demo's objects from a real server.
const REMOVAL: Duration = Duration::from_secs(20);

/// A demo's API server, the label that identifies the demo's objects, and the prefix of their names.
pub(super) struct World {
    config: Config,
    namespace: String,
    /// Value of the label [`LABEL`] on the demo's objects.
    run: String,
    /// Prefix of the object names, such as `demo-1a2b-`; empty on the embedded server.
    prefix: String,
    backend: Backend,
    /// Whether the demo has tried to create objects, which must then be removed.
    has_made: AtomicBool,
}

enum Backend {
    Embedded {
        server: Server,
        listening: Listening,
    },
    Cluster {
        act: bool,
    },
}

impl World {
    /// Starts the embedded server, or checks that the real server and the namespace are available.
    ///
    /// # Errors
    /// Returns an error if the server is not available, or if the kubeconfig or the namespace is invalid.
    pub(super) async fn open(options: &Options) -> anyhow::Result<World> {
        let Target::Cluster {
            kubeconfig,
            context,
            namespace,
            act,
        } = &options.target
        else {
            return World::embedded().await;
        };
        let mut config = config_of(kubeconfig, context.as_deref()).await?;
        if let Some(namespace) = namespace {
            config.default_namespace.clone_from(namespace);
        }
        let run = format!("{:04x}", fastrand::u16(..));
        let world = World {
            namespace: config.default_namespace.clone(),
            config,
            prefix: format!("demo-{run}-"),
            run,
            backend: Backend::Cluster { act: *act },
            has_made: AtomicBool::new(false),
        };
        world.is_there().await?;
        Ok(world)
    }

    async fn embedded() -> anyhow::Result<World> {
        let run = "embedded";
        let nodes = NODES.iter().map(|name| node(name, run));
        let server = Server::builder().seed(nodes).build();
        let listening = server
            .listen((Ipv4Addr::LOCALHOST, 0).into())
            .await
            .map_err(|error| {
                anyhow!("can't start the embedded server on 127.0.0.1: {error}; check that the loopback interface is up")
            })?;
        let uri = format!("http://{}", listening.local_addr());
        Ok(World {
            config: Config::new(uri.parse()?),
            namespace: "default".to_owned(),
            run: run.to_owned(),
            prefix: String::new(),
            backend: Backend::Embedded { server, listening },
            has_made: AtomicBool::new(false),
        })
    }

    /// Checks that the real server responds and the demo's namespace exists.
    async fn is_there(&self) -> anyhow::Result<()> {
        let client = self.client(USER)?;
        let url = &self.config.cluster_url;
        let version = tokio::time::timeout(ANSWER, client.apiserver_version()).await;
        match version {
            Ok(Ok(_)) => {}
            Ok(Err(kube_client::Error::Api(status))) => bail!(
                "the API server at {url} rejected the request for its version: {}; check the user in the kubeconfig",
                status.message
            ),
            Ok(Err(error)) => bail!(
                "can't reach the API server at {url}: {}; check that it runs, and the address in the kubeconfig",
                root_cause(&error)
            ),
            Err(_) => bail!(
                "no response from the API server at {url} within {} s; check that it runs, and the address in the kubeconfig",
                ANSWER.as_secs()
            ),
        }
        let namespaces: Api<Namespace> = Api::all(client);
        match namespaces.get(&self.namespace).await {
            Err(kube_client::Error::Api(status)) if status.is_not_found() => bail!(
                "namespace {:?} does not exist on {url}; create it, or name another with --namespace",
                self.namespace
            ),
            // A user who may not read namespaces can still have access to this one.
            _ => Ok(()),
        }
    }

    /// Returns a sentence with the server's address.
    pub(super) fn description(&self) -> String {
        let url = &self.config.cluster_url;
        match &self.backend {
            Backend::Embedded { .. } => {
                format!("An embedded API server listens at {url} with two nodes.")
            }
            Backend::Cluster { act: true } => format!(
                "The API server is {url}; the loops act there, in namespace {} and on two nodes of the demo.",
                self.namespace
            ),
            Backend::Cluster { act: false } => format!(
                "The API server is {url}; the loops only observe, in namespace {}.",
                self.namespace
            ),
        }
    }

    /// Returns a client that sends the header `User-Agent: <user_agent>` with every request.
    pub(super) fn client(&self, user_agent: &str) -> anyhow::Result<Client> {
        let mut config = self.config.clone();
        let value = HeaderValue::from_str(user_agent)?;
        config.headers.push((USER_AGENT, value));
        kube_informer::client::connect(config).map_err(|error| {
            anyhow!(
                "can't create a client from the kubeconfig: {}; check its certificates and proxy",
                root_cause(&error)
            )
        })
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn acts(&self) -> bool {
        !matches!(self.backend, Backend::Cluster { act: false })
    }

    /// Returns the name of each node.
    ///
    /// Returns no names if the control loops only observe: the demo then creates no nodes.
    pub(super) fn nodes(&self) -> Vec<String> {
        let nodes: &[&str] = if self.acts() { &NODES } else { &[] };
        let named = |node: &&str| format!("{}{node}", self.prefix);
        nodes.iter().map(named).collect()
    }

    /// Returns the beginning of the names of all objects of the demo.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the embedded server's request log, or `None` for a real server.
    pub(super) fn requests(&self) -> Option<RequestLog> {
        match &self.backend {
            Backend::Embedded { server, .. } => Some(server.requests()),
            Backend::Cluster { .. } => None,
        }
    }

    /// Creates the demo's nodes on a real server, if the demo's control loops write to it.
    pub(super) async fn create_nodes(&self) -> anyhow::Result<()> {
        if !matches!(self.backend, Backend::Cluster { act: true }) {
            return Ok(());
        }
        let nodes: Api<Node> = Api::all(self.client(USER)?);
        self.has_made.store(true, Ordering::Relaxed);
        for name in self.nodes() {
            let value = node(&name, &self.run);
            let new: Node = typed(&value)?;
            nodes
                .create(&PostParams::default(), &new)
                .await
                .map_err(|error| refused("create a Node", &error))?;
            // A server may drop the status from a creation request.
            let status = json!({"status": value["status"]});
            nodes
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
                .await
                .map_err(|error| refused("write a Node's status", &error))?;
        }
        Ok(())
    }

    /// Creates the Deployment, and returns the stored object.
    pub(super) async fn create_deployment(
        &self,
        options: &Options,
    ) -> anyhow::Result<Object<Deployment>> {
        let deployments: Api<Deployment> = Api::namespaced(self.client(USER)?, &self.namespace);
        let deployment = typed(&self.deployment(options))?;
        self.has_made.store(true, Ordering::Relaxed);
        let created = deployments
            .create(&PostParams::default(), &deployment)
            .await
            .map_err(|error| refused("create a Deployment", &error))?;
        Ok(Object::new(created)?)
    }

    /// Returns a sentence with the `kubectl` command that removes the demo's objects.
    pub(super) fn advice(&self) -> String {
        let (namespace, label) = (&self.namespace, self.selector());
        format!(
            "remove the remaining objects with: kubectl delete deployments,replicasets,pods,nodes -n {namespace} -l {label}"
        )
    }

    /// Stops the embedded server, or removes the demo's objects from the cluster. Returns a summary.
    ///
    /// # Errors
    /// Returns an error if objects may remain. The error contains the command that removes them.
    pub(super) async fn clean_up(self) -> anyhow::Result<String> {
        let advice = self.advice();
        let act = match self.backend {
            Backend::Embedded { listening, .. } => {
                listening.shutdown().await;
                return Ok("The embedded server and all that was in it are gone.".to_owned());
            }
            Backend::Cluster { act } => act,
        };
        if !self.has_made.load(Ordering::Relaxed) {
            return Ok("Nothing was made, so nothing is left.".to_owned());
        }
        match tokio::time::timeout(REMOVAL, self.remove_all(act)).await {
            Ok(Ok(removed)) => Ok(removed),
            Ok(Err(error)) => Err(anyhow!(
                "can't remove the demo's objects: {error:#}; {advice}"
            )),
            Err(_) => Err(anyhow!(
                "can't remove the demo's objects within {} s; {advice}",
                REMOVAL.as_secs()
            )),
        }
    }

    /// Removes the demo's objects from a real server, and returns a summary.
    ///
    /// `act` is whether the demo's control loops write to the server. Only then does the demo create nodes,
    /// which are also removed.
    async fn remove_all(&self, act: bool) -> anyhow::Result<String> {
        let client = self.client(USER)?;
        let here = &self.namespace;
        let background = DeleteParams::background();
        // On a server without a kubelet, no other component ends a pod's grace period.
        let pods = if act {
            DeleteParams::default().grace_period(0)
        } else {
            DeleteParams::default()
        };
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), here);
        let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), here);
        let in_pods: Api<Pod> = Api::namespaced(client.clone(), here);
        let nodes: Api<Node> = Api::all(client);
        // Counted before the first deletion, because a garbage collector removes dependents too.
        let mut made = vec![
            counted(self.count(&deployments).await?, "Deployment"),
            counted(self.count(&sets).await?, "ReplicaSet"),
            counted(self.count(&in_pods).await?, "Pod"),
        ];
        if act {
            made.push(counted(self.count(&nodes).await?, "Node"));
        }
        // Owners first, because a controller would replace removed dependents.
        self.remove(&deployments, &background).await?;
        self.remove(&sets, &background).await?;
        self.remove(&in_pods, &pods).await?;
        if act {
            self.remove(&nodes, &background).await?;
        }
        Ok(format!(
            "Removed what the demo had made: {}.",
            made.join(", ")
        ))
    }

    /// Returns the number of the demo's objects of a kind.
    async fn count<K>(&self, api: &Api<K>) -> anyhow::Result<usize>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let ours = ListParams::default().labels(&self.selector());
        Ok(api.list(&ours).await?.items.len())
    }

    async fn remove<K>(&self, api: &Api<K>, params: &DeleteParams) -> anyhow::Result<()>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let ours = ListParams::default().labels(&self.selector());
        api.delete_collection(params, &ours).await?;
        Ok(())
    }

    /// Returns the selector of the objects that the loops observe.
    pub(super) fn selector(&self) -> String {
        format!("{LABEL}={}", self.run)
    }

    fn deployment(&self, options: &Options) -> Value {
        let name = format!("{}web", self.prefix);
        let labels = json!({LABEL: self.run, "app": name});
        let mut spec = json!({
            "containers": [{
                "name": "main",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": options.cpu, "memory": "64Mi"}},
            }],
            "automountServiceAccountToken": false,
        });
        if self.acts() {
            // With this name, another scheduler on the server ignores these pods.
            spec["schedulerName"] = json!("kubectl-informer-demo");
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "spec": {
                "replicas": options.replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        })
    }
}

/// Returns a node with room for 320 of the demo's pods at 100m CPU each.
fn node(name: &str, run: &str) -> Value {
    let room = json!({"cpu": "32", "memory": "64Gi", "pods": "1000"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: run}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Demo"}],
        },
    })
}

fn typed<K: DeserializeOwned>(value: &Value) -> Result<K, serde_json::Error> {
    // Deserializing the `Value` itself would add 0.6 MB of code to the program.
    serde_json::from_str(&value.to_string())
}

/// Returns the number and the kind in the correct plural, such as `2 Pods`.
fn counted(number: usize, kind: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {kind}{plural}")
}

fn refused(what: &str, error: &kube_client::Error) -> anyhow::Error {
    match error {
        kube_client::Error::Api(status) => {
            anyhow!(
                "can't {what}: the server rejected the request: {}; check the permissions of the user in the kubeconfig",
                status.message
            )
        }
        error => anyhow!(
            "can't {what}: {}; check that the server still runs",
            root_cause(error)
        ),
    }
}

/// Returns the message of the last error in the source chain, as one line.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    one_line(&cause.to_string())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use kube_core::Status;

    use super::*;

    #[test]
    fn a_rejected_write_and_a_lost_server_are_reported_with_the_next_step() {
        let rejected = Status::failure("nodes is forbidden", "Forbidden").with_code(403);
        let lost = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let lines = [
            kube_client::Error::Api(rejected.boxed()),
            kube_client::Error::Service(Box::new(lost)),
        ]
        .map(|error| format!("{:#}\n", refused("create a Node", &error)));
        expect![[r#"
            can't create a Node: the server rejected the request: nodes is forbidden; check the permissions of the user in the kubeconfig
            can't create a Node: connection reset; check that the server still runs
        "#]].assert_eq(&lines.concat());
    }
}
