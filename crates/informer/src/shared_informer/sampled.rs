//! How an informer stands, for whoever collects its figures.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::mpsc;

use super::roster::Roster;

use crate::{
    indexer::Indexer,
    metrics::{HandlerSample, InformerSample, Sampled},
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
        let channel = self.channel.upgrade();
        let arriving = channel.map_or(0, |channel| channel.max_capacity() - channel.capacity());
        InformerSample {
            status: self.status.get(),
            queued: self.queued.load(Ordering::Relaxed) + arriving,
            store: Some(self.indexer.snapshot().size()),
            handlers: self.roster.status().into_iter().map(handler).collect(),
        }
    }
}

fn handler(status: HandlerStatus) -> HandlerSample {
    HandlerSample {
        name: status.name,
        depth: status.depth,
        lag: status.lag,
        panics: status.panics,
    }
}
