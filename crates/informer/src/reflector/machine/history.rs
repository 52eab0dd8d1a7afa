//! Detects that the server has gone back to an earlier state, for example after a restore from a backup.
//!
//! If an observation shows that the server has gone back, or may have gone back, another [`Epoch`] of
//! revisions begins. The next list is then applied even if it is older than the store. In this table, the
//! last revision is the newest one that the store has accepted.
//!
//! | observation | meaning |
//! | --- | --- |
//! | an event older than the object in the cache | the server has gone back |
//! | a probe, a list or an end bookmark older than the last revision | the server has gone back |
//! | any other event or bookmark older than the last revision | undecided: an aggregated API server may send old objects late; a probe decides |
//! | "too large resource version" in response to any request | undecided: the server may lag behind; the revision of the next list decides |
//! | a request for a list by a consistency check | the server may have gone back |
//! | the start of a reflector after an earlier reflector of the same source | the server may have gone back while the earlier reflector ran |

use tokio::time::Instant;

use super::{Action, Machine, Next, RollbackDetection, State};
use crate::{
    codec::FrameKind,
    object::{Epoch, ResourceVersion},
    transport::{Class, Error},
};

impl Machine {
    /// Sets the revision up to which an earlier reflector of the source filled the store. The first request
    /// is a list.
    ///
    /// If `revision` is set, another epoch starts, because the earlier reflector may have detected that the
    /// server has gone back to an earlier state.
    pub(crate) fn not_before(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        if !self.last_revision().is_unset() {
            self.history.suspected();
        }
    }

    /// Sets the revision up to which the store was filled before the reflector started. The first request is
    /// a watch from this revision.
    pub(crate) fn begin_at(&mut self, revision: ResourceVersion) {
        self.history.begin_at(revision);
        self.has_watched = true;
    }

    /// Returns whether an event is older than the newest revision that the store has accepted.
    ///
    /// The result is false for revisions that can't be compared. The result is also false for the existing
    /// objects that a watch from `""` or `"0"` sends at its beginning.
    pub(crate) fn is_below_last(&self, kind: &FrameKind, revision: &ResourceVersion) -> bool {
        let is_listing = matches!(&self.state, State::Watching(watch) if !watch.advances);
        let counts = !is_listing || *kind != FrameKind::Added;
        counts && revision < self.last_revision()
    }

    /// Checks an event that is older than the newest revision that the store has accepted.
    ///
    /// `cached` is the revision of the same object in the cache; `None` if the cache does not contain the
    /// object. The method ignores `cached` if it belongs to an earlier epoch, because revisions of different
    /// epochs are not comparable. If the method returns no error, the caller applies the event.
    ///
    /// Aggregated API servers regularly send such events, for example when access to an old object is
    /// granted. The first such event after a list requires a probe. If the response to the probe shows that
    /// the server has not gone back, later such events require no probe until the next list.
    ///
    /// # Errors
    /// Returns an error if the cache has a newer revision of the object, which shows that the server has gone
    /// back to an earlier state. The caller reports the error and ends the watch.
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

    /// Returns the epoch of the revisions that the reflector receives. An epoch is a period between two
    /// rollbacks of the server to an earlier state.
    pub(crate) fn epoch(&self) -> Epoch {
        self.history.epoch()
    }

    /// Records the revision of a complete list before the list is sent to the store. If this revision is
    /// older than the newest revision that the store has accepted, the server has gone back to an earlier
    /// state.
    pub(crate) fn listed(&mut self, revision: &ResourceVersion) {
        self.history.listed(revision);
    }

    /// Records that the server may have gone back to an earlier state. A new epoch begins: revisions that the
    /// reflector has received before this call can't be compared with later ones.
    pub(crate) fn suspect(&mut self) {
        self.history.suspected();
    }

    /// Returns the next action after a consistency check has requested a list of the newest state.
    pub(crate) fn relist_requested(&mut self, now: Instant) -> Action {
        self.suspect();
        self.history.unavailable();
        self.at_once_after_health(now, Next::List)
    }

    /// Returns whether equal revisions of an object mean equal states. If true, the reflector can use the
    /// cached state of an object instead of decoding a received one.
    pub(crate) fn believes_revisions(&self) -> bool {
        self.history.believes_revisions()
    }
}
