//! How an informer or a work queue stands, read when somebody asks.
//!
//! Guarantees: a sampler keeps nothing alive, neither a cache nor a task, and has nothing to say once
//! its informer has ended. Sampling takes no lock across anything long: what takes time, the counting
//! of an index's values, is done on a snapshot.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use crate::{
    object::ResourceVersion,
    status::{Status, StatusReader},
};

/// How an informer stands.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InformerSample {
    /// What it is doing, how far each source has come and how long ago it was heard of, what is
    /// broken, how often index functions failed.
    pub status: Status,
    /// How many changes wait for the store, in the channel from the reflectors and in the queue; a list
    /// counts as one.
    pub queued: usize,
    /// What is in the cache; `None` for a reflector that stands alone.
    pub store: Option<StoreSample>,
    /// Handlers and subscriptions, in the order in which they came.
    pub handlers: Vec<HandlerSample>,
}

/// What is in a cache.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreSample {
    /// How many objects, broken ones not counted.
    pub items: usize,
    /// What the server sent for them (or what they took in the file of a warm start), in bytes, as JSON. It is the one size that is known for nothing:
    /// in memory, a decoded object takes more, and one that a transform has pruned may take far less.
    pub wire_bytes: u64,
    /// What the objects take at rest, in bytes, with their handles: exact of packed bodies, and of decoded
    /// ones what was asked of the allocator for them as far as decoding can see: a few hundredths more or
    /// less for Kubernetes' own types, more for types that decode into something else first, as enums
    /// without a tag do. It is what came out of the JSON, so what a transform has dropped since counts, and
    /// of objects that did not come as JSON, or were kept lazily and have been read, only what they take
    /// without what they point to. Indices, the
    /// tree of names and what the allocator adds are not in it.
    pub rest_bytes: u64,
    /// What packs the objects: dictionaries, and what the next one is learnt from, in bytes. Buffers for
    /// compression, some 200 KB for each thread that packs, are not in it.
    pub dictionary_bytes: u64,
    /// Up to which revision everything of the first source is in it.
    pub revision: ResourceVersion,
    /// Its indices but the one by namespace, in the order in which they were added.
    pub indices: Vec<IndexSample>,
}

/// How large an index is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexSample {
    /// Its name.
    pub name: Arc<str>,
    /// How many different values it has.
    pub values: usize,
    /// How many pairs of a value and an object.
    pub entries: usize,
}

/// How far a handler is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerSample {
    /// Its name.
    pub name: Arc<str>,
    /// How many notifications wait for it, with the one it is hearing; a list counts as one.
    pub depth: usize,
    /// For how long the oldest of them has been waiting; zero if there is none.
    pub lag: Duration,
    /// How often it has panicked.
    pub panics: u64,
}

/// How a work queue stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkQueueSample {
    /// How many items wait for a worker, those included that were added again while they are in work.
    pub depth: usize,
    /// How many items wait for their time to come.
    pub delayed: usize,
    /// How many items were accepted, ever: an item that was waiting already does not count.
    pub adds: u64,
    /// How often an item was added with a delay, ever, by the limiter's word or by yours.
    pub retries: u64,
    /// How long the items in work have been so, together.
    pub unfinished: Duration,
    /// How long the one that has been longest has been so.
    pub longest_running: Duration,
}

/// Reads how an informer stands, for as long as it lives.
#[derive(Clone, Debug)]
pub struct InformerSampler(Weak<dyn Sampled>);

/// Reads how a work queue stands, for as long as it lives.
#[derive(Clone, Debug)]
pub struct WorkQueueSampler(Weak<dyn SampledWorkQueue>);

/// What an [`InformerSampler`] looks at.
pub(crate) trait Sampled: Send + Sync {
    fn sample(&self) -> InformerSample;
}

/// What a [`WorkQueueSampler`] looks at.
pub(crate) trait SampledWorkQueue: Send + Sync {
    fn sample(&self) -> WorkQueueSample;
}

/// A reflector that stands alone has no more to tell than its status.
impl Sampled for StatusReader {
    fn sample(&self) -> InformerSample {
        InformerSample {
            status: self.get(),
            ..InformerSample::default()
        }
    }
}

impl InformerSampler {
    pub(crate) fn new(sampled: &Arc<dyn Sampled>) -> Self {
        Self(Arc::downgrade(sampled))
    }

    /// How the informer stands now; `None` when it has ended.
    ///
    /// Goes through the objects and each index once, so it takes some milliseconds per 100,000 of them.
    pub fn sample(&self) -> Option<InformerSample> {
        Some(self.0.upgrade()?.sample())
    }

    /// Whether there is nothing to sample any more.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl WorkQueueSampler {
    pub(crate) fn new(sampled: Weak<dyn SampledWorkQueue>) -> Self {
        Self(sampled)
    }

    /// How the queue stands now; `None` when nobody holds it any more.
    pub fn sample(&self) -> Option<WorkQueueSample> {
        Some(self.0.upgrade()?.sample())
    }

    /// Whether there is nothing to sample any more.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}
