//! `--controllers`: runs control loops in this process, for all namespaces of the server.
//!
//! Guarantees:
//! - a fault plan (`serve --fault`) can select the requests of a loop by their `User-Agent`. Only the
//!   controllers of kube-controller-manager have the same `User-Agent`;
//! - the loops ignore the pods and nodes that `--seed-objects` and `--churn` have created;
//! - the loops retry requests that the server rejects, for example because of a fault plan.

use std::{collections::BTreeSet, convert::Infallible, time::Duration};

use kube_informer::Selector;
use kube_informer_apiserver::Server;
use kube_informer_control_plane::{ControlPlane, Logs, Loop};

use super::template::SEEDED;

/// Names of the nodes that [`open`] creates.
pub(super) const NODES: [&str; 2] = ["node-1", "node-2"];

/// Maximum time that [`run`] waits for the caches before it logs that they are not filled yet.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between the warning that the caches are not filled yet and the next wait for the caches.
const PAUSE: Duration = Duration::from_secs(1);

/// Creates those of the [`NODES`] that the server does not have, and creates the control loops.
///
/// The loops are idle until [`run`] is called.
pub(super) async fn open(
    server: &Server,
    loops: &BTreeSet<Loop>,
    logs: &Logs,
) -> anyhow::Result<ControlPlane> {
    let not_seeded: Selector = format!("{SEEDED} notin (pods,nodes)").parse()?;
    let plane = ControlPlane::builder()
        .loops(loops.iter().copied())
        .nodes(NODES)
        .selector(not_seeded)
        .pod_logs(logs)
        .build_in_process(server)
        .await?;
    Ok(plane)
}

/// Starts the loops after their caches are filled, and never returns.
///
/// # Cancel safety
/// Started informers and loops continue after a drop of the future, until [`ControlPlane::shutdown`].
pub(super) async fn run(plane: &mut ControlPlane) -> Infallible {
    while let Err(error) = plane.observe(SYNC_TIMEOUT).await {
        tracing::warn!("the controllers wait for their caches: {error}");
        tokio::time::sleep(PAUSE).await;
    }
    plane.act();
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::{super::seeding, *};

    #[tokio::test(start_paused = true)]
    async fn seeded_deployments_are_reconciled_and_seeded_pods_and_nodes_ignored() {
        let server = Server::builder().build();
        let wanted = ["pods=20", "nodes=30", "deployments=40"].map(|text| text.parse().unwrap());
        let mut rng = Rng::with_seed(1);
        seeding::fill(&server, &wanted, &mut rng).await.unwrap();
        let before = server.list("v1", "pods");
        let all = Loop::ALL.iter().copied().collect();
        let mut plane = open(&server, &all, &Logs::default()).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(60), run(&mut plane)).await;
        assert!(ended.is_err(), "the loops never end by themselves");
        let after = server.list("v1", "pods");
        assert_eq!(after.len(), before.len() + 40);
        assert!(before.iter().all(|pod| after.contains(pod)));
        for pod in after.iter().filter(|pod| !before.contains(pod)) {
            let node = pod["spec"]["nodeName"].as_str().unwrap();
            assert!(NODES.contains(&node), "{node}");
        }
        plane.shutdown().await;
    }
}
