//! One informer, from the wire to its handlers.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{SharedInformerFactory, workqueue};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}})
}

#[tokio::test(start_paused = true)]
async fn a_delete_missed_while_away_is_told() -> anyhow::Result<()> {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let factory = SharedInformerFactory::builder(server.client()).build();
    let pods = factory.informer::<Pod>();
    let (tell, told) = std::sync::mpsc::channel();
    pods.on_delete(move |gone| {
        tell.send((
            gone.object_name().to_string(),
            gone.is_final_state_unknown(),
        ))
        .unwrap();
    })
    .register()?;
    factory.start();
    pods.wait_for_sync()
        .deadline(Duration::from_secs(10))
        .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    server.faults().cut_watches();
    server.delete("v1", "pods", "default/a")?;
    server.faults().expire_history();

    pods.wait_for_revision(server.revision(), Duration::from_secs(60))
        .await?;
    pods.handlers_idle().await;
    assert_eq!(
        told.try_iter().collect::<Vec<_>>(),
        [("default/a".to_owned(), true)]
    );
    assert_eq!(server.requests().lists("pods").len(), 2);
    factory.shutdown().await;
    Ok(())
}
