//! What is noticed of a server that has gone back, or may have: the last table of the machine.

use tokio::time::Instant;

use super::{Action, Machine, Next, RollbackDetection, State};
use crate::{
    codec::FrameKind,
    object::{Epoch, ResourceVersion},
    transport::{Class, Error},
};

impl Machine {
    /// What the store has is of this revision, and everything is to be requested nevertheless. The reflector
    /// before this one may have noticed something of the server since, which is lost.
    pub(crate) fn not_before(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        if !self.last_revision().is_unset() {
            self.history.suspected();
        }
    }

    /// The store has everything up to here, from before.
    pub(crate) fn begin_at(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        self.has_watched = true;
    }

    /// Whether an event has a revision below the last one.
    ///
    /// Revisions without an order are not compared, nor are the existing objects with which a watch
    /// from `""` or `"0"` begins.
    pub(crate) fn is_below_last(&self, kind: &FrameKind, revision: &ResourceVersion) -> bool {
        let is_listing = matches!(&self.state, State::Watching(watch) if !watch.advances);
        let counts = !is_listing || *kind != FrameKind::Added;
        counts && revision < self.last_revision()
    }

    /// An event below the last revision has arrived; `cached` is the revision at which the cache has an
    /// object of that name. The event is to be applied, unless it contradicts the cache.
    ///
    /// Aggregated API servers send such events regularly: granting access to an old object is an addition
    /// at an old revision. So the server is asked once, and if it knows the last revision, the collection
    /// counts as unordered until its next list.
    ///
    /// The uid does not matter: names are unique, so an older object behind a name that the cache has
    /// newer exists on a server only that has gone back. Revisions of another epoch are not compared:
    /// the cache has not caught up with the list that began this one.
    ///
    /// # Errors
    /// The cache has a newer revision, so the server has gone back; to be reported, and to end the watch.
    pub(crate) fn below_last(
        &mut self,
        revision: &ResourceVersion,
        cached: Option<&ResourceVersion>,
    ) -> Result<(), Error> {
        if self.options.rollback_detection() == RollbackDetection::Disabled {
            return Ok(());
        }
        let comparable = cached.filter(|cached| cached.epoch() == self.epoch());
        if let Some(newer) = comparable.filter(|cached| revision < *cached) {
            let what = format!(
                "the watch sent an object at revision {revision} that the cache has at {newer}: the server was restored from a backup, or is another one"
            );
            return Err(Error::new(Class::WentBack, what));
        }
        self.probe.suspect();
        Ok(())
    }

    /// The epoch that everything is handed on in.
    pub(crate) fn epoch(&self) -> Epoch {
        self.history.epoch()
    }

    /// A list of this revision is about to be handed on.
    pub(crate) fn listed(&mut self, revision: &ResourceVersion) {
        self.history.listed(revision);
    }

    /// A list was requested by others, who have reason to believe that the server has gone back: what the store
    /// has can't be compared with a list by revisions.
    pub(crate) fn suspect(&mut self) {
        self.history.suspected();
    }

    /// A list was requested while watching, or at the end of a list that has left known objects undecoded.
    pub(crate) fn relist_requested(&mut self, now: Instant) -> Action {
        self.suspect();
        self.history.unavailable();
        self.at_once_after_health(now, Next::List)
    }

    /// Whether a state that the server sends next is the one that is known, if its revision is.
    pub(crate) fn believes_revisions(&self) -> bool {
        self.history.believes_revisions()
    }
}
