//! [`Guest`]: additional work of an informer beside its pipeline, such as the warm start and the consistency
//! check.
//!
//! Guarantees to a guest: [`Guest::begin`] completes before any reflector runs, [`Guest::run`] is dropped at
//! shutdown, and [`Guest::end`] is called while the loop still executes commands. A panic in `begin` or `run`
//! fails the informer.
//!
//! The pipeline does not depend on guests. A guest reads snapshots ([`settled_snapshot`]), sends commands,
//! and prepares reflectors before they start.

use std::future;

use futures_core::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::{Command, InnerReflector};
use crate::indexer::Snapshot;

pub(crate) trait Guest<K>: Send + Sync {
    /// Prepares the reflectors before they start.
    fn begin<'a>(&'a mut self, reflectors: &'a mut [InnerReflector<K>]) -> BoxFuture<'a, ()>;

    /// Performs the guest's work while the reflectors run. The future may complete before they stop.
    fn run(&mut self) -> BoxFuture<'_, ()>;

    /// Starts the guest's final work after the reflectors have stopped, and returns a future for the part of
    /// it that may run while the handlers end. Not called if the informer has failed.
    fn end(&mut self) -> BoxFuture<'_, Option<BoxFuture<'_, ()>>> {
        Box::pin(future::ready(None))
    }
}

/// The reason why the informer's loop replied to a [`Command::Snapshot`] without a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSnapshot {
    /// The informer has not synced, so its cache is incomplete.
    NotSynced,
    /// Changes wait in a queue that does not preserve their order, because the buffer of a handler is full.
    Unsettled,
    /// The informer has stopped.
    Stopped,
}

/// Requests a snapshot from the informer's loop in which the objects of each source match the source's
/// revision.
pub(crate) async fn settled_snapshot<K>(
    commands: &mpsc::UnboundedSender<Command<K>>,
) -> Result<Snapshot<K>, NoSnapshot> {
    let (reply, snapshot) = oneshot::channel();
    let sent = commands.send(Command::Snapshot(reply));
    sent.map_err(|_| NoSnapshot::Stopped)?;
    snapshot.await.unwrap_or(Err(NoSnapshot::Stopped))
}
