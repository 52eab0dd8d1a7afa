//! When it is worth asking whether the server has gone back (pure, told the time), and how.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use crate::{
    clock,
    object::ResourceVersion,
    transport::{Error, ListOptions, ListSplitter, ListerWatcher, ResourceVersionMatch},
};

/// A reflector asks at most this often: a connection that flaps must not become a load.
const EVERY: Duration = Duration::from_secs(60);

/// Whether a server that was away may be another one now.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// A watch has ended in a way that a server's restart can be behind, and nobody has asked since.
    is_owed: bool,
    /// When the last answer came.
    asked: Option<Instant>,
}

impl Probe {
    /// The connection was lost, the watch ended before its time, or nobody listens where there was a
    /// server.
    pub(super) fn owe(&mut self) {
        self.is_owed = true;
    }

    /// Whether to ask before watching on. One that comes too early is owed until later.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.is_owed
            && self
                .asked
                .is_none_or(|asked| now.duration_since(asked) >= EVERY)
    }

    /// When a probe that is owed is due; `None` if none is.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let asked = self.asked.filter(|_| self.is_owed)?;
        Some(clock::after(asked, EVERY))
    }

    /// It was not answered, which may change: it is still owed, and comes too early for a while.
    pub(super) fn put_off(&mut self, now: Instant) {
        self.asked = Some(now);
    }

    /// The server has answered, or won't.
    pub(super) fn answered(&mut self, now: Instant) {
        self.is_owed = false;
        self.asked = Some(now);
    }

    /// Everything was listed, so there is nothing to doubt.
    pub(super) fn listed(&mut self) {
        self.is_owed = false;
    }
}

/// Asks for one object, not older than a revision that the server must have come to.
pub(crate) fn probe_options(revision: ResourceVersion) -> ListOptions {
    ListOptions {
        resource_version: revision,
        resource_version_match: Some(ResourceVersionMatch::NotOlderThan),
        limit: Some(1),
        ..ListOptions::default()
    }
}

/// The revision that the answer is of; its object is of no interest.
pub(crate) async fn read_probe(
    lister_watcher: &dyn ListerWatcher,
    options: &ListOptions,
) -> Result<ResourceVersion, Error> {
    let mut body = lister_watcher.list(options).await?;
    let (mut splitter, mut items) = (ListSplitter::default(), Vec::new());
    while let Some(chunk) = body.next().await {
        splitter.feed(chunk?, &mut items)?;
        items.clear();
    }
    Ok(splitter.finish()?.resource_version)
}
