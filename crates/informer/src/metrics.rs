//! Metrics of informers, reflectors and work queues, for a collector of the program's choice.
//!
//! A program passes its [`Metrics`] to the builder of one informer
//! ([`Builder::metrics`](crate::shared_informer::Builder::metrics)), of a factory for all its informers, of a
//! standalone reflector, or of a work queue. There is no global collector. Without a collector nothing is
//! measured.
//!
//! Current values (lengths, sizes, ages, totals) are read by a sampler on request, without a lock that an informer
//! holds while it works. Events (durations, counts) are reported when they happen, as an [`Observed`] or a
//! [`WorkQueueObserved`].
//!
//! The metrics of an informer end with the informer: it drops its [`InformerMetrics`] before
//! [`Controller::run`](crate::controller::Controller::run) returns, and its sampler then returns `None`. An
//! implementation that removes its series in `Drop` leaves no series behind.
//!
//! Feature `prometheus` adds an implementation, `metrics::Prometheus`.
//!
//! All times are tokio's, so a test in paused time gets exact values. Clocks of different machines are never
//! compared.

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

/// A collector of metrics. Builders receive it, and all their informers and queues share it.
///
/// Each method is called once when an informer or a queue is created. It returns `None`, the default, to
/// disable the metrics of that informer or queue.
#[doc(alias = "MetricsProvider")]
#[doc(alias = "InformerMetricsProvider")]
#[doc(alias = "SetProvider")]
#[doc(alias = "SetInformerMetricsProvider")]
pub trait Metrics: Send + Sync + 'static {
    /// Called when an informer or a standalone reflector is created.
    ///
    /// The returned value receives the events of the informer, and is dropped when the informer ends. Until
    /// then the sampler returns the informer's current values. Two informers may have the same identity.
    fn informer(
        &self,
        identity: &InformerIdentity,
        sampler: InformerSampler,
    ) -> Option<Box<dyn InformerMetrics>> {
        let _ = (identity, sampler);
        None
    }

    /// Called when a work queue is created.
    ///
    /// The returned value is dropped with the queue's last handle and item. This may happen inside
    /// [`WorkQueueSampler::sample`], so don't call `sample` while you hold a lock that the value's `Drop`
    /// acquires.
    fn work_queue(
        &self,
        name: &Arc<str>,
        sampler: WorkQueueSampler,
    ) -> Option<Box<dyn WorkQueueMetrics>> {
        let _ = (name, sampler);
        None
    }
}

/// Receives the events of one informer, from all its tasks.
pub trait InformerMetrics: Send + Sync {
    /// Called for each event by the informer's tasks, so it must not block. If it panics, the event is lost and the
    /// informer continues.
    fn observe(&self, observed: Observed);
}

/// Receives the events of one work queue.
pub trait WorkQueueMetrics: Send + Sync {
    /// Called for each event by the task that uses the queue, without the queue's lock. If it panics, the event is
    /// lost and the queue continues.
    fn observe(&self, observed: WorkQueueObserved);
}

/// Identifies the informer of a metric. The program chooses the name, and the cluster bounds the values of all other
/// fields.
#[doc(alias = "InformerNameAndResource")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct InformerIdentity {
    /// The configured name of the informer; by default kind and scope, such as `pods in shop`.
    pub name: Arc<str>,
    /// The group of the informer's kind; empty for the core group.
    pub group: String,
    /// The version of the informer's kind.
    pub version: String,
    /// The plural name of the informer's kind.
    pub resource: String,
    /// The listed namespaces, at most three by name: `shop`, `a, b, c and 2 more`; empty for all namespaces.
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

/// An event in an informer, to be counted or measured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observed {
    /// A source is listed again, for this reason.
    Relist(RelistReason),
    /// A list has completed or failed, including all its pages and immediate repetitions.
    List {
        /// Time from the first request until the store accepted the list, or the list failed.
        took: Duration,
        /// Number of objects received.
        items: usize,
        /// Whether the store accepted the list.
        accepted: bool,
    },
    /// The server has accepted a watch.
    WatchOpened,
    /// An open watch has ended.
    WatchEnded {
        /// Time since the watch was requested.
        open_for: Duration,
        /// Number of events received, including bookmarks.
        events: u64,
        /// Whether the watch ended within a second without an event, which a healthy server does not cause.
        short: bool,
    },
    /// A watch has delivered an event.
    Event(WatchEvent),
    /// A request failed, a response stream broke off, or the store did not accept the data.
    Failed(Class),
    /// An object or an event could not be stored as the server sent it. Other objects are not affected.
    Skipped(Skipped),
    /// A consistency check compared the cache with the server, for one source.
    Checked(Checked),
    /// A batch was applied to the store and passed to the handlers' buffers.
    Batch {
        /// Number of changes from the queue; a list counts as one if the queue stores it as one.
        changes: usize,
        /// Time to apply the batch and to pass it to the handlers' buffers.
        took: Duration,
        /// Time from the receipt of the oldest change from the watch until the batch was visible to readers.
        ///
        /// The value includes the time in the channel, the queue and the store, but not the time in the
        /// server and the network. `None` if no change came from a watch.
        lag: Option<Duration>,
    },
    /// Changes in the cache were passed to handlers. Each change counts once, for any number of handlers.
    /// Objects that a list or a resync delivers unchanged do not count.
    Told(Told),
}

/// The reason why a source is listed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RelistReason {
    /// The previous list failed.
    ListFailed,
    /// The watch's revision was too old for the server.
    Expired,
    /// The server was restored from a backup: [`Class::WentBack`], or it does not know the last revision.
    WentBack,
    /// The watch could not be opened.
    WatchRefused,
    /// The watch ended within a second without an event.
    VeryShortWatch,
    /// The watch sent invalid data.
    Unreadable,
    /// The store did not accept an event of the watch.
    StoreRefused,
    /// The server ended the watch with another error.
    WatchFailed,
    /// A consistency check found that the cache differs from the server.
    Inconsistent,
    /// The kind is served again after the server did not serve it: its definition exists again, or has
    /// changed. Only for informers of a factory that follows definitions.
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

    /// Returns the reason as a label value, such as `list_failed`.
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

    /// Returns the reason for the list after a watch ended with an error of this class.
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

    /// Returns the reason for the list after the server rejected a watch with an error of this class.
    pub(crate) fn after_refusal(class: Class) -> Self {
        match class {
            Class::Expired | Class::TooLargeResourceVersion => Self::Expired,
            _ => Self::WatchRefused,
        }
    }
}

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WatchEvent {
    /// An object was added.
    Added,
    /// An object was changed.
    Modified,
    /// An object was deleted.
    Deleted,
    /// The server confirms that it has sent all events up to a revision.
    Bookmark,
    /// The server reports the error with which it ends the watch.
    Error,
    /// The type is unknown to this library.
    Unknown,
}

impl WatchEvent {
    /// All types.
    pub const ALL: [Self; 6] = [
        Self::Added,
        Self::Modified,
        Self::Deleted,
        Self::Bookmark,
        Self::Error,
        Self::Unknown,
    ];

    /// Returns the type as a label value, such as `added`.
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

/// The reason why an object or an event was not stored as the server sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Skipped {
    /// The object does not decode, or its transform failed. An object with a name is stored as broken.
    Undecodable,
    /// The queue's key function returned an error for the object.
    Keyless,
    /// The event has an unknown type.
    UnknownEvent,
    /// The object is of another kind than requested.
    OtherKind,
    /// The program modified the object in the cache, and the mutation detector noticed it.
    Mutated,
}

impl Skipped {
    /// All reasons.
    pub const ALL: [Self; 5] = [
        Self::Undecodable,
        Self::Keyless,
        Self::UnknownEvent,
        Self::OtherKind,
        Self::Mutated,
    ];

    /// Returns the reason as a label value, such as `undecodable`.
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

/// The result of a consistency check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Checked {
    /// Cache and server have the same objects.
    Same,
    /// Cache and server differ.
    Different,
    /// The check failed: the server did not return the state at the cache's revision.
    Failed,
}

impl Checked {
    /// All results.
    pub const ALL: [Self; 3] = [Self::Same, Self::Different, Self::Failed];

    /// Returns the result as a label value, such as `same`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Failed => "failed",
        }
    }
}

/// Numbers of changes in the cache that were passed to handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// Number of added objects.
    pub added: u64,
    /// Number of updated objects.
    pub updated: u64,
    /// Number of deleted objects.
    pub deleted: u64,
}

/// An event in a work queue, with a measured duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkQueueObserved {
    /// A worker received an item, which had waited this long since it was first added.
    Queued(Duration),
    /// A worker ended the work on an item, which it had processed for this long.
    Worked(Duration),
}
