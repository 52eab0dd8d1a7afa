//! [`ProcessLoop`]: runs a reflector and a process function of the program's own.
//!
//! Guarantees: it ends when it is asked to, or with the reason for its failure; nothing of it runs
//! afterwards. It spawns no task.

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
    reflector::{Delta, Reflector, ReflectorStore, Stopped, StoreError},
    status::{InformerError, StatusReader, WaitForSync},
};

/// What calls the process function, in errors.
const PROCESSING: &str = "the process loop";

/// Runs a reflector and a process function; [`Config::build`](super::Config::build) makes it.
///
/// [`run`](Self::run) consumes it, so it runs at most once.
#[must_use = "a controller does nothing until it runs"]
#[derive_where(Debug)]
pub struct ProcessLoop<K> {
    reflector: Reflector<K, Feed<K>>,
    #[derive_where(skip)]
    processing: Processing<K>,
    /// Reports the end. Last, so that everything else is gone by then.
    #[derive_where(skip)]
    stopped: Option<Stopped>,
}

impl<K> ProcessLoop<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    pub(super) fn new(mut reflector: Reflector<K, Feed<K>>, processing: Processing<K>) -> Self {
        // It has synced when the first list is processed, and not when it is received.
        let stopped = reflector.alone.take();
        Self {
            reflector,
            processing,
            stopped,
        }
    }

    /// Waits until the process function has been called with the whole first list. Owns what it needs,
    /// so the controller can run meanwhile.
    #[doc(alias = "HasSynced")]
    pub fn wait_for_sync(&self) -> WaitForSync {
        self.reflector.wait_for_sync()
    }

    /// What the controller is doing, and up to which revision it has received changes.
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn status(&self) -> StatusReader {
        self.reflector.status()
    }

    /// Lists, watches and processes until `shutdown` resolves.
    ///
    /// [`Ended::discarded`] counts the changes that were received and not processed; a list that was not
    /// queued yet counts as one.
    ///
    /// # Errors
    /// Code that is not called for one object panicked: the `ListerWatcher`, the known objects or
    /// `should_resync`. No error of a server leads here, and none of the process function.
    ///
    /// # Cancel safety
    /// Dropping the future ends everything at once. It never cuts off a call of the process function.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Ended, InformerError> {
        // First, so that it is dropped last.
        let _stopped = self.stopped;
        let (reflector, mut processing) = (self.reflector, self.processing);
        let report = reflector.report.clone();
        let description = reflector.lister_watcher.description();
        let part = format!("the reflector of {description}");
        // In a box, for the caller's sake: it holds what a list and a watch need, some 16 KB.
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

/// Where the reflector puts its changes: a bounded channel, which slows the watch when it is full.
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
