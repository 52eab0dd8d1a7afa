//! Runs a reflector and a user-defined process function ([`ProcessLoop`]).
//!
//! Guarantees: the process loop runs until the shutdown, or until the reflector or the loop panics. The loop
//! spawns no tasks, so nothing runs after it has returned.

use std::future::Future;

use derive_where::derive_where;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::{
    Ended,
    end::end_of,
    processing::{Processing, Shared},
};
use crate::{
    reflector::{Delta, Reflector, ReflectorStore, StoppedGuard, StoreError},
    status::{InformerError, StatusReader, WaitForSync},
};

/// Name of the process loop in error messages.
const PROCESSING: &str = "the process loop";

/// Runs a reflector, and a process function that receives the reflector's changes.
///
/// [`Config::build`](super::Config::build) creates this value. [`run`](Self::run) consumes it, so a process
/// loop runs at most once.
#[must_use = "a controller does nothing until it runs"]
#[derive_where(Debug)]
pub struct ProcessLoop<K> {
    reflector: Reflector<K, Feed<K>>,
    #[derive_where(skip)]
    processing: Processing<K>,
    /// Marks the process loop as stopped when this guard is dropped. All other fields are dropped before it.
    #[derive_where(skip)]
    stopped: Option<StoppedGuard>,
}

impl<K> ProcessLoop<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    pub(super) fn new(mut reflector: Reflector<K, Feed<K>>, processing: Processing<K>) -> Self {
        // The status is synced when the first list is processed, not when it is received.
        let stopped = reflector.alone.take();
        Self {
            reflector,
            processing,
            stopped,
        }
    }

    /// Returns a future that completes when the process function has received the whole first list.
    ///
    /// The future does not borrow the process loop, so [`run`](Self::run) can consume the process loop.
    #[doc(alias = "HasSynced")]
    pub fn wait_for_sync(&self) -> WaitForSync {
        self.reflector.wait_for_sync()
    }

    /// Returns a reader for the status of the process loop, which contains the revision of the last received
    /// change.
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn status(&self) -> StatusReader {
        self.reflector.status()
    }

    /// Lists, watches and calls the process function until `shutdown` resolves.
    ///
    /// [`Ended::discarded`] is the number of changes that were received but not processed. A list that the
    /// reflector has received, but the queue has not, counts as one change.
    ///
    /// # Errors
    /// Returns an error if the `ListerWatcher`, the store of known objects or `should_resync` panics. An
    /// error of a server, or an error or a panic of the process function, does not end the process loop.
    ///
    /// # Cancel safety
    /// Dropping the future stops the process loop between two calls of the process function.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Ended, InformerError> {
        // Declared first, so it is dropped last.
        let _stopped = self.stopped;
        let (reflector, mut processing) = (self.reflector, self.processing);
        let report = reflector.report.clone();
        let description = reflector.lister_watcher.description();
        let part = format!("the reflector of {description}");
        // Boxed to keep the caller's future small: the state of a list and a watch is about 16 KB.
        let mut reflecting = Box::pin(end_of(&part, reflector.run_inside()));
        let failed = tokio::select! {
            biased;
            () = shutdown => None,
            cause = end_of(PROCESSING, processing.run()) => Some(cause),
            cause = &mut reflecting => Some(cause),
        };
        match failed {
            Some(cause) => Err(InformerError::clone(&report.fail(cause))),
            None => Ok(Ended {
                discarded: processing.waiting() as u64,
            }),
        }
    }
}

/// Sends the changes from a reflector to the process loop; a full channel delays the watch.
pub(super) struct Feed<K> {
    deltas: mpsc::Sender<Delta<K>>,
    known: Option<Shared<K>>,
}

impl<K> Feed<K> {
    pub(super) fn new(deltas: mpsc::Sender<Delta<K>>, known: Option<Shared<K>>) -> Self {
        Self { deltas, known }
    }
}

impl<K: Send + Sync + 'static> ReflectorStore<K> for Feed<K> {
    async fn accept(&mut self, delta: Delta<K>) -> Result<(), StoreError> {
        self.deltas.accept(delta).await
    }

    fn known(&self) -> Option<Shared<K>> {
        self.known.clone()
    }
}
