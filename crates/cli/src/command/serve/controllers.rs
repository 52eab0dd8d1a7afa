//! `--controllers`: runs control loops in this process, for all namespaces of the server.
//!
//! Guarantees:
//! - a fault plan (`serve --fault`) can select the requests of a loop by their `User-Agent`. Only the
//!   controllers of kube-controller-manager have the same `User-Agent`;
//! - the loops ignore the pods and nodes that `--seed-objects` and `--churn` have created;
//! - the loops retry requests that the server rejects, for example because of a fault plan.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    task::{Context, Poll},
    time::Duration,
};

use anyhow::Context as _;
use http::{HeaderValue, Request, header::USER_AGENT};
use kube_client::Client;
use kube_informer::Selector;
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_service::Service;

use super::template::SEEDED;
use crate::control_plane::{
    ControlPlane, Scope, deployment, disruption, job,
    node_agent::{self, Fates, Logs},
    replica_set,
    scheduler::{self, Reach},
    step::Loop,
};

/// The `User-Agent` of the deployment, replica set and job controllers.
const MANAGER: &str = "kube-controller-manager";

/// Names of the nodes that [`Controllers::open`] creates.
pub(super) const NODES: [&str; 2] = ["node-1", "node-2"];

/// Maximum time that [`Controllers::run`] waits for the caches before it logs that they are not filled yet.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between the warning that the caches are not filled yet and the next wait for the caches.
const PAUSE: Duration = Duration::from_secs(1);

/// The demo's control loops, which are connected to one server.
pub(super) struct Controllers {
    plane: ControlPlane,
}

/// A `tower` service that sets the `User-Agent` header of each request, and sends the request to the server.
struct Reached {
    server: Server,
    user_agent: HeaderValue,
}

impl Controllers {
    /// Creates those of the [`NODES`] that the server does not have, and creates the control loops.
    ///
    /// The loops are idle until [`Controllers::run`] is called.
    pub(super) async fn open(
        server: &Server,
        loops: &BTreeSet<Loop>,
        logs: &Logs,
    ) -> anyhow::Result<Self> {
        // The data directory of the server may contain the nodes of an earlier start.
        let is_missing = |name: &&str| server.get("v1", "nodes", name).is_none();
        for name in NODES.into_iter().filter(is_missing) {
            server
                .create(node(name))
                .with_context(|| format!("can't create node {name}"))?;
        }
        // The loops report steps for the demo. Here the steps have no receiver.
        let (tell, _) = mpsc::channel(1);
        let scope = Scope {
            namespace: None,
            selector: format!("{SEEDED} notin (pods,nodes)").parse::<Selector>()?,
        };
        let mut plane = ControlPlane::new(scope, tell);
        plane.write_events();
        let mut process = plane.process(MANAGER, client(server, MANAGER)?);
        if loops.contains(&Loop::Deployment) {
            deployment::open(&mut plane, &mut process).await?;
        }
        if loops.contains(&Loop::ReplicaSet) {
            replica_set::open(&mut plane, &mut process).await?;
        }
        if loops.contains(&Loop::Job) {
            job::open(&mut plane, &mut process).await?;
        }
        if loops.contains(&Loop::Disruption) {
            disruption::open(&mut plane, &mut process)?;
        }
        plane.host(process);
        if loops.contains(&Loop::Scheduler) {
            let name = Loop::Scheduler.as_str();
            let mut process = plane.process(name, client(server, name)?);
            scheduler::open(&mut plane, &mut process, Reach::PodsAndNodes).await?;
            plane.host(process);
        }
        let agents = NODES.iter().filter(|_| loops.contains(&Loop::NodeAgent));
        for node in agents {
            let name = format!("{}/{node}", Loop::NodeAgent);
            let mut process = plane.process(&name, client(server, &name)?);
            node_agent::open(&mut plane, &mut process, node, (&Fates::default(), logs))?;
            plane.host(process);
        }
        Ok(Self { plane })
    }

    /// Starts the loops after their caches are filled, and never returns.
    ///
    /// # Cancel safety
    /// Started informers and loops continue after a drop of the future, until [`Controllers::shutdown`].
    pub(super) async fn run(&mut self) -> Infallible {
        while let Err(error) = self.plane.observe(SYNC_TIMEOUT).await {
            tracing::warn!("the controllers wait for their caches: {error}");
            tokio::time::sleep(PAUSE).await;
        }
        self.plane.act();
        std::future::pending().await
    }

    /// Stops the loops and their informers.
    ///
    /// Reconciliations that are still running after two seconds are aborted.
    pub(super) async fn shutdown(self) {
        self.plane.shutdown().await;
    }
}

impl<B> Service<Request<B>> for Reached
where
    Server: Service<Request<B>>,
{
    type Response = <Server as Service<Request<B>>>::Response;
    type Error = <Server as Service<Request<B>>>::Error;
    type Future = <Server as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.server.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let user_agent = self.user_agent.clone();
        request.headers_mut().insert(USER_AGENT, user_agent);
        self.server.call(request)
    }
}

/// Returns an in-process client that sends `User-Agent: <user_agent>` with every request.
fn client(server: &Server, user_agent: &str) -> anyhow::Result<Client> {
    let reached = Reached {
        server: server.clone(),
        user_agent: HeaderValue::from_str(user_agent)?,
    };
    Ok(Client::new(reached, "default"))
}

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
