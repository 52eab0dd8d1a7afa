//! [`Config`] builds a controller that passes deltas to a user-defined process function.
//!
//! A `Config` combines a reflector, a [`DeltaFifo`] and the function that receives the deltas of each key.
//! [`ProcessLoop`] runs such a controller. The controller has no handlers, store or indices. The process
//! function can write to a store of its own.

use std::{sync::Arc, time::Duration};

use derive_where::derive_where;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::{
    bounds::CHANNEL_CAPACITY,
    process_loop::{Feed, ProcessLoop},
    processing::{Process, ProcessError, Processing, ResyncTimer, Retry},
};
use crate::{
    logs::LogLimiter,
    object::Known,
    queue::{DeltaFifo, Popped},
    reflector::ReflectorBuilder,
};

/// Configures a controller that lists, watches, and calls a user-defined process function with the changes.
///
/// The controller lists and watches with the [`ListerWatcher`](crate::transport::ListerWatcher) that is
/// passed to [`Reflector::builder`](crate::reflector::Reflector::builder). The reflector's builder also sets
/// the error handler, page size, timeouts and name.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kube_informer::{Indexers, client::ListWatch, controller::Config, indexer, queue::{Batch, DeltaFifo, Popped}, reflector::Reflector};
/// # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let (pods, mut writer) = indexer::new(Indexers::<Pod>::by_namespace())?;
/// let reflector = Reflector::builder(ListWatch::<Pod>::new(client));
/// let process = move |popped: &Popped<Pod>| -> Result<(), &str> {
///     let deltas = popped.deltas.clone();
///     let in_initial_list = popped.in_initial_list;
///     for change in writer.apply(Batch { deltas, in_initial_list, completes: None, reached: Vec::new() }).changes {
///         println!("{change:?}");
///     }
///     Ok(())
/// };
/// let controller = Config::new(reflector, DeltaFifo::new(), process)
///     .known_objects(pods.clone())
///     .retry_on_error(true)
///     .build();
/// controller.run(async { tokio::signal::ctrl_c().await.unwrap() }).await?;
/// # Ok(()) }
/// ```
#[must_use]
#[doc(alias = "NewControllerFromConfig")]
#[derive_where(Debug)]
pub struct Config<K: Resource> {
    reflector: ReflectorBuilder<K>,
    #[derive_where(skip)]
    queue: DeltaFifo<K>,
    #[derive_where(skip)]
    process: Process<K>,
    #[derive_where(skip)]
    known: Option<Arc<dyn Known<K> + Send + Sync>>,
    #[derive_where(skip)]
    resync: ResyncTimer,
    retry_on_error: bool,
}

impl<K: Resource> Config<K> {
    /// Creates a configuration from a reflector, a queue and a process function.
    ///
    /// The controller lists and watches with `reflector`, queues the changes in `queue`, and calls `process`
    /// with all deltas of one key at a time, oldest first. `process` runs on the controller's task, so it
    /// must not block. An error or a panic of `process` affects only this key. The failure is reported to the
    /// reflector's [`on_error`](crate::reflector::ReflectorBuilder::on_error) as
    /// [`Error::Process`](crate::reflector::Error::Process).
    #[doc(alias = "Process")]
    #[doc(alias = "ProcessFunc")]
    pub fn new<E: Into<ProcessError>>(
        reflector: ReflectorBuilder<K>,
        queue: DeltaFifo<K>,
        mut process: impl FnMut(&Popped<K>) -> Result<(), E> + Send + 'static,
    ) -> Self {
        Self {
            reflector,
            queue,
            process: Box::new(move |popped| process(popped).map_err(Into::into)),
            known: None,
            resync: ResyncTimer {
                period: Duration::ZERO,
                due: None,
                should_resync: Box::new(|| true),
            },
            retry_on_error: false,
        }
    }

    /// Sets the store of known objects, usually the [`Indexer`](crate::Indexer) that the process function
    /// writes to.
    ///
    /// The queue compares each list with the known objects, to find deletions that the watch missed. A resync
    /// queues the known objects. Without known objects, a deletion between the end of a watch and the next
    /// list is lost, and a resync has no effect.
    #[doc(alias = "KnownObjects")]
    pub fn known_objects(mut self, known: impl Known<K> + Send + Sync + 'static) -> Self {
        self.known = Some(Arc::new(known));
        self
    }

    /// Sets the resync period. Zero, the default, disables resyncs.
    ///
    /// A resync queues all known objects again, as [`DeltaKind::Sync`](crate::reflector::DeltaKind::Sync),
    /// except objects that have deltas in the queue.
    #[doc(alias = "FullResyncPeriod")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync.period = period;
        self
    }

    /// Sets the function that decides whether to resync. The controller calls it once per resync period.
    #[doc(alias = "ShouldResyncFunc")]
    pub fn should_resync(mut self, should_resync: impl FnMut() -> bool + Send + 'static) -> Self {
        self.resync.should_resync = Box::new(should_resync);
        self
    }

    /// Sets whether the deltas of a key are queued again after the process function fails or panics.
    ///
    /// The default is false: the deltas are dropped. If true, the deltas move to the end of the queue. Later
    /// deltas of the same key are appended to them. No delta is merged or lost, and the number of attempts is
    /// not limited.
    ///
    /// If the process function fails as many times in a row as the queue has keys, the controller pauses,
    /// because every key may have failed. The first pause lasts 5 ms. Each further pause lasts twice as long,
    /// up to 30 s. After a success, the next pause lasts 5 ms again. A new change or a resync ends a pause.
    ///
    /// Deltas of a key that never succeeds stay queued. At 2,000 queued deltas the controller stops receiving
    /// from the watch until some deltas are processed.
    #[doc(alias = "RetryOnError")]
    pub fn retry_on_error(mut self, retry: bool) -> Self {
        self.retry_on_error = retry;
        self
    }

    /// Builds the controller with this configuration.
    #[doc(alias = "New")]
    pub fn build(self) -> ProcessLoop<K>
    where
        K: DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        let (sender, deltas) = mpsc::channel(CHANNEL_CAPACITY);
        let feed = Feed::new(sender, self.known.clone());
        let reflector = self.reflector.into_store(feed);
        let processing = Processing {
            queue: self.queue,
            process: self.process,
            known: self.known.unwrap_or_else(|| Arc::new(())),
            deltas,
            report: reflector.report.clone(),
            keyless: LogLimiter::default(),
            unprocessed: LogLimiter::default(),
            resync: self.resync,
            resyncing: 0,
            retry: self.retry_on_error.then(Retry::default),
        };
        ProcessLoop::new(reflector, processing)
    }
}
