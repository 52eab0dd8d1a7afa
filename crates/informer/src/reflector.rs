//! Keeps one source in step with the server: lists, watches, and starts over for as long as it
//! lives.
//!
//! The shell in `run` moves bytes; what to ask for next is decided in `machine`, and how long to
//! pause in `backoff`. A reflector knows nothing of queues, indices and handlers: it hands [`Delta`]s
//! to a [`ReflectorStore`] and waits while that is busy, which slows the watch and not the memory.
//!
//! An informer has its reflectors inside. One alone keeps an indexer, or a store of your own, in step
//! without queue and handlers:
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

/// What went wrong in a reflector; it goes on nevertheless.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request was refused, its answer broke off, or the store did not take what it brought.
    #[error(transparent)]
    Transport(Arc<transport::Error>),
    /// One object did not decode. It is kept as broken.
    #[error(transparent)]
    Decode(DecodeError),
    /// The queue's key function could not name an object. It is left out.
    #[error("{object} has no key: {reason}")]
    Key {
        /// The object.
        object: ObjectName,
        /// What the key function said.
        reason: String,
    },
    /// The process function of a [`Config`](crate::controller::Config) returned an error for an object, or
    /// panicked. Its changes are queued again, or dropped.
    #[error("{object} was not processed{}: {reason}", if *retried { ", and is queued again" } else { "" })]
    Process {
        /// The key of the object in the queue.
        object: ObjectName,
        /// What the process function said.
        reason: String,
        /// Whether its changes are queued again.
        retried: bool,
    },
    /// The watch sent a type of event that nobody knows. It was skipped.
    #[error("unknown type of watch event: {0:?}")]
    UnknownEvent(String),
    /// Somebody has changed an object that the cache shares with all handlers and readers. Only with
    /// [`detect_mutations`](crate::shared_informer::Builder::detect_mutations).
    #[error(
        "{object} at revision {revision} was changed in the cache, which all handlers and readers share"
    )]
    Mutated {
        /// The object.
        object: ObjectName,
        /// The state of it that was changed.
        revision: ResourceVersion,
    },
    /// A list or a watch brought an object of another kind. It was skipped.
    #[error("{} came where {expected} was expected", a_kind(found, object.as_ref()))]
    OtherKind {
        /// What was expected: API version and kind, or the reflector's type description.
        expected: Arc<str>,
        /// The API version and kind that the object says it has.
        found: String,
        /// The object's name, if it has one.
        object: Option<ObjectName>,
    },
    /// The cache is not what the server has: a watch has missed something, or the server was put back.
    /// Everything is listed anew. Only with
    /// [`consistency_check`](crate::shared_informer::Builder::consistency_check).
    #[error("{0}")]
    Inconsistent(Arc<Difference>),
}

/// A kind, and the name of the object that has it.
fn a_kind(found: &str, object: Option<&ObjectName>) -> String {
    object.map_or_else(|| found.to_owned(), |name| format!("{found} {name}"))
}

/// Hears of every failure of an informer's reflectors, as it happens. It must not block.
#[doc(alias = "WatchErrorHandlerWithContext")]
#[doc(alias = "DefaultWatchErrorHandler")]
pub type WatchErrorHandler = Arc<dyn Fn(&Error) + Send + Sync>;

/// Keeps one store in step with one source.
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
    /// How far the store has come with what earlier reflectors of the source have handed on.
    pub(crate) reached: Reached,
    /// Up to where the store has everything from before, so that a watch comes first; unset when the
    /// server has confirmed that it goes on from there, or everything has been listed.
    pub(crate) from: Option<ResourceVersion>,
    /// Why it lists, if one before it has.
    pub(crate) relists: Option<RelistReason>,
    /// Of the consistency check, which requests a list when the store differs from the server.
    pub(crate) relist: RelistSignal,
    /// Of a reflector that stands alone; an informer says itself when it has synced and when it has
    /// stopped. Last, so that everything else is gone when it speaks.
    pub(crate) alone: Option<Stopped>,
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
    /// Begins a reflector over a source. Its default name is kind and scope, such as
    /// `pods in shop`.
    pub fn builder<K: Resource>(source: impl ListerWatcher) -> ReflectorBuilder<K>
    where
        K::DynamicType: Default,
    {
        let dyntype = K::DynamicType::default();
        ReflectorBuilder::new(Arc::new(source), dyntype)
    }

    /// The same for a type known at run time only.
    pub fn builder_with_type<K: Resource>(
        source: impl ListerWatcher,
        dyntype: K::DynamicType,
    ) -> ReflectorBuilder<K> {
        ReflectorBuilder::new(Arc::new(source), dyntype)
    }
}

impl<K, S> Reflector<K, S> {
    /// The reflector's name.
    pub fn name(&self) -> &str {
        &self.report.name
    }

    /// What the reflector is doing, and up to which revision it has come.
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn status(&self) -> StatusReader {
        self.report.status.reader()
    }

    /// Waits until the store has accepted the first list. Owns what it needs, so the reflector can
    /// run meanwhile.
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
    /// Lists and watches until `shutdown` resolves, or until the store is gone.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request under way, and a change that the store is just
    /// accepting. It can't be resumed.
    #[doc(alias = "RunWithContext")]
    #[doc(alias = "ListAndWatch")]
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.run_inside() => {}
        }
    }

    /// Runs until the store is gone.
    pub(crate) async fn run_inside(self) {
        run::Running::new(self).run().await;
    }

    /// Stands in for a reflector whose kind is gone: hands on an empty list, if the store has ever had another
    /// one, and requests nothing.
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
    /// Another one of the same source for the same store, which begins anew, and not before what the
    /// store has; with the reason, unless none has run before.
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

/// Says that a reflector has ended, however it ends, and whether or not it ever ran.
pub(crate) struct Stopped(StatusWriter, SourceId);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.activity(self.1, Activity::Stopped);
    }
}

#[cfg(test)]
mod tests;
