//! [`Guest`]: work of an informer that is not a stage of its pipeline, such as the warm start and the
//! consistency check.
//!
//! Guarantees to a guest: [`Guest::begin`] completes before any reflector runs, [`Guest::run`] is dropped at
//! shutdown, and [`Guest::end`] is called while the loop still executes commands. A panic in `begin` or `run`
//! fails the informer.
//!
//! The pipeline does not know its guests. A guest reads snapshots ([`settled_snapshot`]), sends commands, and
//! prepares reflectors before they start.

use std::future;

use futures_core::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::{Command, InnerReflector};
use crate::indexer::Snapshot;

pub(crate) trait Guest<K>: Send + Sync {
    /// Prepares the reflectors.
    fn begin<'a>(&'a mut self, reflectors: &'a mut [InnerReflector<K>]) -> BoxFuture<'a, ()>;

    /// Works while the reflectors run. May complete early.
    fn run(&mut self) -> BoxFuture<'_, ()>;

    /// Starts the last work after the reflectors have stopped, and returns the part that may run while the
    /// handlers end. Not called if the informer has failed.
    fn end(&mut self) -> BoxFuture<'_, Option<BoxFuture<'_, ()>>> {
        Box::pin(future::ready(None))
    }
}

/// The reason why the loop did not return a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSnapshot {
    /// The informer has not synced, so its cache is incomplete.
    NotSynced,
    /// Changes wait in a queue that reorders them, behind a full buffer of a handler.
    Unsettled,
    /// The informer has stopped.
    Stopped,
}

/// Requests a snapshot in which the objects of each source match its revision.
pub(crate) async fn settled_snapshot<K>(
    commands: &mpsc::UnboundedSender<Command<K>>,
) -> Result<Snapshot<K>, NoSnapshot> {
    let (reply, snapshot) = oneshot::channel();
    let sent = commands.send(Command::Snapshot(reply));
    sent.map_err(|_| NoSnapshot::Stopped)?;
    snapshot.await.unwrap_or(Err(NoSnapshot::Stopped))
}
