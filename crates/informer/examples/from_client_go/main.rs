//! Runs a port of Kubernetes' sample-controller.
//!
//! Without arguments, the program runs a scenario on an embedded server and prints the resulting deployments.
//! On a cluster, the program runs until its standard input ends. The document `docs/from-client-go.md`
//! compares the port with the original Go code. The conformance tests run the Go controller and this
//! controller with the same scenario, and compare the results.
//!
//! `cargo run -p kube-informer --example from_client_go [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "../setting/cluster.rs"]
mod cluster;
mod controller;
#[path = "../setting/exit.rs"]
mod exit;

use std::{process::ExitCode, time::Duration};

use anyhow::Context as _;
use kube_client::Client;
use kube_informer::{InformerOptions, SharedInformerFactory};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, stdin},
    sync::oneshot,
    time::{sleep, timeout},
};

use self::{
    cluster::Cluster,
    controller::{APP, Controller},
};

const WORKERS: usize = 2;

/// Maximum time to wait until the controller has reacted to a change. The reaction normally takes
/// milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(sample().await)
}

async fn sample() -> anyhow::Result<()> {
    match cluster::args::parse()? {
        (None, None) => play().await,
        _ => work().await,
    }
}

async fn work() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let end_of_input = async {
        // The end of the input and a read error both stop the controller.
        let _ = stdin().read_to_end(&mut Vec::new()).await;
    };
    let ran = run(cluster.client(), end_of_input).await;
    cluster.close().await;
    ran
}

/// Runs the controller and its informers until `stop` resolves.
async fn run(client: Client, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
    let factory = SharedInformerFactory::builder(client.clone())
        .resync(Duration::from_secs(30))
        .build();
    let apps = factory.informer_with(InformerOptions::new().labels(APP.parse()?))?;
    // The controller works with every cache representation; a packed cache decodes each object on read.
    let deployments = factory.informer_with(InformerOptions::new().packed())?;
    let controller = Controller::new(client, apps, deployments)?;
    factory.start();
    let ran = controller.run(WORKERS, stop).await;
    factory.shutdown().await;
    ran
}

async fn play() -> anyhow::Result<()> {
    let server = Server::builder().build();
    let (stop, stopped) = oneshot::channel::<()>();
    let stop_requested = async {
        // The scenario never sends; it drops the sender.
        let _ = stopped.await;
    };
    let act = async {
        let acted = act(&server).await;
        drop(stop);
        acted
    };
    let (ran, acted) = tokio::join!(run(server.client(), stop_requested), act);
    acted.and(ran)?;
    for line in deployments(&server) {
        println!("{line}");
    }
    Ok(())
}

/// Changes objects on the server as a user would.
///
/// The objects are deployments, and the config maps from which the controller creates deployments. After each
/// step, waits until the deployments are as expected.
async fn act(server: &Server) -> anyhow::Result<()> {
    server.create(app("a", "web", 1))?;
    server.create(app("b", "db", 2))?;
    shows(server, &["db: 2 replicas, of b", "web: 1 replicas, of a"]).await?;
    server.update(app("b", "db", 3))?;
    shows(server, &["db: 3 replicas, of b", "web: 1 replicas, of a"]).await?;
    server.delete("apps/v1", "deployments", "default/web")?;
    shows(server, &["db: 3 replicas, of b", "web: 1 replicas, of a"]).await?;
    let scaled = server.get("apps/v1", "deployments", "default/db");
    let mut scaled = scaled.context("deployment db does not exist")?;
    scaled["spec"]["replicas"] = 9.into();
    server.update(scaled)?;
    shows(server, &["db: 3 replicas, of b", "web: 1 replicas, of a"]).await
}

fn app(name: &str, deployment: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {APP: "true"}},
        "data": {"deploymentName": deployment, "replicas": replicas.to_string()},
    })
}

/// Waits until [`deployments`] returns exactly the lines in `wanted`.
async fn shows(server: &Server, wanted: &[&str]) -> anyhow::Result<()> {
    let there = async {
        while deployments(server) != wanted {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = timeout(TIMEOUT, there).await;
    in_time.with_context(|| {
        format!(
            "the deployments are {:?}, not {wanted:?}",
            deployments(server)
        )
    })
}

/// Returns one line per deployment on the server: the name, the number of replicas, and the owner.
///
/// The lines are sorted by name.
fn deployments(server: &Server) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let line = |deployment: Value| {
        let meta = &deployment["metadata"];
        let (name, owner) = (
            text(&meta["name"]),
            text(&meta["ownerReferences"][0]["name"]),
        );
        let replicas = &deployment["spec"]["replicas"];
        format!("{name}: {replicas} replicas, of {owner}")
    };
    let mut lines: Vec<_> = server
        .list("apps/v1", "deployments")
        .into_iter()
        .map(line)
        .collect();
    lines.sort();
    lines
}
