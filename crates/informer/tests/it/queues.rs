//! Tests of informers with each type of queue.
//!
//! Some tests block an informer with a full handler buffer, and then check the batches of the queue. Another
//! test checks that all queues deliver the same events of each object.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler,
    object::Known,
    queue::{Batch, DeltaFifo, InOrder, KeyError, KeyErrors, Queue, Replaced},
    reflector::Delta,
    shared_informer::ListenerBuffer,
};
use kube_informer_apiserver::Server;
use tokio::{sync::Semaphore, time::sleep};

use crate::setting::{Trace, builder, labelled, pod, run};

/// A queue that records calls of `resync` and the deltas of each popped batch.
struct Noting<Q>(Q, Trace);

impl<Q: Queue<Pod>> Queue<Pod> for Noting<Q> {
    fn push(&mut self, delta: Delta<Pod>, known: &dyn Known<Pod>) -> Result<(), KeyError<Pod>> {
        self.0.push(delta, known)
    }

    fn replace(
        &mut self,
        list: Replaced<Pod>,
        known: &dyn Known<Pod>,
    ) -> Result<(), KeyErrors<Pod>> {
        self.0.replace(list, known)
    }

    fn resync(&mut self, known: &dyn Known<Pod>) {
        self.1.note("resync");
        self.0.resync(known);
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<Pod>> {
        let batch = self.0.pop_batch(room)?;
        let deltas: Vec<_> = batch
            .deltas
            .iter()
            .map(|delta| match delta.object() {
                Some(object) => format!("{:?} {object:?}", delta.delta_type()),
                None => format!("{:?}", delta.delta_type()),
            })
            .collect();
        self.1.note(deltas.join(", "));
        Some(batch)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A handler whose callback waits for one permit of the semaphore.
struct Gated(Arc<Semaphore>);

impl EventHandler<Pod> for Gated {
    async fn handle(&mut self, _: Event<Pod>) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// Runs an informer with `queue`, and changes pods while a full handler buffer blocks the informer.
///
/// Returns the queue's `resync` calls and popped batches since the informer was blocked.
async fn held_back(queue: impl Queue<Pod> + 'static, popped: &Trace) -> String {
    let server = Server::builder()
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    let queue = Noting(queue, popped.clone());
    let informer = run(builder(&server)
        .resync(Duration::from_secs(10))
        .queue(queue));
    // Enough for the first list and the sync marker.
    let gate = Arc::new(Semaphore::new(4));
    informer
        .pods
        .handler(Gated(Arc::clone(&gate)))
        .buffer(ListenerBuffer::Block(NonZeroUsize::MIN))
        .register()
        .unwrap();
    informer.caught_up(&server).await;
    // Two changes occupy the handler and its buffer.
    for n in 1..=3 {
        server.update(labelled("b", &n.to_string())).unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    popped.take();

    server.update(labelled("a", "1")).unwrap();
    server.update(labelled("a", "2")).unwrap();
    server.delete("v1", "pods", "default/a").unwrap();
    sleep(Duration::from_secs(15)).await;
    gate.add_permits(1000);
    informer.caught_up(&server).await;
    informer.pods.handlers_idle().await;
    assert_eq!(informer.pods.indexer().len(), 2);
    let trace = popped.take();
    informer.stop().await;
    trace
}

#[tokio::test(start_paused = true)]
async fn a_blocked_delta_fifo_pops_the_deltas_of_a_key_in_order_and_drops_its_sync() {
    let trace = held_back(DeltaFifo::new(), &Trace::default()).await;
    expect![[r#"
        resync
        Updated default/b@6
        Updated default/a@7
        Updated default/a@8
        Deleted default/a@9
        Sync default/c@3
    "#]]
    .assert_eq(&trace);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_in_order_queue_resyncs_after_the_queued_changes() {
    let trace = held_back(InOrder::new(), &Trace::default()).await;
    expect![[r#"
        resync
        Updated default/b@6
        Updated default/a@7
        Updated default/a@8
        Deleted default/a@9
        SyncAll
    "#]]
    .assert_eq(&trace);
}

#[tokio::test(start_paused = true)]
async fn both_queues_deliver_the_same_events_per_object() {
    async fn story(queue: impl Queue<Pod> + 'static) -> Vec<String> {
        let server = Server::builder()
            .seed([pod("a"), pod("b"), pod("c")])
            .build();
        let informer = run(builder(&server).queue(queue));
        let trace = Trace::default();
        trace.listen(&informer.pods);
        informer.caught_up(&server).await;
        sleep(Duration::from_secs(2)).await;
        server.update(labelled("a", "1")).unwrap();
        informer.caught_up(&server).await;
        server.faults().cut_watches();
        server.delete("v1", "pods", "default/b").unwrap();
        server.create(pod("d")).unwrap();
        server.update(labelled("c", "1")).unwrap();
        server.faults().expire_history();
        informer.caught_up(&server).await;
        let pods = informer.stop().await;
        assert_eq!(
            format!("{:?}", pods.indexer().list()),
            "[default/a@4, default/c@7, default/d@6]"
        );
        let mut lines: Vec<_> = trace.take().lines().map(str::to_owned).collect();
        // The two queues order different objects differently: deletions first, or last.
        lines.sort();
        lines
    }
    let in_order = story(InOrder::new()).await;
    assert_eq!(story(DeltaFifo::new()).await, in_order);
    expect![[r#"
        [
            "add default/a@1 (initial)",
            "add default/b@2 (initial)",
            "add default/c@3 (initial)",
            "add default/d@6",
            "delete default/b@2 (final state unknown)",
            "synced",
            "update default/a@1 → 4",
            "update default/c@3 → 7 (relist)",
        ]"#]]
    .assert_eq(&format!("{in_order:#?}"));
}
