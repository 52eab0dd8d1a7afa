//! Defines the metrics of informers, reflectors and work queues, for a collector that the program provides.
//!
//! A collector is an implementation of [`Metrics`]. A program passes it to the builder of an informer
//! ([`Builder::metrics`](crate::shared_informer::Builder::metrics)), of a factory, of a standalone reflector
//! or of a work queue. The collector of a factory receives the metrics of all its informers. There is no
//! global collector. Without a collector, nothing is measured.
//!
//! The collector reads current values (lengths, sizes, ages, totals) through a sampler. The sampler counts
//! objects and indices in a snapshot of the cache, and therefore does not delay the informer. Events are
//! reported to the collector when they happen, as an [`Observed`] or a [`WorkQueueObserved`].
//!
//! The metrics of an informer end with the informer. The informer drops its [`InformerMetrics`] before
//! [`Controller::run`](crate::controller::Controller::run) returns, and the informer's sampler then returns
//! `None`. A collector should remove the informer's series in the `Drop` implementation of its
//! [`InformerMetrics`].
//!
//! The feature `prometheus` adds a collector, `metrics::Prometheus`.
//!
//! All times are measured with tokio's clock, so a test with paused time measures exact values. Clocks of
//! different machines are never compared.

mod memory;
mod meter;
#[cfg(feature = "prometheus")]
mod prometheus;
mod sample;

pub use self::memory::Memory;
#[cfg(feature = "prometheus")]
pub use self::prometheus::Prometheus;
pub use self::sample::{
    HandlerSample, IndexSample, InformerSample, InformerSampler, StoreSample, WorkQueueSample,
    WorkQueueSampler,
};
pub(crate) use self::{
    meter::{Meter, guarded},
    sample::{Sampled, SampledWorkQueue},
};

use std::{sync::Arc, time::Duration};

use kube_core::Resource;

use crate::transport::Class;

/// A collector of metrics. Informers and queues receive it from their builders.
///
/// [`informer`](Self::informer) is called once for each new informer or standalone reflector, and
/// [`work_queue`](Self::work_queue) once for each new work queue. If the called method returns `None`, which
/// is the default, the new informer, reflector or queue has no metrics.
#[doc(alias = "MetricsProvider")]
#[doc(alias = "InformerMetricsProvider")]
#[doc(alias = "SetProvider")]
#[doc(alias = "SetInformerMetricsProvider")]
pub trait Metrics: Send + Sync + 'static {
    /// Returns the value that receives the [`Observed`] events of a new informer.
    ///
    /// The library calls this method when an informer or a standalone reflector is created. The returned
    /// value is dropped when the informer ends. Until then, `sampler` returns the current values of the
    /// informer. Several informers may have the same identity.
    fn informer(
        &self,
        identity: &InformerIdentity,
        sampler: InformerSampler,
    ) -> Option<Box<dyn InformerMetrics>> {
        let _ = (identity, sampler);
        None
    }

    /// Returns the value that receives the [`WorkQueueObserved`] events of a new work queue.
    ///
    /// The library calls this method when a work queue is created. The returned value is dropped after all
    /// handles of the queue, and all [`Item`](crate::workqueue::Item)s that workers hold, have been dropped.
    ///
    /// A running call of [`WorkQueueSampler::sample`] keeps the queue in memory. If all handles and items are
    /// dropped during this call, the call itself drops the returned value. To avoid a deadlock, don't call
    /// `sample` while you hold a lock that the `Drop` implementation of the returned value acquires.
    fn work_queue(
        &self,
        name: &Arc<str>,
        sampler: WorkQueueSampler,
    ) -> Option<Box<dyn WorkQueueMetrics>> {
        let _ = (name, sampler);
        None
    }
}

/// Receives the [`Observed`] events of one informer.
///
/// All tasks of the informer call [`observe`](Self::observe) on one shared `InformerMetrics` value.
pub trait InformerMetrics: Send + Sync {
    /// Receives one event. The informer's tasks call this method for each event, so it must not block.
    ///
    /// If the method panics, the event is lost and the informer continues.
    fn observe(&self, observed: Observed);
}

/// Receives the [`WorkQueueObserved`] events of one work queue.
///
/// All tasks that use the queue call [`observe`](Self::observe) on one shared `WorkQueueMetrics` value.
pub trait WorkQueueMetrics: Send + Sync {
    /// Receives one event. The task that uses the queue calls this method. The queue's lock is not held
    /// during the call.
    ///
    /// If the method panics, the event is lost and the queue continues.
    fn observe(&self, observed: WorkQueueObserved);
}

/// Identifies an informer in metrics. The fields are suitable as labels, because each field has few different
/// values in a program.
#[doc(alias = "InformerNameAndResource")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct InformerIdentity {
    /// The configured name of the informer. The default consists of kind and scope, such as `pods in shop`.
    pub name: Arc<str>,
    /// The API group of the informer's kind; empty for the core group.
    pub group: String,
    /// The API version of the informer's kind.
    pub version: String,
    /// The plural name of the informer's kind, such as `pods`.
    pub resource: String,
    /// The namespaces that the informer lists, such as `shop` or `a, b, c and 2 more`. The text contains at
    /// most three names. It is empty if the informer lists all namespaces.
    pub namespace: String,
}

impl InformerIdentity {
    pub(crate) fn of<K: Resource>(
        name: &Arc<str>,
        namespace: &str,
        dyntype: &K::DynamicType,
    ) -> Self {
        Self {
            name: Arc::clone(name),
            namespace: namespace.to_owned(),
            group: K::group(dyntype).into_owned(),
            version: K::version(dyntype).into_owned(),
            resource: K::plural(dyntype).into_owned(),
        }
    }
}

/// An event in an informer, which a collector counts or measures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observed {
    /// A reflector lists its objects again, for the given reason.
    Relist(RelistReason),
    /// A list has completed or failed. The event covers all pages of the list, and all retries that the
    /// reflector sends without a pause.
    List {
        /// Time from the first request of the list until the store accepted the list, or until the list
        /// failed.
        took: Duration,
        /// Number of objects received in all pages of the list.
        items: usize,
        /// Whether the store accepted the list; false if the list failed.
        accepted: bool,
    },
    /// The server has accepted a watch request.
    WatchOpened,
    /// An open watch has ended.
    WatchEnded {
        /// Time from the watch request until the end of the watch.
        open_for: Duration,
        /// Number of events received from the watch, including bookmarks.
        events: u64,
        /// Whether the watch ended within a second without an event. A healthy server does not end a watch so
        /// early.
        short: bool,
    },
    /// The informer received an event of this type from a watch.
    Event(WatchEvent),
    /// A request failed, a response ended early, or the store did not accept received data. The value is the
    /// class of the error.
    Failed(Class),
    /// A problem with one event or one object. The value is the reason. Other objects are not affected.
    ///
    /// Either the informer ignored the received event or object, or the cached object is
    /// [broken](crate::Object::broken), or the program modified the cached object.
    Skipped(Skipped),
    /// A consistency check has compared the cached objects of one reflector with the objects of the server.
    Checked(Checked),
    /// A batch of changes was applied to the store and passed to the buffers of the handlers.
    Batch {
        /// Number of changes in the batch. A list counts as one change, but a
        /// [`DeltaFifo`](crate::queue::DeltaFifo) queue splits it into one change per object.
        changes: usize,
        /// Time from the start of applying the batch until the batch was in the buffers of all handlers.
        took: Duration,
        /// Time from the receipt of the batch's oldest watch event until the batch was visible to readers.
        /// `None` if the batch contains no change from a watch.
        ///
        /// The time includes all delays inside the informer, but not those in the server and the network.
        lag: Option<Duration>,
    },
    /// Cached objects changed, and the changes are passed to the handlers. The value counts the changes by
    /// type.
    ///
    /// A change counts once, even if several handlers receive it. An unchanged object of a list or a resync
    /// does not count.
    Told(Told),
}

/// The reason why a reflector lists its objects again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RelistReason {
    /// The reflector's previous list failed.
    ListFailed,
    /// The server rejected the watch's revision as expired, or as newer than the server's data.
    Expired,
    /// The server was restored from a backup.
    ///
    /// Either the server sent an older revision than before ([`Class::WentBack`]), or a check found that the
    /// server has not reached the last received revision.
    WentBack,
    /// The server rejected the watch request.
    WatchRefused,
    /// The watch ended within a second without an event.
    VeryShortWatch,
    /// The watch sent data that violates the protocol.
    Unreadable,
    /// The store did not accept an event of the watch.
    StoreRefused,
    /// The watch ended with an error that no other reason describes.
    WatchFailed,
    /// A consistency check found that the cache differs from the server.
    Inconsistent,
    /// The server serves the kind again, because the kind's custom resource definition was created again or
    /// changed.
    ///
    /// This reason occurs only in a factory that watches custom resource definitions.
    ServedAgain,
}

impl RelistReason {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::ListFailed,
        Self::Expired,
        Self::WentBack,
        Self::WatchRefused,
        Self::VeryShortWatch,
        Self::Unreadable,
        Self::StoreRefused,
        Self::WatchFailed,
        Self::Inconsistent,
        Self::ServedAgain,
    ];

    /// Returns the reason as the value of a metric label, such as `list_failed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ListFailed => "list_failed",
            Self::Expired => "expired",
            Self::WentBack => "went_back",
            Self::WatchRefused => "watch_refused",
            Self::VeryShortWatch => "very_short_watch",
            Self::Unreadable => "unreadable",
            Self::StoreRefused => "store_refused",
            Self::WatchFailed => "watch_failed",
            Self::Inconsistent => "inconsistent",
            Self::ServedAgain => "served_again",
        }
    }

    /// Returns the reason for the list after a watch failed with this class of error.
    pub(crate) fn after_watch(class: Class) -> Self {
        match class {
            Class::Expired | Class::TooLargeResourceVersion => Self::Expired,
            Class::WentBack => Self::WentBack,
            Class::VeryShortWatch => Self::VeryShortWatch,
            Class::Protocol => Self::Unreadable,
            Class::Store => Self::StoreRefused,
            _ => Self::WatchFailed,
        }
    }

    /// Returns the reason for the list after a watch request was rejected with this class of error.
    pub(crate) fn after_refusal(class: Class) -> Self {
        match class {
            Class::Expired | Class::TooLargeResourceVersion => Self::Expired,
            _ => Self::WatchRefused,
        }
    }
}

/// The type of an event that a reflector has received from a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WatchEvent {
    /// The event reports an added object.
    Added,
    /// The event reports a changed object.
    Modified,
    /// The event reports a deleted object.
    Deleted,
    /// The event reports no change. It confirms that the server has sent all events up to a revision.
    Bookmark,
    /// The event contains an error. The server then ends the watch.
    Error,
    /// The type of the event is unknown to this library.
    Unknown,
}

impl WatchEvent {
    /// All types, in the order of their declaration.
    pub const ALL: [Self; 6] = [
        Self::Added,
        Self::Modified,
        Self::Deleted,
        Self::Bookmark,
        Self::Error,
        Self::Unknown,
    ];

    /// Returns the type as the value of a metric label, such as `added`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Bookmark => "bookmark",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }
}

/// The reason why the informer ignored a received event or object, or why the cached object is broken or
/// modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Skipped {
    /// The object failed to decode, or its transform failed.
    ///
    /// If the object has a name, the cache contains it as a broken object
    /// ([`Object::broken`](crate::Object::broken)).
    Undecodable,
    /// The key function of the informer's [`Queue`](crate::queue::Queue) failed for the object.
    Keyless,
    /// This library does not know the type of the event.
    UnknownEvent,
    /// The object is not of the requested kind.
    OtherKind,
    /// The program modified a cached object, which then differs from the object that the server sent. The
    /// mutation detector found the difference.
    Mutated,
}

impl Skipped {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 5] = [
        Self::Undecodable,
        Self::Keyless,
        Self::UnknownEvent,
        Self::OtherKind,
        Self::Mutated,
    ];

    /// Returns the reason as the value of a metric label, such as `undecodable`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::Keyless => "keyless",
            Self::UnknownEvent => "unknown_event",
            Self::OtherKind => "other_kind",
            Self::Mutated => "mutated",
        }
    }
}

/// The result of a consistency check, which compares the cached objects with the objects of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Checked {
    /// The cache and the server have the same objects.
    Same,
    /// The cache differs from the server.
    Different,
    /// The check failed, because the server did not return the objects at the revision of the cache.
    Failed,
}

impl Checked {
    /// All results, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Same, Self::Different, Self::Failed];

    /// Returns the result as the value of a metric label, such as `same`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Failed => "failed",
        }
    }
}

/// Counts the changed objects that were passed to handlers, by type of change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// Number of objects passed to handlers as added.
    pub added: u64,
    /// Number of objects passed to handlers as updated.
    pub updated: u64,
    /// Number of objects passed to handlers as deleted.
    pub deleted: u64,
}

/// An event in a work queue, with a measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkQueueObserved {
    /// A worker received an item. The value is the time for which the item waited in the queue.
    ///
    /// The time starts when the item is added, even if a worker still processes the item. For a delayed
    /// addition, the time starts at the end of the delay. Another addition of the waiting item does not
    /// restart the time.
    Queued(Duration),
    /// A worker finished an item. The value is the time from the receipt of the item to the end of its
    /// processing.
    Worked(Duration),
}
