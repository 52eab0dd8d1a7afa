//! Defines samplers, through which a metrics collector reads the current values of an informer or a work
//! queue.
//!
//! Guarantees: a sampler does not keep its informer or queue alive, and returns `None` after the informer or
//! queue has ended. Objects and indices are counted in a snapshot, without a lock.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use crate::{
    object::ResourceVersion,
    status::{Status, StatusReader},
};

/// The current metric values of an informer: its status, queue length, cache and handlers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InformerSample {
    /// Status of the informer. It contains the progress of each reflector, decode errors and index function
    /// errors.
    pub status: Status,
    /// Number of changes in the channel from the reflectors and in the queue.
    ///
    /// A list counts as one change. In a [`DeltaFifo`](crate::queue::DeltaFifo) queue, it counts as one
    /// change per object.
    pub queued: usize,
    /// The current values of the cache; `None` for a standalone reflector.
    pub store: Option<StoreSample>,
    /// The current values of the handlers and subscriptions, in the order of their registration.
    pub handlers: Vec<HandlerSample>,
}

/// The current size of a cache and of its indices, and the revision of the cache.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreSample {
    /// Number of objects in the cache. The cache also stores objects that failed to decode, but this number
    /// does not include them.
    pub items: usize,
    /// Sum of [`Object::wire_bytes`](crate::object::Object::wire_bytes) over the objects in the cache.
    ///
    /// The sum is the number of bytes that the server sent for the objects, in JSON or protobuf.
    /// [`rest_bytes`](Self::rest_bytes) is the memory that the objects use in the cache.
    pub wire_bytes: u64,
    /// Estimated memory in bytes that the objects and their [`Object`](crate::object::Object) handles use.
    ///
    /// - The number is exact for packed objects, which the cache stores as compressed bytes.
    /// - For objects that the cache stores decoded, the decoder counts the heap memory. The number is within
    ///   a few percent for Kubernetes' own types. It is less exact for types that convert decoded values,
    ///   such as untagged enums.
    /// - The decoder counts before the transform runs. Fields that the transform drops are therefore
    ///   included.
    /// - The heap memory is not included for objects that the program created with `Object::new`.
    /// - A lazy object is stored as bytes until its first read, and decoded after it. The heap memory of the
    ///   decoded object is not included.
    /// - Indices, the map from names to objects and the allocator's overhead are not included.
    pub rest_bytes: u64,
    /// Size in bytes of the compression dictionaries and of the samples for the next dictionary.
    ///
    /// A dictionary consists of the encoded bytes of sampled objects.
    ///
    /// The size does not include the buffers for compression, which use about 200 KB per thread that
    /// compresses objects.
    pub dictionary_bytes: u64,
    /// Revision up to which the cache contains all changes.
    ///
    /// If the informer has several reflectors, such as one per namespace, this is the revision of the first
    /// one in [`Status::sources`].
    pub revision: ResourceVersion,
    /// The sizes of the indices, in the order in which the indices were added. The built-in index by
    /// namespace is not included.
    pub indices: Vec<IndexSample>,
}

/// The size of one index of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexSample {
    /// Name of the index.
    pub name: Arc<str>,
    /// Number of different values in the index.
    pub values: usize,
    /// Number of entries in the index. Each entry is a pair of a value and an object.
    pub entries: usize,
}

/// The backlog and the number of panics of one handler or subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerSample {
    /// Name of the handler.
    pub name: Arc<str>,
    /// Number of notifications that the handler has not handled completely, including the notification in
    /// progress. A list counts as one notification.
    pub depth: usize,
    /// Age of the oldest notification that the handler has not handled completely; zero if there is none.
    ///
    /// The age begins when the cache has applied the notification's change.
    pub lag: Duration,
    /// Number of panics of the handler since its registration.
    pub panics: u64,
}

/// The current metric values of a work queue: its lengths, totals and processing times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkQueueSample {
    /// Number of items that wait for a worker. Items that were added again while a worker processes them are
    /// included.
    pub depth: usize,
    /// Number of items that will be added to the queue after a delay.
    pub delayed: usize,
    /// Total number of times that the queue has accepted an item. An addition of an item that is already
    /// queued does not count.
    pub adds: u64,
    /// Total number of additions with a delay, including the additions that the rate limiter delays.
    pub retries: u64,
    /// Sum, over all workers, of the time for which the worker has been processing its current item.
    pub unfinished: Duration,
    /// Longest time for which any worker has been processing its current item.
    pub longest_running: Duration,
}

/// Reads the current values of an informer, until the informer ends.
#[derive(Clone, Debug)]
pub struct InformerSampler(Weak<dyn Sampled>);

/// Reads the current values of a work queue, until the queue is dropped.
#[derive(Clone, Debug)]
pub struct WorkQueueSampler(Weak<dyn SampledWorkQueue>);

/// Provides the values of an informer or a standalone reflector for an [`InformerSampler`].
pub(crate) trait Sampled: Send + Sync {
    fn sample(&self) -> InformerSample;
}

/// Provides the values of a work queue for a [`WorkQueueSampler`].
pub(crate) trait SampledWorkQueue: Send + Sync {
    fn sample(&self) -> WorkQueueSample;
}

/// Provides only the status of a standalone reflector, which has no cache and no handlers.
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

    /// Returns the current values of the informer; `None` after the informer has ended.
    ///
    /// The call visits all objects and indices once, which takes some milliseconds per 100,000 objects.
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

    /// Returns the current values of the queue; `None` after the queue was dropped.
    pub fn sample(&self) -> Option<WorkQueueSample> {
        Some(self.0.upgrade()?.sample())
    }

    /// Returns whether the queue was dropped.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}
