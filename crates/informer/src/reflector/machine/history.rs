//! Detects that the server has gone back to an earlier state, for example after a restore from a backup.
//!
//! The table lists the observations of the reflector and their meanings. The last revision is the newest
//! revision that the store has accepted. A probe is a LIST of one object that requests at least the last
//! revision. An end bookmark is the bookmark that ends the initial events of a watch.
//!
//! | observation | meaning |
//! | --- | --- |
//! | an event older than the object in the cache | the server has gone back |
//! | a probe, a list or an end bookmark older than the last revision | the server has gone back |
//! | any other event or bookmark older than the last revision | undecided: an aggregated API server may send old objects late; a probe decides |
//! | "too large resource version" in response to any request of the reflector | undecided: the server may lag behind; the revision of the next list decides |
//! | a consistency check that requires a new list, because the cache differs from the server | the server may have gone back |
//! | the start of a reflector that replaces an earlier reflector | the server may have gone back while the earlier reflector ran |
//!
//! If the server has gone back or may have gone back, another [`Epoch`] of revisions begins. The next list is
//! then applied even if it is older than the store. If the meaning is undecided, no epoch begins until the
//! probe or the list has decided.

use tokio::time::Instant;

use super::{Action, Machine, Next, RollbackDetection, State};
use crate::{
    codec::FrameKind,
    object::{Epoch, ResourceVersion},
    transport::{Class, Error},
};

impl Machine {
    /// Sets the revision up to which an earlier reflector filled the store.
    ///
    /// `revision` must be unset if there was no earlier reflector.
    ///
    /// The first request is a list, unless [`begin_at`](Self::begin_at) is called later. The list is applied
    /// even if it is older than `revision`, because the server may have gone back in the meantime.
    pub(crate) fn not_before(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        // The earlier reflector may have detected that the server has gone back.
        if !self.last_revision().is_unset() {
            self.history.suspected();
        }
    }

    /// Sets the revision up to which the store is already filled. The first request is a watch from this
    /// revision.
    pub(crate) fn begin_at(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        self.has_watched = true;
    }

    /// Returns whether an event is older than the newest revision that the store has accepted.
    ///
    /// Returns false for the `Added` events of existing objects that a watch from `""` or `"0"` sends first.
    pub(crate) fn is_below_last(&self, kind: &FrameKind, revision: &ResourceVersion) -> bool {
        // The existing objects, which a watch from `""` or `"0"` sends first, may be older.
        let is_listing = matches!(&self.state, State::Watching(watch) if !watch.advances);
        let counts = !is_listing || *kind != FrameKind::Added;
        counts && revision < self.last_revision()
    }

    /// Checks an event that is older than the newest revision that the store has accepted.
    ///
    /// `cached` is the revision of the same object in the cache. Aggregated API servers regularly send such
    /// events. Therefore, only the first such event after a list requires a probe.
    ///
    /// # Errors
    /// Returns an error if the cache has a newer revision of the object: the server has gone back to an
    /// earlier state.
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

    /// Returns the epoch that the reflector assigns to the revisions that it receives.
    pub(crate) fn epoch(&self) -> Epoch {
        self.history.epoch()
    }

    /// Starts a new [`Epoch`] if a complete list is older than the newest accepted revision.
    ///
    /// Such a list shows that the server has gone back to an earlier state. Revisions of different epochs
    /// can't be compared.
    ///
    /// Must be called before the list is sent to the store.
    pub(crate) fn listed(&mut self, revision: &ResourceVersion) {
        self.history.listed(revision);
    }

    /// Starts a new epoch, because the server may have gone back to an earlier state.
    ///
    /// Revisions from before the call can't be compared with later ones.
    pub(crate) fn suspect(&mut self) {
        self.history.suspected();
    }

    /// Returns the next action after a consistency check has requested a list of the newest state.
    pub(crate) fn relist_requested(&mut self, now: Instant) -> Action {
        self.suspect();
        self.history.unavailable();
        self.at_once_after_health(now, Next::List)
    }

    /// Returns whether equal revisions of an object mean equal states, so that a cached object can be reused.
    pub(crate) fn believes_revisions(&self) -> bool {
        self.history.believes_revisions()
    }
}
