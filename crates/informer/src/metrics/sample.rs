//! Samplers: read the current values of an informer or a work queue on request.
//!
//! Guarantees: a sampler keeps no cache and no task alive, and returns `None` once its informer has ended. A sample
//! holds no lock for long: the values of an index are counted on a snapshot.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use crate::{
    object::ResourceVersion,
    status::{Status, StatusReader},
};

/// The current values of an informer.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InformerSample {
    /// The status: activity and progress of each source, broken objects, and failures of index functions.
    pub status: Status,
    /// Number of changes in the channel from the reflectors and in the queue; a list counts as one.
    pub queued: usize,
    /// The values of the cache; `None` for a standalone reflector.
    pub store: Option<StoreSample>,
    /// The values of the handlers and subscriptions, in the order of registration.
    pub handlers: Vec<HandlerSample>,
}

/// The current values of a cache.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreSample {
    /// Number of objects, without broken objects.
    pub items: usize,
    /// Bytes of JSON that the server sent for the objects, or that they took in the file of a warm start.
    ///
    /// The value costs nothing to measure. In memory, a decoded object takes more, and an object that a transform
    /// has pruned may take far less.
    pub wire_bytes: u64,
    /// Memory of the objects with their handles, in bytes.
    ///
    /// The number is exact for packed objects. For decoded objects it is the heap memory allocated while
    /// decoding, within a few percent for Kubernetes' own types, and less exact for types that convert
    /// decoded values, such as untagged enums. Fields that a transform drops are included. Objects that were
    /// not received as JSON, and lazy objects that have been read, count without their heap memory. Indices,
    /// the tree of names and the allocator's overhead are not included.
    pub rest_bytes: u64,
    /// Bytes of the compression dictionaries and of the samples for the next dictionary. Compression buffers,
    /// some 200 KB per thread that packs, are not included.
    pub dictionary_bytes: u64,
    /// The revision up to which the cache has all changes of the first source.
    pub revision: ResourceVersion,
    /// The indices, without the index by namespace, in the order in which they were added.
    pub indices: Vec<IndexSample>,
}

/// The size of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexSample {
    /// Name of the index.
    pub name: Arc<str>,
    /// Number of different values.
    pub values: usize,
    /// Number of entries; each entry is a value and an object.
    pub entries: usize,
}

/// The backlog and the panics of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerSample {
    /// Name of the handler.
    pub name: Arc<str>,
    /// Number of notifications that wait for the handler, including the one in progress; a list counts as
    /// one.
    pub depth: usize,
    /// Time for which the oldest notification has waited; zero if there is none.
    pub lag: Duration,
    /// Number of panics of the handler.
    pub panics: u64,
}

/// The current values of a work queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkQueueSample {
    /// Number of items that wait for a worker, including items in work that were added again.
    pub depth: usize,
    /// Number of delayed items.
    pub delayed: usize,
    /// Total number of accepted items; adding an item that is already queued does not count.
    pub adds: u64,
    /// Total number of additions with a delay, by the limiter or by the program.
    pub retries: u64,
    /// Sum of the times for which the items in work have been processed.
    pub unfinished: Duration,
    /// The longest time for which an item in work has been processed.
    pub longest_running: Duration,
}

/// Reads the current values of an informer until it ends.
#[derive(Clone, Debug)]
pub struct InformerSampler(Weak<dyn Sampled>);

/// Reads the current values of a work queue until it is dropped.
#[derive(Clone, Debug)]
pub struct WorkQueueSampler(Weak<dyn SampledWorkQueue>);

/// The state of an informer or a reflector that an [`InformerSampler`] reads.
pub(crate) trait Sampled: Send + Sync {
    fn sample(&self) -> InformerSample;
}

/// The state of a work queue that a [`WorkQueueSampler`] reads.
pub(crate) trait SampledWorkQueue: Send + Sync {
    fn sample(&self) -> WorkQueueSample;
}

/// Samples a standalone reflector, which has only a status.
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

    /// Returns the informer's current values; `None` when the informer has ended.
    ///
    /// The call reads all objects and indices once, which takes some milliseconds per 100,000 objects.
    pub fn sample(&self) -> Option<InformerSample> {
        Some(self.0.upgrade()?.sample())
    }

    /// Returns whether the informer has ended.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl WorkQueueSampler {
    pub(crate) fn new(sampled: Weak<dyn SampledWorkQueue>) -> Self {
        Self(sampled)
    }

    /// Returns the queue's current values; `None` when the queue was dropped.
    pub fn sample(&self) -> Option<WorkQueueSample> {
        Some(self.0.upgrade()?.sample())
    }

    /// Returns whether the queue was dropped.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}
