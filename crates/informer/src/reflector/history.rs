//! Tracks the last revision, which is the newest revision that the store has accepted.
//!
//! Also detects that the server has gone back to an earlier state, for example after a restore from a backup.
//! The module does no I/O.

use std::cmp::Ordering;

use crate::{
    object::{Epoch, ResourceVersion},
    transport::{Class, Error},
};

/// The newest revision that the store has accepted, and the failures that determine the revision of the next
/// list. An epoch is the part of the server's history between two rollbacks to an earlier state.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The newest revision that the store has accepted; unset before the first list. Events never decrease
    /// this revision, but a list can.
    last: ResourceVersion,
    /// The epoch of the revisions that the reflector receives. A new epoch begins when the server has gone
    /// back to an earlier state, or may have gone back. `last` keeps its earlier epoch until the store has
    /// accepted the next list.
    epoch: Epoch,
    /// Whether the server can't serve a state that is at least as new as `last`. The next list then requests
    /// the newest state.
    is_unavailable: bool,
    /// Whether the server responded that it has not reached `last`. Equal revisions of an object may then
    /// mean different states.
    is_server_behind: bool,
    /// Requested revision of the most recent watch that expired, sent unreadable data, or sent data that the
    /// store rejected. `None` if there was no such watch.
    stuck_at: Option<ResourceVersion>,
}

impl History {
    /// Sets the last revision to `revision`, the revision of the objects that the store contains at the
    /// start.
    pub(super) fn begin_at(&mut self, revision: ResourceVersion) {
        self.last = revision;
        self.epoch = self.last.epoch();
    }

    /// Returns the newest revision that the store has accepted.
    pub(super) fn last(&self) -> &ResourceVersion {
        &self.last
    }

    /// Returns the epoch of the revisions that the reflector receives. An epoch is a period between two
    /// rollbacks of the server to an earlier state.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns whether a watch can begin at the last revision. The revision must be neither unset nor 0.
    pub(super) fn can_resume(&self) -> bool {
        !(self.last.is_unset() || self.last.is_zero())
    }

    /// Returns the minimum revision that the next list must request. The result is unset if the list must
    /// request the newest state.
    pub(super) fn not_older_than(&self) -> ResourceVersion {
        if self.is_unavailable {
            return ResourceVersion::UNSET;
        }
        self.last.clone()
    }

    /// Returns whether the next list must request the newest state.
    pub(super) fn is_unavailable(&self) -> bool {
        self.is_unavailable
    }

    /// Returns whether the most recent watch that expired or sent unusable data had requested `revision`.
    pub(super) fn is_stuck_at(&self, revision: &ResourceVersion) -> bool {
        self.stuck_at.as_ref() == Some(revision)
    }

    /// Returns whether equal revisions of an object mean equal states.
    ///
    /// The result is false after the server has responded that it has not reached the last revision. The
    /// result is true again when the store has accepted the next list.
    pub(super) fn believes_revisions(&self) -> bool {
        !self.is_server_behind
    }

    /// Records the revision of a complete list before the list is sent to the store. If this revision is
    /// older than the last revision, the server has gone back to an earlier state, and another epoch starts.
    pub(super) fn listed(&mut self, revision: &ResourceVersion) {
        if *revision < self.last {
            self.rolled_back();
        }
    }

    /// Records that the store has accepted a list at this revision.
    ///
    /// This cancels the effect of [`unavailable`](Self::unavailable), so later lists can request this
    /// revision as their minimum. From now on, equal revisions of an object mean equal states.
    pub(super) fn accepted(&mut self, revision: ResourceVersion) {
        self.last = revision.in_epoch(self.epoch);
        self.is_unavailable = false;
        self.is_server_behind = false;
    }

    /// Records that the store has accepted an event at this revision. A revision that is older than the last
    /// revision has no effect.
    pub(super) fn observed(&mut self, revision: ResourceVersion) {
        if revision.partial_cmp(&self.last) != Some(Ordering::Less) {
            self.last = revision.in_epoch(self.epoch);
        }
    }

    /// Starts another epoch, because the server has gone back to an earlier state.
    pub(super) fn rolled_back(&mut self) {
        self.epoch = self.epoch.after_rollback(self.last.epoch());
    }

    /// Starts another epoch, because the server may have gone back to an earlier state. Revisions of
    /// different epochs are not comparable.
    pub(super) fn suspected(&mut self) {
        self.epoch = self.epoch.after_suspicion(self.last.epoch());
    }

    /// Updates the history after a request has failed with an error of this class.
    ///
    /// `WentBack` starts another epoch, because the server has gone back to an earlier state.
    /// `TooLargeResourceVersion` starts no epoch, because the response may come from a server that lags
    /// behind other servers. Until the store has accepted the next list, however, equal revisions may mean
    /// different states.
    pub(super) fn note(&mut self, class: Class) {
        if class == Class::WentBack {
            self.rolled_back();
        }
        self.is_server_behind |= class == Class::TooLargeResourceVersion;
    }

    /// Records that the server can't serve the last revision. The next list requests the newest state.
    pub(super) fn unavailable(&mut self) {
        self.is_unavailable = true;
    }

    /// Records that a watch from the last revision expired.
    ///
    /// If a watch from the same revision has expired before, or was recorded with [`stuck`](Self::stuck), the
    /// next list requests the newest state.
    pub(super) fn expired(&mut self) {
        self.is_unavailable |= self.is_stuck_at(&self.last);
        self.stuck();
    }

    /// Records that a watch from the last revision expired, sent unreadable data, or sent data that the store
    /// rejected.
    pub(super) fn stuck(&mut self) {
        self.stuck_at = Some(self.last.clone());
    }
}

/// Checks that `revision` is not older than `than`. `revision` is the revision of a list or of a probe
/// response, and `than` is a revision that the server has reached before.
///
/// # Errors
/// Returns a `WentBack` error if `revision` is older, which shows that the server has gone back to an earlier
/// state.
pub(super) fn not_older(revision: &ResourceVersion, than: &ResourceVersion) -> Result<(), Error> {
    if revision < than {
        let what = format!(
            "the server responded at revision {revision}, older than {than}: it was restored from a backup, or is another server"
        );
        return Err(Error::new(Class::WentBack, what));
    }
    Ok(())
}
