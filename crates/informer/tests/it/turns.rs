//! Tests that an informer yields to the other tasks of its thread while it applies many changes.

use std::collections::BTreeSet;

use kube_informer::queue::{BATCH, DeltaFifo};
use kube_informer_apiserver::Server;
use tokio::task::yield_now;

use crate::setting::{builder, pod, run};

#[tokio::test(start_paused = true)]
async fn a_long_list_over_a_delta_fifo_yields_after_each_batch() {
    let all = 2 * BATCH + BATCH / 2;
    let pods = (0..all).map(|n| pod(&format!("p{n}")));
    let server = Server::builder().seed(pods).build();
    let informer = run(builder(&server).queue(DeltaFifo::new()));
    let mut seen = BTreeSet::new();
    while !seen.contains(&all) {
        seen.insert(informer.pods.indexer().len());
        yield_now().await;
    }
    assert_eq!(seen, [0, BATCH, 2 * BATCH, all].into());
    informer.stop().await;
}
