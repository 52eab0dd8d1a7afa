//! Detects that the server has gone back to an earlier state: implements the last table in the documentation
//! of `machine`.

use tokio::time::Instant;

use super::{Action, Machine, Next, RollbackDetection, State};
use crate::{
    codec::FrameKind,
    object::{Epoch, ResourceVersion},
    transport::{Class, Error},
};

impl Machine {
    /// Sets the revision up to which an earlier reflector filled the store. The first request is a list.
    ///
    /// The earlier reflector may have detected that the server has gone back to an earlier state, so the new
    /// reflector suspects this too.
    pub(crate) fn not_before(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        if !self.last_revision().is_unset() {
            self.history.suspected();
        }
    }

    /// Sets the revision up to which the store was filled before the start. The first request is a watch from
    /// this revision.
    pub(crate) fn begin_at(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        self.has_watched = true;
    }

    /// Returns whether the revision of an event is below the last revision that the store has accepted.
    ///
    /// Always false for revisions that have no order, and for the existing objects with which a watch from
    /// `""` or `"0"` begins.
    pub(crate) fn is_below_last(&self, kind: &FrameKind, revision: &ResourceVersion) -> bool {
        let is_listing = matches!(&self.state, State::Watching(watch) if !watch.advances);
        let counts = !is_listing || *kind != FrameKind::Added;
        counts && revision < self.last_revision()
    }

    /// Checks an event whose revision is below the last revision that the store has accepted. `cached` is the
    /// revision of the same object in the cache; `None` if the cache does not contain the object.
    ///
    /// The caller applies the event unless this method fails.
    ///
    /// Aggregated API servers send such events regularly. For example, access to an old object may be granted
    /// later, which adds the object at its old revision. Such an event therefore requires one probe. If the
    /// server knows the last revision, the events count as unordered until the next list, and further ones
    /// require no probe.
    ///
    /// The uid of the object is irrelevant: names are unique, so a server that sends an older object than the
    /// cache has under the same name has gone back to an earlier state. Revisions of different epochs are not
    /// compared, because the cache has not applied the list that began the current epoch.
    ///
    /// # Errors
    /// Returns an error if the cache has a newer revision, which shows that the server has gone back to an
    /// earlier state. The caller reports the error and ends the watch.
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

    /// Records the revision of a complete list before the list is sent to the store.
    pub(crate) fn listed(&mut self, revision: &ResourceVersion) {
        self.history.listed(revision);
    }

    /// Records that the server may have gone back to an earlier state. Revisions received before and after
    /// this call are not comparable.
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

    /// Returns whether equal revisions of an object mean equal states, so that the cached state can be used.
    pub(crate) fn believes_revisions(&self) -> bool {
        self.history.believes_revisions()
    }
}
