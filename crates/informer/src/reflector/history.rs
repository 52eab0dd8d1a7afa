//! Tracks the store's position in the server's history of revisions, and whether the server has gone back to
//! an earlier state, for example after a restore from a backup.
//!
//! The module does no I/O.

use std::cmp::Ordering;

use crate::{
    object::{Epoch, ResourceVersion},
    transport::{Class, Error},
};

/// The store's position in the server's history of revisions. An epoch is the part of the history between two
/// rollbacks of the server to an earlier state.
///
/// | event | effect |
/// | --- | --- |
/// | the store has accepted a list ([`accepted`](Self::accepted)) | sets `last` in the current epoch; clears `is_unavailable` and `is_server_behind` |
/// | the store has accepted an event ([`observed`](Self::observed)) | sets `last`, unless the event is older |
/// | the server has gone back to an earlier state ([`rolled_back`](Self::rolled_back)) | sets `epoch` to a later one than that of `last` |
/// | the server may have gone back to an earlier state ([`suspected`](Self::suspected)) | sets `epoch` to a later one than that of `last` |
/// | the server responds that `last` is too new for it ([`note`](Self::note)) | sets `is_server_behind`: equal revisions may mean different states |
/// | the server can't serve `last` ([`unavailable`](Self::unavailable)) | sets `is_unavailable`: the next list requests the newest state |
/// | a watch from `last` expired ([`expired`](Self::expired)) | sets `stuck_at`, or `is_unavailable` if `stuck_at` is already `last` |
/// | a watch from `last` sent unreadable or rejected data ([`stuck`](Self::stuck)) | sets `stuck_at` |
#[derive(Debug, Default)]
pub(super) struct History {
    /// The newest revision that the store has accepted; unset before the first list. Only a list can decrease
    /// it.
    last: ResourceVersion,
    /// The epoch of the revisions that the reflector receives. A new epoch begins when the server has gone
    /// back to an earlier state, or may have. The epoch of `last` is an earlier one until the store has
    /// accepted a list.
    epoch: Epoch,
    /// Whether the server can't serve a state that is at least as new as `last`.
    is_unavailable: bool,
    /// Whether the server responded that it has not reached `last`. Either the server has gone back to an
    /// earlier state, or it is one of several servers and lags behind.
    is_server_behind: bool,
    /// Revision from which the last failed watch expired, or sent data that was unreadable or that the store
    /// rejected. A list at exactly this revision may lead to the same failure again.
    stuck_at: Option<ResourceVersion>,
}

impl History {
    /// Sets the last revision to one up to which the store was filled before the reflector started.
    pub(super) fn begin_at(&mut self, revision: ResourceVersion) {
        self.last = revision;
        self.epoch = self.last.epoch();
    }

    /// Returns the newest revision that the store has accepted.
    pub(super) fn last(&self) -> &ResourceVersion {
        &self.last
    }

    /// Returns the epoch of the revisions that the reflector receives.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns whether a watch can begin at the last revision.
    pub(super) fn can_resume(&self) -> bool {
        !(self.last.is_unset() || self.last.is_zero())
    }

    /// Returns the minimum revision for the request of the next list; unset to request the newest state.
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

    /// Returns whether a watch from this revision has failed in a way that would recur after a list at
    /// exactly this revision.
    pub(super) fn is_stuck_at(&self, revision: &ResourceVersion) -> bool {
        self.stuck_at.as_ref() == Some(revision)
    }

    /// Returns whether equal revisions of an object mean equal states. The result is false after the server
    /// responded that it has not reached the last revision, until the next list.
    pub(super) fn believes_revisions(&self) -> bool {
        !self.is_server_behind
    }

    /// Records the revision of a complete list before the list is sent to the store. A revision below the
    /// last one shows that the server has gone back to an earlier state.
    pub(super) fn listed(&mut self, revision: &ResourceVersion) {
        if *revision < self.last {
            self.rolled_back();
        }
    }

    /// Records that the store has accepted a list at this revision.
    pub(super) fn accepted(&mut self, revision: ResourceVersion) {
        self.last = revision.in_epoch(self.epoch);
        self.is_unavailable = false;
        self.is_server_behind = false;
    }

    /// Records that the store has accepted an event at this revision. A revision below the last one has no
    /// effect.
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

    /// Records what the class of a failure shows about the server's history.
    ///
    /// `WentBack` shows that the server has gone back to an earlier state. `TooLargeResourceVersion` does
    /// not, because it may come from one of several servers that lags behind.
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

    /// Records that a watch from the last revision expired. If a watch from the same revision has failed
    /// before, the next list requests the newest state.
    pub(super) fn expired(&mut self) {
        self.is_unavailable |= self.is_stuck_at(&self.last);
        self.stuck();
    }

    /// Records that a watch from the last revision would fail in the same way again.
    pub(super) fn stuck(&mut self) {
        self.stuck_at = Some(self.last.clone());
    }
}

/// Checks that the revision of a list or a probe response is not older than `than`, a revision that the
/// server has had.
///
/// # Errors
/// Returns a `WentBack` error if the revision is older, which shows that the server has gone back to an
/// earlier state.
pub(super) fn not_older(revision: &ResourceVersion, than: &ResourceVersion) -> Result<(), Error> {
    if revision < than {
        let what = format!(
            "the server responded at revision {revision}, older than {than}: it was restored from a backup, or is another server"
        );
        return Err(Error::new(Class::WentBack, what));
    }
    Ok(())
}
