//! Tracks the last revision, which is the newest revision that the store has accepted.
//!
//! Also detects that the server has gone back to an earlier state, for example after a restore from a backup.
//! The module does no I/O.

use std::cmp::Ordering;

use crate::{
    object::{Epoch, ResourceVersion},
    transport::{Class, Error},
};

/// The newest revision that the store has accepted, and failures that affect the next list.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Newest revision that the store has accepted, unset before the first list.
    ///
    /// Lists can decrease this revision, events can't.
    last: ResourceVersion,
    /// Epoch of the revisions that the reflector receives now.
    ///
    /// A new epoch starts when the server has or may have gone back to an earlier state. The revision in
    /// `last` keeps its earlier epoch until the store accepts the next list.
    epoch: Epoch,
    /// Whether the server can't serve `last`, so that the next list requests the newest state.
    is_unavailable: bool,
    /// Whether the server has reported that its newest revision is older than `last`.
    ///
    /// The server may then have been restored from a backup, so equal revisions may mean different states.
    is_server_behind: bool,
    /// Newest revision that the store had accepted when a watch most recently expired or sent unusable data.
    stuck_at: Option<ResourceVersion>,
}

impl History {
    /// Sets the last revision to the revision of a store that already contains objects.
    pub(super) fn begin_at(&mut self, revision: ResourceVersion) {
        self.last = revision;
        self.epoch = self.last.epoch();
    }

    pub(super) fn last(&self) -> &ResourceVersion {
        &self.last
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns whether a watch can begin at the last revision.
    pub(super) fn can_resume(&self) -> bool {
        !(self.last.is_unset() || self.last.is_zero())
    }

    /// Returns the minimum revision of the next list. An unset revision means that the list must request the
    /// newest state.
    pub(super) fn not_older_than(&self) -> ResourceVersion {
        if self.is_unavailable {
            return ResourceVersion::UNSET;
        }
        self.last.clone()
    }

    pub(super) fn is_unavailable(&self) -> bool {
        self.is_unavailable
    }

    /// Returns whether another watch from `revision` would probably fail.
    ///
    /// This is the case if `revision` was the last revision when a watch most recently expired or sent
    /// unusable data.
    pub(super) fn is_stuck_at(&self, revision: &ResourceVersion) -> bool {
        self.stuck_at.as_ref() == Some(revision)
    }

    /// Returns whether the reflector can treat two states of an object with the same revision as equal.
    ///
    /// Returns false after the server has reported "too large resource version", until the store accepts the
    /// next list. The server may have been restored from a backup, and may then have used a revision twice.
    pub(super) fn believes_revisions(&self) -> bool {
        !self.is_server_behind
    }

    /// Starts a new [`Epoch`] if the revision of a complete list is older than the last revision.
    ///
    /// Such a list shows that the server has gone back to an earlier state. The method must be called before
    /// the store receives the list.
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

    /// Records that the store has accepted an event. An older revision has no effect.
    pub(super) fn observed(&mut self, revision: ResourceVersion) {
        if revision.partial_cmp(&self.last) != Some(Ordering::Less) {
            self.last = revision.in_epoch(self.epoch);
        }
    }

    /// Starts a new [`Epoch`] of revisions, because the server has gone back to an earlier state.
    pub(super) fn rolled_back(&mut self) {
        self.epoch = self.epoch.after_rollback(self.last.epoch());
    }

    /// Starts a new [`Epoch`] of revisions, because the server may have gone back to an earlier state.
    pub(super) fn suspected(&mut self) {
        self.epoch = self.epoch.after_suspicion(self.last.epoch());
    }

    /// Updates the history after a request has failed with an error of this class.
    pub(super) fn note(&mut self, class: Class) {
        if class == Class::WentBack {
            self.rolled_back();
        }
        // The server may only lag behind other servers, so no epoch starts.
        self.is_server_behind |= class == Class::TooLargeResourceVersion;
    }

    /// Records that the server can't serve the last revision.
    pub(super) fn unavailable(&mut self) {
        self.is_unavailable = true;
    }

    /// Records that a watch from the last revision expired.
    ///
    /// If a watch from this revision has failed before ([`stuck`](Self::stuck)), also records that the server
    /// can't serve the revision.
    pub(super) fn expired(&mut self) {
        self.is_unavailable |= self.is_stuck_at(&self.last);
        self.stuck();
    }

    /// Records that a watch from the last revision expired or sent unusable data.
    pub(super) fn stuck(&mut self) {
        self.stuck_at = Some(self.last.clone());
    }
}

/// Checks that a response's `revision` is not older than `than`, which the server has reached before.
///
/// # Errors
/// Returns a `WentBack` error if `revision` is older.
pub(super) fn not_older(revision: &ResourceVersion, than: &ResourceVersion) -> Result<(), Error> {
    if revision < than {
        let what = format!(
            "the server responded at revision {revision}, older than {than}: it was restored from a backup, or is another server"
        );
        return Err(Error::new(Class::WentBack, what));
    }
    Ok(())
}
