//! Collects an informer's values for the metrics: status, queue length, handler buffers and cache memory.
//!
//! The module sends no values to a metrics collector.

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

/// Handles through which the metrics read the values of an informer.
pub(super) struct Figures<K> {
    pub(super) indexer: Indexer<K>,
    pub(super) status: StatusReader,
    pub(super) roster: Arc<Roster<K>>,
    /// Number of changes in the queue.
    pub(super) queued: Arc<AtomicUsize>,
    /// Used only to count the changes in the channel from the reflectors to the queue.
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
    /// Returns the memory of the cache in bytes, and the number of pending changes.
    ///
    /// The memory includes the objects and the compression dictionaries. For indices, the result contains the
    /// number of entries, not their memory. The pending changes are the changes that have not reached the
    /// informer's queue ([`Memory::arriving`]), and the notifications that handlers have not completely
    /// processed ([`Memory::waiting`]). [`Memory`] documents which values are exact.
    ///
    /// The method visits every object and index once, which takes some milliseconds per 100,000 objects. It
    /// blocks neither the informer nor readers, and can also be called after the informer has ended.
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

/// Returns the number of changes in the channel from the reflectors to the queue.
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
