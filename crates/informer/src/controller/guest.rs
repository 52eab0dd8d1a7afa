//! Defines [`Guest`], an additional task of an informer, such as the warm start or the consistency check.
//!
//! Guarantees to a guest: [`Guest::begin`] completes before any reflector runs, [`Guest::run`] is dropped at
//! shutdown, and [`Guest::end`] is called while the informer's loop still executes commands. A panic in
//! `begin` or `run` fails the informer.
//!
//! Reflectors, queue, store and handlers do not depend on guests. A guest reads snapshots
//! ([`settled_snapshot`]), sends commands, and prepares reflectors before they start.

use std::future;

use futures_core::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::{Command, InnerReflector};
use crate::indexer::Snapshot;

pub(crate) trait Guest<K>: Send + Sync {
    /// Prepares the reflectors; called once before they start.
    fn begin<'a>(&'a mut self, reflectors: &'a mut [InnerReflector<K>]) -> BoxFuture<'a, ()>;

    /// Performs the guest's work while the reflectors run. May complete before they stop.
    fn run(&mut self) -> BoxFuture<'_, ()>;

    /// Performs the guest's final work.
    ///
    /// Called after the reflectors have stopped; not called if the informer has failed.
    ///
    /// Returns further work, which the controller runs while the handlers stop.
    fn end(&mut self) -> BoxFuture<'_, Option<BoxFuture<'_, ()>>> {
        Box::pin(future::ready(None))
    }
}

/// The reason why the informer's loop replied to a [`Command::Snapshot`] without a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSnapshot {
    /// The informer has not synced, so its cache is incomplete.
    NotSynced,
    /// The queue can pop a newer change before an older one.
    ///
    /// The store may therefore match no revision of the server.
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
