//! Defines [`Guest`], an additional task of an informer, such as the warm start or the consistency check.
//!
//! Guarantees to a guest:
//! - [`Guest::begin`] completes before any reflector runs;
//! - the future of [`Guest::run`] is dropped at shutdown;
//! - [`Guest::end`] is called while the informer's loop still executes commands, such as
//!   [`Command::Snapshot`].
//!
//! A panic in `begin` or `run` fails the informer.
//!
//! Reflectors, queue, store and handlers do not depend on guests. A guest can configure the reflectors before
//! they start. For example, the warm start sets the revisions from which the reflectors resume.

use std::future;

use futures_core::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::{Command, InnerReflector};
use crate::indexer::Snapshot;

/// An additional task of an informer, such as the warm start or the consistency check.
pub(crate) trait Guest<K>: Send + Sync {
    /// Prepares the reflectors; called once before they start.
    fn begin<'a>(&'a mut self, reflectors: &'a mut [InnerReflector<K>]) -> BoxFuture<'a, ()>;

    /// Runs the task while the reflectors run. The future may complete before the reflectors stop.
    fn run(&mut self) -> BoxFuture<'_, ()>;

    /// Ends the task after the reflectors have stopped. Not called if the informer has failed.
    ///
    /// Can return a further future, which the controller runs while the handlers stop. For example, the warm
    /// start requests a snapshot of the cache, and returns a future that saves the snapshot.
    fn end(&mut self) -> BoxFuture<'_, Option<BoxFuture<'_, ()>>> {
        Box::pin(future::ready(None))
    }
}

/// The reason why the informer's loop replied to a [`Command::Snapshot`] without a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSnapshot {
    /// The informer has not synced, so its cache is incomplete.
    NotSynced,
    /// The queue contains changes, and does not return changes in the order in which they were queued.
    ///
    /// The store may therefore contain a newer change without an older one. Such a state may never have
    /// existed on the server.
    Unsettled,
    /// The informer has stopped.
    Stopped,
}

/// Requests a snapshot of the store from the informer's loop.
///
/// For each source (one reflector with its list and watch), the snapshot contains a revision, all changes up
/// to this revision, and no later changes.
pub(crate) async fn settled_snapshot<K>(
    commands: &mpsc::UnboundedSender<Command<K>>,
) -> Result<Snapshot<K>, NoSnapshot> {
    let (reply, snapshot) = oneshot::channel();
    let sent = commands.send(Command::Snapshot(reply));
    sent.map_err(|_| NoSnapshot::Stopped)?;
    snapshot.await.unwrap_or(Err(NoSnapshot::Stopped))
}
