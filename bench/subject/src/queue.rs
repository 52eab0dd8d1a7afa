//! Measures the time that a key needs to pass through a work queue: add, get and done.
//!
//! The queue contains only one key at a time, one thread uses the queue, and no key is delayed.

use std::{hint::black_box, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use gauge::Start;
use kube_informer::workqueue::{RateLimitingQueue, rate_limiter};

use crate::line;

/// Number of different keys, as in client-go's `BenchmarkQueue`.
const KEYS: usize = 100;

/// Command-line options of `subject queue`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Number of keys that pass through the queue
    #[arg(long, default_value_t = 3_000_000, value_name = "N")]
    items: u32,
}

/// Runs the measurement and prints the time per key in nanoseconds.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let keys: Vec<Arc<str>> = (0..KEYS).map(|key| format!("key-{key}").into()).collect();
    let queue = RateLimitingQueue::<Arc<str>>::new(rate_limiter::controller_default());
    ensure!(options.items > 0, "--items must be at least 1");
    let start = Start::new();
    for key in keys.iter().cycle().take(options.items as usize) {
        queue.add(Arc::clone(key));
        let item = queue.get().await.context("the queue was shut down")?;
        black_box(item.key());
        item.done();
    }
    let (took, _) = start.spent();
    line::print(&serde_json::json!({"ns_per_item": took * 1e9 / f64::from(options.items)}))
}
