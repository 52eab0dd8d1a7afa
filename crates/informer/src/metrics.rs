//! Figures of informers, reflectors and work queues, for whoever collects them.
//!
//! A program gives its [`Metrics`] to a builder: to one informer
//! ([`Builder::metrics`](crate::shared_informer::Builder::metrics)), to all informers of a factory, to
//! a reflector of its own, to a work queue. Nothing is global, and nothing is measured for what was
//! given none: each place that could measure looks once whether anybody wants it.
//!
//! What can be read when somebody asks (lengths, sizes, ages, totals) is not pushed: a sampler reads it
//! then, without a lock that an informer holds while it works. What would be gone by then (durations,
//! counts of what happened) is told as it happens, as an [`Observed`] or a [`WorkQueueObserved`].
//!
//! The figures of an informer end with it: it drops its [`InformerMetrics`] before
//! [`Controller::run`](crate::controller::Controller::run) returns, and a sampler has nothing to say
//! from then on. An implementation that takes its series out of its registry in `Drop` leaks no label.
//!
//! With feature `prometheus` there is one ready made, `metrics::Prometheus`.
//!
//! All times are tokio's, so a test in paused time gets exact figures. Nothing compares the clocks of
//! two machines.

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

/// Collects figures; given to builders, and shared by all that were given it.
///
/// Both methods are called once per informer or queue, when it is made, and may decline with `None`,
/// which is what they do by default.
#[doc(alias = "MetricsProvider")]
#[doc(alias = "InformerMetricsProvider")]
#[doc(alias = "SetProvider")]
#[doc(alias = "SetInformerMetricsProvider")]
pub trait Metrics: Send + Sync + 'static {
    /// An informer is made, or a reflector that stands alone. What is returned hears what happens in
    /// it and is dropped with it; the sampler says, until then, how it stands.
    ///
    /// Two informers may have the same identity.
    fn informer(
        &self,
        identity: &InformerIdentity,
        sampler: InformerSampler,
    ) -> Option<Box<dyn InformerMetrics>> {
        let _ = (identity, sampler);
        None
    }

    /// A work queue is made. What is returned is dropped with the queue's last handle and item, which
    /// may happen inside [`WorkQueueSampler::sample`]: hold no lock there that `Drop` takes.
    fn work_queue(
        &self,
        name: &Arc<str>,
        sampler: WorkQueueSampler,
    ) -> Option<Box<dyn WorkQueueMetrics>> {
        let _ = (name, sampler);
        None
    }
}

/// Hears what happens in one informer, from all of its tasks.
pub trait InformerMetrics: Send + Sync {
    /// Something happened. Called by the informer's own tasks, so it must not block; if it panics, the
    /// figure is lost and the informer goes on.
    fn observe(&self, observed: Observed);
}

/// Hears what happens in one work queue.
pub trait WorkQueueMetrics: Send + Sync {
    /// Something happened. Called by whoever uses the queue, after its lock was released; if it panics,
    /// the figure is lost and the queue goes on.
    fn observe(&self, observed: WorkQueueObserved);
}

/// Which informer figures belong to. Every part but the name is of a set that the cluster bounds, and
/// names come from the program.
#[doc(alias = "InformerNameAndResource")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct InformerIdentity {
    /// The informer's name, as it was set; otherwise kind and scope, such as `pods in shop`.
    pub name: Arc<str>,
    /// The group of its kind; empty for the core group.
    pub group: String,
    /// The version of its kind.
    pub version: String,
    /// The plural name of its kind.
    pub resource: String,
    /// The namespaces that it lists, at most three by name: `shop`, `a, b, c and 2 more`; empty for all.
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

/// What happened in an informer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observed {
    /// The source is about to be listed, and not for the first time.
    Relist(RelistReason),
    /// A list has ended, with all its pages and what it was repeated for at once.
    List {
        /// From the first request until the store had accepted it, or until it was given up.
        took: Duration,
        /// How many objects it had brought by then.
        items: usize,
        /// Whether the store has accepted it.
        accepted: bool,
    },
    /// The server has accepted a watch.
    WatchOpened,
    /// A watch that had been opened has ended.
    WatchEnded {
        /// Since it was asked for.
        open_for: Duration,
        /// How many events it brought, bookmarks included.
        events: u64,
        /// Whether it ended within a second without any, which no healthy server does.
        short: bool,
    },
    /// A watch has brought an event.
    Event(WatchEvent),
    /// A request failed, a stream broke off, or the store did not take what it brought.
    Failed(Class),
    /// Something that the server sent could not be kept as it was; all else goes on.
    Skipped(Skipped),
    /// The cache was compared with the server, as of one source.
    Checked(Checked),
    /// A batch was applied to the store and handed to the handlers' buffers.
    Batch {
        /// How many changes the queue handed out; a list counts as one where it is one message.
        changes: usize,
        /// How long applying and handing on took.
        took: Duration,
        /// How old the oldest of them was when readers could see it, counted from the moment when its
        /// bytes were read from the watch: time in the channel, in the queue and in the store. Unset if
        /// none came from a watch. What the server and the network took is not part of it.
        lag: Option<Duration>,
    },
    /// Handlers are to be told of changes in the cache, once each whatever the number of handlers; what
    /// a list or a resync brings back as it was does not count.
    Told(Told),
}

/// Why a source is listed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RelistReason {
    /// The list before failed.
    ListFailed,
    /// The watch's revision was too old for the server.
    Expired,
    /// The server has gone back in time: [`Class::WentBack`], or it does not know the last revision.
    WentBack,
    /// The watch was not opened.
    WatchRefused,
    /// The watch ended within a second without an event.
    VeryShortWatch,
    /// What the watch sent could not be read.
    Unreadable,
    /// The store did not take what the watch sent.
    StoreRefused,
    /// The server ended the watch with another error.
    WatchFailed,
    /// A consistency check has found that the cache differs from the server.
    Inconsistent,
    /// The definition of the kind is there again, or has changed, after the server did not know the
    /// kind. Only of informers of a factory that follows definitions.
    ServedAgain,
}

impl RelistReason {
    /// All of them.
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

    /// For a label: `list_failed`.
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

    /// Why a list follows a watch that ended with an error of this class.
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

    /// Why a list follows a watch that was refused with an error of this class.
    pub(crate) fn after_refusal(class: Class) -> Self {
        match class {
            Class::Expired | Class::TooLargeResourceVersion => Self::Expired,
            _ => Self::WatchRefused,
        }
    }
}

/// The events of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WatchEvent {
    /// An object is new.
    Added,
    /// An object has changed.
    Modified,
    /// An object is gone.
    Deleted,
    /// Nothing happened up to a revision.
    Bookmark,
    /// The server says why it ends the watch.
    Error,
    /// A type that nobody knows.
    Unknown,
}

impl WatchEvent {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Added,
        Self::Modified,
        Self::Deleted,
        Self::Bookmark,
        Self::Error,
        Self::Unknown,
    ];

    /// For a label: `added`.
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

/// Why something was not kept as the server sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Skipped {
    /// It does not decode, or the transform failed. If it has a name, it is kept as broken.
    Undecodable,
    /// The queue's key function had no key for it.
    Keyless,
    /// An event of a type that nobody knows.
    UnknownEvent,
    /// An object of another kind than was asked for.
    OtherKind,
    /// It was changed in the cache afterwards, which the mutation detector noticed.
    Mutated,
}

impl Skipped {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Undecodable,
        Self::Keyless,
        Self::UnknownEvent,
        Self::OtherKind,
        Self::Mutated,
    ];

    /// For a label: `undecodable`.
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

/// How a consistency check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Checked {
    /// Cache and server have the same.
    Same,
    /// They don't.
    Different,
    /// The server did not answer with the state that the cache has.
    Failed,
}

impl Checked {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Same, Self::Different, Self::Failed];

    /// For a label: `same`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Failed => "failed",
        }
    }
}

/// How many changes of the cache handlers are to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// New objects.
    pub added: u64,
    /// Objects with another state.
    pub updated: u64,
    /// Objects that are gone.
    pub deleted: u64,
}

/// What happened in a work queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkQueueObserved {
    /// An item was handed to a worker, so long after it was first added since it was last handed out.
    Queued(Duration),
    /// A worker has had an item for so long, and has said its verdict.
    Worked(Duration),
}
