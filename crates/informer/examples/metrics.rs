//! What an informer and its work queue cost and how far they are behind, as Prometheus reads it.
//!
//! The program gives one collector to the factory and to the queue, and prints what a scrape would get:
//! while they run, and after they have ended, when none of their series is left.
//!
//! `cargo run -p kube-informer --features prometheus --example metrics [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    InformerOptions, ObjectName, SharedInformerFactory, enqueue,
    metrics::Prometheus,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use kube_informer_apiserver::Server;
use prometheus_client::{encoding::text, registry::Registry};

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
};

const EXAMPLE: &str = "metrics";
const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(metrics().await)
}

async fn metrics() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let ours = Pods::new(cluster.client(), EXAMPLE).await?;

    // The registry is the program's own, with whatever else it measures; `Prometheus::text` is for
    // programs that have none.
    let metrics = Arc::new(Prometheus::new());
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Arc::clone(&metrics)));

    let factory = SharedInformerFactory::builder(cluster.client())
        .metrics(metrics.clone())
        .build();
    let options = InformerOptions::new()
        .labels(format!("{LABEL}={EXAMPLE}").parse()?)
        .namespaces(["default"]);
    let informer = factory.informer_with::<Pod>(options)?;
    let queue = RateLimitingQueue::<ObjectName>::builder(rate_limiter::controller_default())
        .metrics("pods", metrics)
        .build();
    informer
        .handler(enqueue(&queue))
        .name("enqueue")
        .register()?;
    factory.start();
    factory.wait_for_cache_sync().deadline(TIMEOUT).await?;

    for name in ["web-0", "web-1", "gone"] {
        ours.create(name).await?;
    }
    ours.delete("gone").await?;
    let labelled = ours.label("web-1", "app", "web").await?;
    informer.wait_for_revision(&labelled, TIMEOUT).await?;
    informer.handlers_idle().await;
    // One is in work while the page is read, the others wait; each name is in the queue once.
    let item = queue.get().await;
    let page = scrape(&registry)?;
    for line in page.lines().filter(|line| is_shown(line)) {
        println!("{line}");
    }
    drop(item);
    let lines: Vec<_> = page.lines().collect();
    ensure!(value(&lines, "informer_store_items") == Some("2"));
    ensure!(value(&lines, "informer_synced") == Some("1"));
    ensure!(value(&lines, "workqueue_adds_total") == Some("3"));
    ensure!(value(&lines, "workqueue_depth") == Some("2"));

    factory.shutdown().await;
    drop((informer, factory));
    ours.clear().await?;
    let page = scrape(&registry)?;
    ensure!(!page.contains("informer_"), "series are left: {page}");
    println!("the informer has ended, and its series with it");
    cluster.close().await;
    Ok(())
}

/// What an HTTP server would answer, as `application/openmetrics-text; version=1.0.0`.
fn scrape(registry: &Registry) -> anyhow::Result<String> {
    let mut page = String::new();
    text::encode(&mut page, registry)?;
    Ok(page)
}

/// Everything but the buckets of histograms, which are many.
fn is_shown(line: &str) -> bool {
    !line.starts_with('#') && !line.contains("_bucket{")
}

/// The value of the first series of a name.
fn value<'a>(lines: &[&'a str], name: &str) -> Option<&'a str> {
    let of_name = |line: &&&str| line.split('{').next() == Some(name);
    lines.iter().find(of_name)?.rsplit(' ').next()
}
