//! Exports Prometheus metrics of an informer and its work queue, such as the number of cached objects and the
//! queue's depth.
//!
//! The factory and the queue share one collector. The program prints the metrics while the informer and the
//! queue run. Then it stops the informer and checks that the informer's metrics are removed.
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

    // The program owns the registry and can add other metrics to it. A program without a registry uses
    // `Prometheus::text`.
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
    // One item is in progress during the scrape and the others wait. Each name is in the queue once.
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
    ensure!(!page.contains("informer_"), "series remain: {page}");
    println!("the informer has ended, and its series are removed");
    cluster.close().await;
    Ok(())
}

/// Returns the metrics in `registry` as text.
///
/// The format is `application/openmetrics-text; version=1.0.0`.
fn scrape(registry: &Registry) -> anyhow::Result<String> {
    let mut page = String::new();
    text::encode(&mut page, registry)?;
    Ok(page)
}

/// Returns whether the example prints this line of the metrics.
///
/// Comments and histogram buckets are not printed.
fn is_shown(line: &str) -> bool {
    !line.starts_with('#') && !line.contains("_bucket{")
}

/// Returns the value of the metric `name`, or `None` if no line contains this metric.
fn value<'a>(lines: &[&'a str], name: &str) -> Option<&'a str> {
    let of_name = |line: &&&str| line.split('{').next() == Some(name);
    lines.iter().find(of_name)?.rsplit(' ').next()
}
