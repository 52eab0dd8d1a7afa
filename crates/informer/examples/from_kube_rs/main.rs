//! Compares a kube-rs controller before and after its migration to shared informers.
//!
//! `before.rs` and `after.rs` differ only in the lines that `docs/from-kube-rs.md` shows. Both controllers
//! run the same scenario, each on its own embedded server. Both must create the same config maps, or the
//! program fails. The program prints the number of requests that each controller has sent.
//!
//! The example does not run on a real cluster, because it does not create a `CustomResourceDefinition` for
//! its custom resource.
//!
//! `cargo run -p kube-informer --features kube-runtime --example from_kube_rs`

#![expect(clippy::print_stdout, reason = "an example is a program")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "kube passes these arguments to an error policy by value"
)]
#![expect(
    clippy::unused_async,
    reason = "a read of the cache replaces a request"
)]

#[path = "../setting/exit.rs"]
mod exit;
mod generator;
mod before;
mod after;

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::{Context as _, ensure};
use kube_informer::SharedInformerFactory;
use kube_informer_apiserver::{Kind, Scope, Server, Verb};
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use self::generator::GROUP;

/// Maximum time to wait until the controller has reacted to a change. The reaction normally takes
/// milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(from_kube_rs().await)
}

async fn from_kube_rs() -> anyhow::Result<()> {
    let server = server();
    let (stop, stopped) = oneshot::channel::<()>();
    let controller = before::run(server.client(), ended(stopped));
    let (ran, left) = tokio::join!(controller, play(&server, stop));
    ran?;
    let before = left?;
    println!("before: {}", asked(&server));

    let server = self::server();
    let (stop, stopped) = oneshot::channel::<()>();
    let factory = SharedInformerFactory::builder(server.client()).build();
    let controller = after::run(server.client(), &factory, ended(stopped));
    let (ran, left) = tokio::join!(controller, play(&server, stop));
    ran?;
    factory.shutdown().await;
    println!("after:  {}", asked(&server));
    ensure!(
        before == left?,
        "the config maps of the two controllers differ"
    );
    Ok(())
}

fn server() -> Server {
    let kind = Kind::custom(GROUP, "v1", "Generator", "generators", Scope::Namespaced);
    Server::builder().kind(kind).build()
}

/// Completes when the sender of `stopped` sends a message or is dropped.
async fn ended(stopped: oneshot::Receiver<()>) {
    drop(stopped.await);
}

/// Changes config maps and the `Generator` objects that define them, as a user would.
///
/// After each change, waits until the controller has updated the config maps. At the end, drops `stop`, which
/// stops the controller, and returns the contents of the config maps by name.
async fn play(
    server: &Server,
    stop: oneshot::Sender<()>,
) -> anyhow::Result<BTreeMap<String, Value>> {
    for (name, content) in [("a", "one"), ("b", "two"), ("c", "three")] {
        server.create(generator(name, content))?;
    }
    shows(server, &[("a", "one"), ("b", "two"), ("c", "three")]).await?;
    server.delete("v1", "configmaps", "default/a")?;
    shows(server, &[("a", "one"), ("b", "two"), ("c", "three")]).await?;
    let changed = server.get("v1", "configmaps", "default/c");
    let mut changed = changed.context("config map c does not exist")?;
    changed["data"]["content"] = "changed".into();
    server.update(changed)?;
    server.delete(&api_version(), "generators", "default/b")?;
    shows(server, &[("a", "one"), ("c", "three")]).await?;
    drop(stop);
    Ok(contents(server))
}

/// Waits until the config maps on the server have exactly the names and contents in `wanted`.
async fn shows(server: &Server, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
    let wanted: BTreeMap<_, _> = wanted
        .iter()
        .map(|&(name, content)| (name.to_owned(), Value::from(content)))
        .collect();
    let there = async {
        while contents(server) != wanted {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = timeout(TIMEOUT, there).await;
    in_time.with_context(|| format!("the config maps are {:?}, not {wanted:?}", contents(server)))
}

/// Returns a map from the name of each config map on the server to its content.
fn contents(server: &Server) -> BTreeMap<String, Value> {
    let config_maps = server.list("v1", "configmaps");
    let content = |map: Value| {
        let name = map["metadata"]["name"].as_str()?.to_owned();
        Some((name, map["data"]["content"].clone()))
    };
    config_maps.into_iter().filter_map(content).collect()
}

fn generator(name: &str, content: &str) -> Value {
    json!({
        "apiVersion": api_version(), "kind": "Generator",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"content": content},
    })
}

fn api_version() -> String {
    format!("{GROUP}/v1")
}

/// Returns the numbers of lists, watches, gets and writes in the server's request log, as text.
fn asked(server: &Server) -> String {
    let log = server.requests();
    let count = |verb: Verb| log.iter().filter(|request| request.verb == verb).count();
    let verbs = [
        ("lists", Verb::List),
        ("watches", Verb::Watch),
        ("gets", Verb::Get),
    ];
    let writes = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];
    let writes: usize = writes.into_iter().map(count).sum();
    let reads: Vec<_> = verbs
        .map(|(name, verb)| format!("{} {name}", count(verb)))
        .into();
    format!("{}, {writes} writes", reads.join(", "))
}
