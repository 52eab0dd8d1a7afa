//! Provides small pods from memory to an informer, without a server.
//!
//! Guarantees: the list is encoded when the source is created. The first watch delivers all writes in order.
//! The writer waits while [`ON_THE_WAY`] events are unread.
//!
//! The source supports only one watch. A later watch stays open and has no events.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, future, stream};
use kube_informer::transport::{ByteStream, Error, ListOptions, ListerWatcher, Response};
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// Maximum number of sent events that the informer has not read yet.
const ON_THE_WAY: usize = 64;

pub(crate) const NAMESPACE: &str = "default";

/// A list of small pods, and a watch with the events of a [`PodWriter`].
pub(crate) struct MemorySource {
    list: Bytes,
    /// Events from the [`PodWriter`]; `None` after the first watch has started.
    events: Mutex<Option<mpsc::Receiver<Bytes>>>,
}

/// Changes the pods of a [`MemorySource`], and sends each change to the watch of that source.
pub(crate) struct PodWriter {
    pods: usize,
    revision: usize,
    events: mpsc::Sender<Bytes>,
}

/// Returns a source with `pods` pods, and the writer that changes these pods.
///
/// The pods have only metadata, like those in client-go's `BenchmarkSharedIndexInformer`.
pub(crate) fn pods(pods: usize) -> (MemorySource, PodWriter) {
    let items: Vec<_> = (0..pods).map(|number| pod(number, number + 1)).collect();
    let list = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{pods}"}},"items":[{}]}}"#,
        items.join(",")
    );
    let (events, written) = mpsc::channel(ON_THE_WAY);
    let source = MemorySource {
        list: list.into(),
        events: Mutex::new(Some(written)),
    };
    let revision = pods;
    let writer = PodWriter {
        pods,
        revision,
        events,
    };
    (source, writer)
}

fn pod(number: usize, revision: usize) -> String {
    // Names have 20 characters, as in client-go's benchmark. Consecutive numbers give distant names.
    let mixed = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!(
        r#"{{"metadata":{{"name":"{mixed:020}","namespace":"{NAMESPACE}","uid":"{number}","resourceVersion":"{revision}"}}}}"#
    )
}

impl PodWriter {
    /// Changes the pod with the index `number` modulo the number of pods, and sends the event.
    ///
    /// # Errors
    /// Returns an error if the informer has stopped.
    pub(crate) async fn write(&mut self, number: usize) -> Result<()> {
        self.revision += 1;
        let object = pod(number % self.pods, self.revision);
        let event = format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n");
        let sent = self.events.send(event.into()).await;
        sent.context("the informer has stopped")
    }
}

impl ListerWatcher for MemorySource {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let body: ByteStream = stream::iter([Ok(self.list.clone())]).boxed();
        future::ok(body.into()).boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let body: ByteStream = match self.events.lock().take() {
            Some(events) => stream::unfold(events, async |mut events| {
                let event = events.recv().await?;
                Some((Ok(event), events))
            })
            .boxed(),
            None => stream::pending().boxed(),
        };
        future::ok(body.into()).boxed()
    }

    fn description(&self) -> String {
        "pods in memory".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_twenty_characters_and_differ() {
        let name = |number| pod(number, 1)[21..41].to_owned();
        assert_eq!(name(0), "00000000000000000000");
        let names: std::collections::BTreeSet<_> = (0..10_000).map(name).collect();
        assert_eq!(names.len(), 10_000);
    }
}
