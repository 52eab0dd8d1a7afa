//! Detects that the server has gone back to an earlier state: the last table in `machine`.

use tokio::time::Instant;

use super::{Action, Machine, Next, RollbackDetection, State};
use crate::{
    codec::FrameKind,
    object::{Epoch, ResourceVersion},
    transport::{Class, Error},
};

impl Machine {
    /// Sets the revision up to which an earlier reflector filled the store. The first request is a list. The
    /// earlier reflector may have observed that the server has gone back, so a rollback is suspected.
    pub(crate) fn not_before(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        if !self.last_revision().is_unset() {
            self.history.suspected();
        }
    }

    /// Sets the revision up to which the store was filled before the start. The first request is a watch from
    /// it.
    pub(crate) fn begin_at(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        self.has_watched = true;
    }

    /// Returns whether the revision of an event is below the last revision that the store has accepted.
    ///
    /// Revisions without an order are not compared, nor are the existing objects with which a watch from `""` or
    /// `"0"` begins.
    pub(crate) fn is_below_last(&self, kind: &FrameKind, revision: &ResourceVersion) -> bool {
        let is_listing = matches!(&self.state, State::Watching(watch) if !watch.advances);
        let counts = !is_listing || *kind != FrameKind::Added;
        counts && revision < self.last_revision()
    }

    /// Checks an event whose revision is below the last one. `cached` is the revision of the same object in
    /// the cache.
    ///
    /// The caller applies the event unless this method fails.
    ///
    /// Aggregated API servers send such events regularly: access to an old object may be granted later, which adds
    /// it at its old revision. One probe is therefore required. If the server knows the last revision, the
    /// collection counts as unordered until the next list.
    ///
    /// The uid is irrelevant: names are unique, so a server that sends an older object than the cache has for a
    /// name has gone back. Revisions of different epochs are not compared: the cache has not applied the list that
    /// began the current epoch.
    ///
    /// # Errors
    /// The cache has a newer revision, so the server has gone back. The caller reports the error and ends the
    /// watch.
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
                "the watch sent an object at revision {revision}, which the cache has at {newer}: the server was restored from a backup, or is another server"
            );
            return Err(Error::new(Class::WentBack, what));
        }
        self.probe.suspect();
        Ok(())
    }

    /// Returns the epoch of the revisions that the reflector receives.
    pub(crate) fn epoch(&self) -> Epoch {
        self.history.epoch()
    }

    /// Records a complete list at this revision before it is sent to the store.
    pub(crate) fn listed(&mut self, revision: &ResourceVersion) {
        self.history.listed(revision);
    }

    /// Records that the server may have gone back: revisions received before and after this call are not
    /// comparable.
    pub(crate) fn suspect(&mut self) {
        self.history.suspected();
    }

    /// Returns the step after a consistency check has requested a list. The reflector received the request
    /// during a watch, or at the end of a list that left known objects undecoded.
    pub(crate) fn relist_requested(&mut self, now: Instant) -> Action {
        self.suspect();
        self.history.unavailable();
        self.at_once_after_health(now, Next::List)
    }

    /// Returns whether equal revisions of an object mean equal states.
    pub(crate) fn believes_revisions(&self) -> bool {
        self.history.believes_revisions()
    }
}
