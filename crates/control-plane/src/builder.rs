//! Selects the loops of a control plane and connects them to a server.

use std::{collections::BTreeSet, time::Duration};

use kube_client::Client;
use kube_informer::{Selector, factory::CacheSyncError};
use kube_informer_apiserver::{ApiError, Server};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    control_plane::{ControlPlane, Scope},
    deployment, disruption, in_process, job,
    node_agent::{self, Fates, Logs},
    replica_set,
    scheduler::{self, Reach},
    step::{Loop, Step},
};

/// The `User-Agent` of the loops that kube-controller-manager has.
const MANAGER: &str = "kube-controller-manager";

/// Time within which the caches of an embedded server must be filled.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// Options of a [`ControlPlane`].
///
/// By default, all loops run, in all namespaces, for two nodes, `node-1` and `node-2`.
#[derive(Debug)]
#[must_use = "no loop runs until it is started"]
pub struct Builder {
    loops: BTreeSet<Loop>,
    nodes: Vec<String>,
    node_prefix: String,
    scope: Scope,
    logs: Logs,
    steps: Option<mpsc::Sender<Step>>,
    failing_pods: u32,
    writes_events: bool,
    only_observes: bool,
    manager: String,
}

/// The reason why a control plane can't start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The server rejects a node.
    #[error("can't create node {name}: {source}")]
    Node {
        /// Name of the node.
        name: String,
        /// The response of the server.
        source: ApiError,
    },
    /// The `User-Agent` of a loop is no value of a header.
    #[error("{0:?} can't be a `User-Agent`: it has characters that no header may have")]
    UserAgent(String),
    /// The caches of the loops are not filled within 30 seconds, or a list fails permanently.
    #[error("the caches of the control loops are not filled: {0}")]
    Caches(#[from] CacheSyncError),
}

impl ControlPlane {
    /// Returns the options of a new control plane.
    pub fn builder() -> Builder {
        Builder {
            loops: Loop::ALL.iter().copied().collect(),
            nodes: vec!["node-1".to_owned(), "node-2".to_owned()],
            node_prefix: String::new(),
            scope: Scope {
                namespace: None,
                selector: Selector::everything(),
            },
            logs: Logs::default(),
            steps: None,
            failing_pods: 0,
            writes_events: true,
            only_observes: false,
            manager: MANAGER.to_owned(),
        }
    }
}

impl Builder {
    /// Selects the loops that run.
    pub fn loops(self, loops: impl IntoIterator<Item = Loop>) -> Self {
        Self {
            loops: loops.into_iter().collect(),
            ..self
        }
    }

    /// Sets the names of the nodes that are simulated; repeated names count once. The agent of a node is
    /// `node-agent/NAME`.
    pub fn nodes<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        let mut nodes: Vec<String> = Vec::new();
        for name in names.into_iter().map(Into::into) {
            if !nodes.contains(&name) {
                nodes.push(name);
            }
        }
        Self { nodes, ..self }
    }

    /// Omits `prefix` in the names of agents: with `demo-`, the agent of the node `demo-1` is `node-agent/1`.
    pub fn node_prefix(self, prefix: impl Into<String>) -> Self {
        Self {
            node_prefix: prefix.into(),
            ..self
        }
    }

    /// Limits the namespaced objects that the loops observe to those of one namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.scope.namespace = Some(namespace.into());
        self
    }

    /// Limits the objects that the loops observe, of all kinds, to those that `selector` matches.
    pub fn selector(mut self, selector: Selector) -> Self {
        self.scope.selector = selector;
        self
    }

    /// Writes the logs of the simulated containers to `logs`, which the server needs too
    /// (`Builder::pod_logs` of `kube-informer-apiserver`).
    pub fn pod_logs(self, logs: &Logs) -> Self {
        Self {
            logs: logs.clone(),
            ..self
        }
    }

    /// Sends what the loops observe and do to `steps`. A loop waits while the channel is full, so read it.
    pub fn steps(self, steps: mpsc::Sender<Step>) -> Self {
        Self {
            steps: Some(steps),
            ..self
        }
    }

    /// Lets the containers of the first `number` pods that start fail, 400 ms after their start.
    pub fn failing_pods(self, number: u32) -> Self {
        Self {
            failing_pods: number,
            ..self
        }
    }

    /// Sets whether the loops report events (`kubectl get events`); true by default.
    pub fn events(self, writes_events: bool) -> Self {
        Self {
            writes_events,
            ..self
        }
    }

    /// Lets the loops only observe what another control plane does, and report it as steps.
    pub fn only_observe(self) -> Self {
        Self {
            only_observes: true,
            ..self
        }
    }

    /// Sets the `User-Agent` of the deployment, replica set, job and disruption loops, which is the name of the owner of
    /// the fields that they write; `kube-controller-manager` by default.
    pub fn manager(self, user_agent: impl Into<String>) -> Self {
        Self {
            manager: user_agent.into(),
            ..self
        }
    }

    /// Creates the nodes that `server` lacks, and starts the loops.
    ///
    /// Loops need the permissions of an administrator: pass [`Server::as_user`] if the server authorizes requests.
    ///
    /// # Errors
    /// Returns an error if the server rejects a node, or if the caches are not filled within 30 seconds or a list fails
    /// permanently, for example because of injected faults. Nodes that were created stay.
    ///
    /// # Cancel safety
    /// A dropped future leaves created nodes; the informers end.
    pub async fn start(self, server: &Server) -> Result<ControlPlane, StartError> {
        let mut plane = self.build_in_process(server).await?;
        plane.observe(SYNC_TIMEOUT).await?;
        plane.act();
        Ok(plane)
    }

    /// Creates the nodes that `server` lacks, unless the loops only observe, and the loops, which are idle until [`ControlPlane::observe`] and
    /// [`ControlPlane::act`] are called.
    ///
    /// # Errors
    /// Returns an error if the server rejects a node.
    pub async fn build_in_process(self, server: &Server) -> Result<ControlPlane, StartError> {
        let client = |user_agent: &str| {
            let client = in_process::client(server, user_agent);
            client.map_err(|_| StartError::UserAgent(user_agent.to_owned()))
        };
        if self.only_observes {
            return self.build(client).await;
        }
        let is_missing = |name: &&String| server.get("v1", "nodes", name).is_none();
        for name in self.nodes.iter().filter(is_missing) {
            server
                .create(node(name))
                .map_err(|error| StartError::Node {
                    name: name.clone(),
                    source: error,
                })?;
        }
        self.build(client).await
    }

    /// Creates the loops for the server of the clients that `client` returns for a `User-Agent`.
    ///
    /// The nodes must exist or be created by the caller. The loops are idle until [`ControlPlane::observe`] and
    /// [`ControlPlane::act`] are called.
    ///
    /// # Errors
    /// Returns the first error of `client`.
    #[expect(
        clippy::missing_panics_doc,
        reason = "the informers of a new process accept handlers and indices"
    )]
    pub async fn build<E>(
        self,
        mut client: impl FnMut(&str) -> Result<Client, E>,
    ) -> Result<ControlPlane, E> {
        let steps = self.steps.clone();
        let mut plane = ControlPlane::new(
            self.scope.clone(),
            steps.unwrap_or_else(|| mpsc::channel(1).0),
        );
        if self.writes_events {
            plane.write_events();
        }
        if self.only_observes {
            plane.only_observe();
        }
        if self.loops.iter().any(|one| one.is_of_manager()) {
            self.open_manager(&mut plane, client(&self.manager)?).await;
        }
        if self.loops.contains(&Loop::Scheduler) {
            let name = Loop::Scheduler.as_str();
            let mut process = plane.process(name, client(name)?);
            let reach = if self.only_observes {
                Reach::Pods
            } else {
                Reach::PodsAndNodes
            };
            scheduler::open(&mut plane, &mut process, reach)
                .await
                .expect(NEW);
            plane.host(process);
        }
        if !self.loops.contains(&Loop::NodeAgent) {
            return Ok(plane);
        }
        if self.only_observes {
            let name = Loop::NodeAgent.as_str();
            let mut process = plane.process(name, client(name)?);
            node_agent::observe_all(&mut process).expect(NEW);
            plane.host(process);
            return Ok(plane);
        }
        let fates = Fates::new(self.failing_pods);
        for node in &self.nodes {
            let short = node.strip_prefix(&self.node_prefix).unwrap_or(node);
            let name = format!("{}/{short}", Loop::NodeAgent);
            let mut process = plane.process(&name, client(&name)?);
            node_agent::open(&mut plane, &mut process, node, (&fates, &self.logs)).expect(NEW);
            plane.host(process);
        }
        Ok(plane)
    }

    /// Adds the loops of kube-controller-manager.
    async fn open_manager(&self, plane: &mut ControlPlane, client: Client) {
        let mut process = plane.process(&self.manager, client);
        if self.loops.contains(&Loop::Deployment) {
            deployment::open(plane, &mut process).await.expect(NEW);
        }
        if self.loops.contains(&Loop::ReplicaSet) {
            replica_set::open(plane, &mut process).await.expect(NEW);
        }
        if self.loops.contains(&Loop::Job) {
            job::open(plane, &mut process).await.expect(NEW);
        }
        if self.loops.contains(&Loop::Disruption) {
            disruption::open(plane, &mut process).expect(NEW);
        }
        plane.host(process);
    }
}

/// Why opening a loop can't fail.
const NEW: &str = "the informers of a new process accept handlers and indices";

fn node(name: &str) -> Value {
    let room = json!({"cpu": "32", "memory": "64Gi", "pods": "1000"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Served"}],
        },
    })
}

#[cfg(test)]
mod tests;
