//! How an informer stands, for whoever collects its figures.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::mpsc;

use super::{SharedInformer, roster::Roster};

use crate::{
    indexer::Indexer,
    metrics::{HandlerSample, InformerSample, Memory, Sampled},
    processor::HandlerStatus,
    reflector::Delta,
    status::StatusReader,
};

/// What is looked at. It is held by the informer's tasks, so that it goes with them, and the cache with
/// it.
pub(super) struct Figures<K> {
    pub(super) indexer: Indexer<K>,
    pub(super) status: StatusReader,
    pub(super) roster: Arc<Roster<K>>,
    /// Changes in the queue.
    pub(super) queued: Arc<AtomicUsize>,
    /// The channel to the queue, which is not kept open by being looked at.
    pub(super) channel: mpsc::WeakSender<Delta<K>>,
}

impl<K: Send + Sync + 'static> Sampled for Figures<K> {
    fn sample(&self) -> InformerSample {
        let arriving = arriving(&self.channel);
        InformerSample {
            status: self.status.get(),
            queued: self.queued.load(Ordering::Relaxed) + arriving,
            store: Some(self.indexer.snapshot().size()),
            handlers: self.roster.status().into_iter().map(handler).collect(),
        }
    }
}

impl<K> SharedInformer<K> {
    /// What the cache takes: objects at rest, what packs them, indices, and what waits before and behind
    /// it. [`Memory`] says what is exact of it.
    ///
    /// Goes through the objects and each index once, so it takes some milliseconds per 100,000 of them, and
    /// holds up neither the informer nor readers meanwhile. Can be asked for at any time, also after the
    /// informer has ended.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn example(pods: kube_informer::SharedInformer<Pod>) {
    /// println!("{}", pods.memory());
    /// # }
    /// ```
    pub fn memory(&self) -> Memory {
        let waiting = self.handlers().iter().map(|handler| handler.depth).sum();
        let store = self.shared.indexer.snapshot().size();
        Memory::new(&store, arriving(&self.shared.channel), waiting)
    }
}

/// Changes between the reflectors and the queue.
fn arriving<K>(channel: &mpsc::WeakSender<Delta<K>>) -> usize {
    let channel = channel.upgrade();
    channel.map_or(0, |channel| channel.max_capacity() - channel.capacity())
}

fn handler(status: HandlerStatus) -> HandlerSample {
    HandlerSample {
        name: status.name,
        depth: status.depth,
        lag: status.lag,
        panics: status.panics,
    }
}
