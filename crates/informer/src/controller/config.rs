//! [`Config`]: a controller from parts, with a process function of the program's own.
//!
//! It settles what [`ProcessLoop`] runs: a reflector, a [`DeltaFifo`] and the function that receives each
//! key's deltas. It has no handlers, no store and no indices: those belong to the process function.

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

/// Settles the parts of a controller that calls the program's own process function.
///
/// The source is the reflector's: [`Reflector::builder`](crate::reflector::Reflector::builder) takes a
/// [`ListerWatcher`](crate::transport::ListerWatcher), and also settles the error handler, page size,
/// timeouts and name.
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
    /// A controller that lists and watches with `reflector`, queues in `queue`, and calls `process` with
    /// all deltas of one key at a time, oldest first.
    ///
    /// `process` runs on the controller's task, so it must not block. An error, or a panic, concerns that
    /// key only: it is reported to the reflector's
    /// [`on_error`](crate::reflector::ReflectorBuilder::on_error) as
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

    /// What the process function stores: usually the [`Indexer`](crate::Indexer) whose writer it owns.
    ///
    /// The queue compares lists with it to find deletions that the watch missed, and resyncs from it.
    /// Without it, a deletion that happens between a watch and the next list is lost, and a resync
    /// does nothing.
    #[doc(alias = "KnownObjects")]
    pub fn known_objects(mut self, known: impl Known<K> + Send + Sync + 'static) -> Self {
        self.known = Some(Arc::new(known));
        self
    }

    /// The period after which all known objects are queued again, as
    /// [`DeltaKind::Sync`](crate::reflector::DeltaKind::Sync); zero, the default, means never.
    ///
    /// A key with waiting deltas is not queued again.
    #[doc(alias = "FullResyncPeriod")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync.period = period;
        self
    }

    /// Called once per resync period; if it returns false, that resync is skipped.
    #[doc(alias = "ShouldResyncFunc")]
    pub fn should_resync(mut self, should_resync: impl FnMut() -> bool + Send + 'static) -> Self {
        self.resync.should_resync = Box::new(should_resync);
        self
    }

    /// Whether the deltas that the process function returned an error for, or panicked on, are queued
    /// again; false by default, and they are dropped then.
    ///
    /// They move to the end of the queue, and later deltas of that key follow them in order: nothing is
    /// merged or lost. When every waiting key has failed since the last success, the controller pauses:
    /// 5 ms at first, doubled each time up to 30 s. A new change or a resync ends the pause. There is no
    /// limit on the number of attempts.
    ///
    /// Deltas of a key that never succeeds stay queued. At 2,000 queued deltas the controller receives no
    /// more from the watch, until some are processed.
    #[doc(alias = "RetryOnError")]
    pub fn retry_on_error(mut self, retry: bool) -> Self {
        self.retry_on_error = retry;
        self
    }

    /// Makes the controller.
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
