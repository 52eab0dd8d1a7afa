//! Shows how to test a program that uses informers.
//!
//! The test uses an embedded API server and paused tokio time. The server runs in the process of the test and
//! opens no socket. The time is virtual, so a test that sleeps for an hour ends immediately.
//!
//! The function `test_with_server` can be the body of a `#[tokio::test(start_paused = true)]`. In the test, a
//! pod is deleted while the watch is disconnected, and the server then drops its event history. The informer
//! nevertheless delivers the deletion.
//!
//! `cargo run -p kube-informer --example test_with_server`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/args.rs"]
mod args;
#[path = "setting/exit.rs"]
mod exit;

use std::{process::ExitCode, time::Duration};

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::SharedInformerFactory;
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> ExitCode {
    exit::code(test_with_server().await)
}

async fn test_with_server() -> anyhow::Result<()> {
    // Checks the arguments that all examples accept; this one needs no cluster.
    args::parse()?;
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let factory = SharedInformerFactory::builder(server.client()).build();
    let pods = factory.informer::<Pod>();
    let (tell, mut told) = mpsc::channel(8);
    pods.on_delete(move |gone| {
        let deletion = (
            gone.object_name().to_string(),
            gone.is_final_state_unknown(),
        );
        tell.try_send(deletion)
            .expect("there is room for one deletion");
    })
    .register()?;
    factory.start();
    pods.wait_for_sync()
        .deadline(Duration::from_secs(10))
        .await?;
    // A watch that ends within a second without an event counts as failed; this sleep avoids that.
    sleep(Duration::from_secs(2)).await;

    // These calls have no await between them, so the informer runs only after all of them.
    server.faults().cut_watches();
    server.delete("v1", "pods", "default/a")?;
    server.faults().expire_history();

    let revision = server.revision();
    pods.wait_for_revision(revision, Duration::from_secs(60))
        .await?;
    pods.handlers_idle().await;
    let deletion = told.try_recv()?;
    println!("deleted: {deletion:?}");
    ensure!(
        deletion == ("default/a".to_owned(), true),
        "the delivered deletion is {deletion:?}"
    );
    ensure!(
        told.try_recv().is_err(),
        "more than one deletion was delivered"
    );
    let lists = server.requests().lists("pods").len();
    println!("{lists} lists");
    // The second list requests one object, to check whether the server is still the same one.
    ensure!(
        lists == 3,
        "{lists} lists, not one at the start and two after the outage"
    );
    factory.shutdown().await;
    Ok(())
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "pause"}]},
    })
}
