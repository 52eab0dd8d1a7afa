//! Lists and watches the objects of one kind and scope, and delivers every change to a store.
//!
//! A [`Reflector`] delivers [`Delta`]s to a [`ReflectorStore`] in order, one at a time. The reflector waits
//! until the store has accepted a change before it delivers the next one. A slow store therefore slows down
//! the watch and does not increase memory use. After a failure, the reflector pauses and retries. The module
//! has no queues, indices or handlers.
//!
//! An informer contains its reflectors. A standalone reflector updates an indexer, or a store that the
//! program implements, without a queue and handlers:
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::Pod;
//! # use kube_informer::{client::ListWatch, indexer::{self, Indexers}, reflector::Reflector};
//! # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace())?;
//! let reflector = Reflector::builder(ListWatch::<Pod>::new(client)).name("pods").into_indexer(writer);
//! let synced = reflector.wait_for_sync();
//! let running = tokio::spawn(reflector.run(async { tokio::signal::ctrl_c().await.unwrap() }));
//! synced.await?;
//! println!("{} pods", indexer.len());
//! # Ok(()) }
//! ```

mod backoff;
mod builder;
mod delta;
mod history;
mod list_steps;
mod machine;
mod meter;
mod not_served;
mod options;
mod probe;
mod reached;
mod relist_request;
mod report;
mod retry_budget;
mod rollback;
mod run;
mod settings;
mod store;
mod streaming;
mod timeouts;

pub(crate) use self::{
    backoff::Backoff,
    machine::PAGE_SIZE,
    not_served::NotServed,
    options::{RequestOptions, options, request_methods},
    probe::{probe_options, read_probe},
    reached::Reached,
    relist_request::{RelistRequest, RelistSignal},
    report::Reporter,
    settings::{Settings, named, settings_methods},
};
pub use self::{
    backoff::BackoffConfig,
    builder::ReflectorBuilder,
    delta::{Delta, DeltaKind, DeltaType},
    rollback::RollbackDetection,
    store::{ReflectorStore, StoreError},
    streaming::InitialList,
    timeouts::TimeoutConfig,
};

use std::{fmt, future::Future, sync::Arc};

use kube_core::Resource;
use serde::de::DeserializeOwned;

use crate::{
    decode::Decoder,
    metrics::RelistReason,
    object::{DecodeError, ObjectName, ResourceVersion, SourceId},
    status::{Activity, Difference, StatusReader, StatusWriter, WaitForSync},
    transport::{self, ListerWatcher},
};

/// A failure that a reflector or an informer reports to its error handler. The reflector continues after the
/// failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request failed, its response ended early, or the store rejected a change.
    #[error(transparent)]
    Transport(Arc<transport::Error>),
    /// An object failed to decode. If the name of the object is readable, the cache stores this error in
    /// place of the decoded object.
    #[error(transparent)]
    Decode(DecodeError),
    /// The queue's key function failed for an object. The object is not added to the queue.
    #[error("{object} has no key: {reason}")]
    Key {
        /// The name of the object.
        object: ObjectName,
        /// The text of the error that the key function returned.
        reason: String,
    },
    /// The process function failed for an object. The changes of the object are queued again if `retried` is
    /// true, and are dropped otherwise.
    ///
    /// The process function is the one set in a [`Config`](crate::controller::Config). A panic of the
    /// function counts as a failure.
    #[error("{object} was not processed{}: {reason}", if *retried { ", and is queued again" } else { "" })]
    Process {
        /// The key of the object in the queue.
        object: ObjectName,
        /// The text of the error that the process function returned, or a text which says that the function
        /// panicked.
        reason: String,
        /// Whether the changes of the object are queued again. If false, the changes are dropped.
        retried: bool,
    },
    /// The watch sent an event of an unknown type. The watch ends, and a list follows.
    #[error("unknown type of watch event: {0:?}")]
    UnknownEvent(String),
    /// An object in the cache was modified in place, although all handlers and readers share the object. This
    /// error is reported only with [`detect_mutations`](crate::shared_informer::Builder::detect_mutations).
    #[error(
        "{object} at revision {revision} was modified in the cache, which all handlers and readers share; modify a clone instead"
    )]
    Mutated {
        /// The name of the object that the program modified in the cache.
        object: ObjectName,
        /// The revision of the object that the program modified in the cache.
        revision: ResourceVersion,
    },
    /// A list or a watch sent an object whose kind is not the expected one. The object was skipped.
    #[error("received {}, expected {expected}", a_kind(found, object.as_ref()))]
    OtherKind {
        /// The API version and kind of the expected objects, or the text that the program set with
        /// `type_description`.
        expected: Arc<str>,
        /// The API version and kind of the received object.
        found: String,
        /// The name of the received object; `None` if the object has no name.
        object: Option<ObjectName>,
    },
    /// The cache differs from the server: a watch missed a change, or the server was restored from a backup.
    /// The reflector lists all objects again. This error is reported only with
    /// [`consistency_check`](crate::shared_informer::Builder::consistency_check).
    #[error("{0}")]
    Inconsistent(Arc<Difference>),
}

fn a_kind(found: &str, object: Option<&ObjectName>) -> String {
    object.map_or_else(|| found.to_owned(), |name| format!("{found} {name}"))
}

/// Function that receives each failure of an informer or of a standalone reflector when the failure occurs.
/// The function must not block.
#[doc(alias = "WatchErrorHandlerWithContext")]
#[doc(alias = "DefaultWatchErrorHandler")]
pub type WatchErrorHandler = Arc<dyn Fn(&Error) + Send + Sync>;

/// Lists and watches the objects of one [`ListerWatcher`], and delivers every change to one store.
#[doc(alias = "NewReflector")]
#[doc(alias = "NewNamespaceKeyedIndexerAndReflector")]
#[must_use = "a reflector does nothing until it runs"]
pub struct Reflector<K, S> {
    pub(crate) source: SourceId,
    pub(crate) lister_watcher: Arc<dyn ListerWatcher>,
    pub(crate) decoder: Decoder<K>,
    pub(crate) store: S,
    pub(crate) report: Reporter,
    pub(crate) requests: RequestOptions,
    pub(crate) rng: fastrand::Rng,
    /// Newest revision that the store has accepted, recorded when the reflector stops. Shared with the
    /// reflectors that [`again`](Self::again) returns.
    pub(crate) reached: Reached,
    /// Revision at which a [warm start](crate::warm_start) resumes, with a watch as the first request.
    ///
    /// Set to `None` when the store accepts a change.
    pub(crate) from: Option<ResourceVersion>,
    /// Reason why the first list counts as a relist, for metrics. `None` unless this reflector replaces an
    /// earlier one.
    pub(crate) relists: Option<RelistReason>,
    /// Receives the consistency check's requests to list again.
    pub(crate) relist: RelistSignal,
    /// Reports on drop that the reflector has stopped. Set only in a standalone reflector.
    ///
    /// Must be the last field, to be dropped last.
    pub(crate) alone: Option<StoppedGuard>,
}

impl<K, S> fmt::Debug for Reflector<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("name", &self.report.name)
            .field("expects", &self.report.expects)
            .finish_non_exhaustive()
    }
}

impl Reflector<(), ()> {
    /// Returns a builder for a reflector that lists and watches `source`.
    ///
    /// The default name of the reflector consists of the kind and the scope, such as `pods in shop`.
    pub fn builder<K: Resource>(source: impl ListerWatcher) -> ReflectorBuilder<K>
    where
        K::DynamicType: Default,
    {
        let dyntype = K::DynamicType::default();
        ReflectorBuilder::new(Arc::new(source), dyntype)
    }

    /// Returns a builder for a reflector that lists and watches `source`. `dyntype` describes a resource type
    /// that is known only at run time.
    pub fn builder_with_type<K: Resource>(
        source: impl ListerWatcher,
        dyntype: K::DynamicType,
    ) -> ReflectorBuilder<K> {
        ReflectorBuilder::new(Arc::new(source), dyntype)
    }
}

impl<K, S> Reflector<K, S> {
    /// Returns the reflector's name.
    pub fn name(&self) -> &str {
        &self.report.name
    }

    /// Returns a reader of the reflector's status: its current activity, and the last revision that the store
    /// has accepted.
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn status(&self) -> StatusReader {
        self.report.status.reader()
    }

    /// Returns a future that completes once the store has accepted the first list.
    ///
    /// The future does not borrow the reflector, so the reflector can run in the meantime.
    pub fn wait_for_sync(&self) -> WaitForSync {
        self.report.wait_for_sync()
    }
}

impl<K, S> Reflector<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    /// Lists and watches until `shutdown` completes, or until the store returns [`StoreError::Gone`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request in progress, and drops a change that the store has not
    /// accepted yet. The reflector can't be resumed.
    #[doc(alias = "RunWithContext")]
    #[doc(alias = "ListAndWatch")]
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.run_inside() => {}
        }
    }

    /// Lists and watches until the store returns [`StoreError::Gone`].
    pub(crate) async fn run_inside(self) {
        run::Running::new(self).run().await;
    }

    /// Deletes this reflector's objects from the store, and then waits without sending requests.
    ///
    /// Used while the server does not serve the kind. The future completes only if the store rejects the
    /// deletion.
    pub(crate) async fn lie_dormant(mut self) {
        self.report
            .status
            .activity(self.source, Activity::NotServed);
        let revision = self.reached.get();
        if !revision.is_unset() {
            let objects = Vec::new();
            let kind = DeltaKind::ReplacedAll { objects, revision };
            let told = self.store.accept(Delta::new(self.source, kind)).await;
            if told.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

impl<K, S: Clone> Reflector<K, S> {
    /// Returns a new reflector that replaces this one.
    ///
    /// `relists` is the reason why the new reflector lists again, or `None` if its first list is no relist.
    pub(crate) fn again(&self, relists: Option<RelistReason>) -> Self {
        Self {
            source: self.source,
            lister_watcher: Arc::clone(&self.lister_watcher),
            decoder: self.decoder.clone(),
            store: self.store.clone(),
            report: self.report.clone(),
            requests: self.requests,
            rng: self.rng.clone(),
            reached: self.reached.clone(),
            from: None,
            relists,
            relist: self.relist.clone(),
            alone: None,
        }
    }
}

pub(crate) struct StoppedGuard(StatusWriter, SourceId);

impl Drop for StoppedGuard {
    fn drop(&mut self) {
        self.0.activity(self.1, Activity::Stopped);
    }
}

#[cfg(test)]
mod tests;
