//! Measures the mean time in which an informer delivers one event to all of many handlers.
//!
//! A source in the same process sends the events as fast as the informer reads them. The measurement ends
//! when every handler has received every event. The mean is the total time divided by the number of events.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use anyhow::{Result, ensure};
use clap::Args;
use gauge::Start;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::SharedInformer;
use tokio::{sync::Notify, task::JoinSet};

use crate::{line, memory_source};

/// Command-line options of `subject fan-out`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Number of handlers, each of which receives every event
    #[arg(long, default_value_t = 64, value_name = "N")]
    handlers: u32,
    /// Number of events that each handler receives
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    events: u32,
    /// Number of pods in the cache
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    pods: usize,
}

/// Runs the measurement and prints the mean time per event, from the first write until all handlers have
/// received all events.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let (handlers, events) = (options.handlers, options.events);
    ensure!(
        handlers > 0 && events > 0,
        "--handlers and --events must be at least 1"
    );
    let (source, mut writer) = memory_source::pods(options.pods);
    let (pods, controller) = SharedInformer::<Pod>::builder(source).build();
    let told_all = Arc::new(Notify::new());
    let left = Arc::new(AtomicU64::new(u64::from(handlers) * u64::from(events)));
    let mut registrations = Vec::new();
    for _ in 0..handlers {
        let (left, told_all) = (Arc::clone(&left), Arc::clone(&told_all));
        let mut mine = events;
        let told = move |_, _| {
            // Each handler has its own counter, so the handlers do not write to the same cache line.
            mine -= 1;
            if mine == 0 && left.fetch_sub(u64::from(events), Ordering::AcqRel) == u64::from(events)
            {
                told_all.notify_one();
            }
        };
        registrations.push(pods.on_update(told).register()?);
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(async { drop(controller.run(std::future::pending()).await) });
    for registration in &registrations {
        registration.wait_for_sync().await?;
    }
    let start = Start::new();
    for number in 0..events {
        writer.write(number as usize).await?;
    }
    told_all.notified().await;
    let (took, cpu) = start.spent();
    let per_event = |seconds: f64| seconds * 1e9 / f64::from(events);
    line::print(&serde_json::json!({
        "handlers": handlers,
        "ns_per_event": per_event(took),
        "cpu_ns_per_event": per_event(cpu),
    }))
}
