//! `--controllers`: runs the demo's control loops in this process, for all namespaces of the server.
//!
//! Guarantees:
//! - a fault plan (`serve --fault`) can select the requests of a loop by their `User-Agent`. Only the
//!   deployment controller and the replica set controller have the same `User-Agent`;
//! - the loops ignore the pods and nodes that `--seed-objects` and `--churn` have created;
//! - the loops retry requests that the server rejects, for example because of a fault plan.

use std::{
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
    ControlPlane, Scope, deployment,
    node_agent::{self, Fates},
    replica_set,
    scheduler::{self, Reach},
    step::Loop,
};

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
    pub(super) async fn open(server: &Server) -> anyhow::Result<Self> {
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
        let controllers = "deployment-and-replica-set-controller";
        let mut process = plane.process(controllers, client(server, controllers)?);
        deployment::open(&mut plane, &mut process).await?;
        replica_set::open(&mut plane, &mut process).await?;
        plane.host(process);
        let name = Loop::Scheduler.as_str();
        let mut process = plane.process(name, client(server, name)?);
        scheduler::open(&mut plane, &mut process, Reach::PodsAndNodes).await?;
        plane.host(process);
        for node in NODES {
            let name = format!("{}/{node}", Loop::NodeAgent);
            let mut process = plane.process(&name, client(server, &name)?);
            node_agent::open(&mut plane, &mut process, node, &Fates::default())?;
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
mod tests {
    use fastrand::Rng;

    use super::{super::seeding, *};

    /// A period in virtual time that is longer than any operation of the tests.
    const LONG: Duration = Duration::from_secs(60);

    fn deployment(namespace: &str, replicas: u32) -> Value {
        let labels = json!({"app": "web"});
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": "pause"}]},
                },
            },
        })
    }

    fn running(server: &Server, namespace: &str) -> usize {
        let pods = server.list("v1", "pods").into_iter();
        let runs = |pod: &Value| {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            pod["metadata"]["namespace"] == namespace
                && pod["status"]["phase"] == "Running"
                && NODES.contains(&node)
        };
        pods.filter(runs).count()
    }

    async fn run_for(controllers: &mut Controllers, period: Duration) {
        let ended = tokio::time::timeout(period, controllers.run()).await;
        assert!(ended.is_err(), "they never end by themselves");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deployment_becomes_running_pods_in_any_namespace() {
        let server = Server::builder().enforce_namespaces(false).build();
        let mut controllers = Controllers::open(&server).await.unwrap();
        server.create(deployment("default", 3)).unwrap();
        server.create(deployment("elsewhere", 2)).unwrap();
        run_for(&mut controllers, LONG).await;
        assert_eq!(running(&server, "default"), 3);
        assert_eq!(running(&server, "elsewhere"), 2);
        let stored = server.get("apps/v1", "deployments", "elsewhere/web");
        assert_eq!(stored.unwrap()["status"]["readyReplicas"], 2);
        controllers.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn seeded_deployments_are_reconciled_and_seeded_pods_and_nodes_ignored() {
        let server = Server::builder().build();
        let wanted = ["pods=20", "nodes=30", "deployments=40"].map(|text| text.parse().unwrap());
        let mut rng = Rng::with_seed(1);
        seeding::fill(&server, &wanted, &mut rng).await.unwrap();
        let before = server.list("v1", "pods");
        let mut controllers = Controllers::open(&server).await.unwrap();
        run_for(&mut controllers, LONG).await;
        let after = server.list("v1", "pods");
        assert_eq!(after.len(), before.len() + 40);
        assert!(before.iter().all(|pod| after.contains(pod)));
        for pod in after.iter().filter(|pod| !before.contains(pod)) {
            let node = pod["spec"]["nodeName"].as_str().unwrap();
            assert!(NODES.contains(&node), "{node}");
        }
        controllers.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn loops_whose_requests_are_rejected_at_first_act_later() {
        let server = Server::builder().build();
        let mut controllers = Controllers::open(&server).await.unwrap();
        let plan = "* * from scheduler: 403 x5";
        server.faults().inject(plan).unwrap();
        server.create(deployment("default", 1)).unwrap();
        run_for(&mut controllers, LONG).await;
        let log = server.requests();
        let refused = log.iter().filter(|request| request.status == Some(403));
        assert!(
            refused.count() > 0,
            "the plan finds the scheduler by its User-Agent"
        );
        assert_eq!(running(&server, "default"), 1);
        controllers.shutdown().await;
    }
}
