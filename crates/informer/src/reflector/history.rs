//! [`History`]: how far the store has come in the server's history, and what is known of that history; pure.

use std::cmp::Ordering;

use crate::{
    object::{Epoch, ResourceVersion},
    transport::{Class, Error},
};

/// The place of the store in the server's history.
///
/// | event | what changes |
/// | --- | --- |
/// | the store has accepted a list ([`accepted`](Self::accepted)) | `last`, in the current epoch; the rest is forgotten, except `stuck_at` |
/// | the store has accepted an event ([`observed`](Self::observed)) | `last`, unless the event is older |
/// | the server has gone back ([`rolled_back`](Self::rolled_back)) | the epoch |
/// | it may have ([`suspected`](Self::suspected)) | the epoch |
/// | the server answers that it has not come as far as `last` ([`is_server_behind`](Self::is_server_behind)) | no revision is believed until the next list |
/// | `last` is of no use to the server ([`unavailable`](Self::unavailable)) | the next list requests the newest state |
/// | a watch from `last` expired, or sent what is unreadable or was not accepted ([`expired`](Self::expired), [`stuck`](Self::stuck)) | `stuck_at` |
#[derive(Debug, Default)]
pub(super) struct History {
    /// The newest revision that the store has accepted; unset before the first list. It drops with a list
    /// only.
    last: ResourceVersion,
    /// The epoch of what is received. It differs from that of `last` from a rollback, or the suspicion of one,
    /// until the store has accepted a list.
    epoch: Epoch,
    /// The server can't answer "not older than `last`".
    is_unavailable: bool,
    /// The server has not come as far as `last`: it has gone back, or is one of several that lags behind.
    is_server_behind: bool,
    /// Where a watch expired last, or sent what is of no use. A list at that revision may lead back here
    /// again and again.
    stuck_at: Option<ResourceVersion>,
}

impl History {
    /// The store has everything up to this revision.
    pub(super) fn begin_at(&mut self, revision: ResourceVersion) {
        self.last = revision;
        self.epoch = self.last.epoch();
    }

    /// The newest revision that the store has accepted.
    pub(super) fn last(&self) -> &ResourceVersion {
        &self.last
    }

    /// The epoch that everything is handed on in.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether a watch can begin at the last revision.
    pub(super) fn can_resume(&self) -> bool {
        !(self.last.is_unset() || self.last.is_zero())
    }

    /// What everything there is must not be older than; unset for the newest state.
    pub(super) fn not_older_than(&self) -> ResourceVersion {
        if self.is_unavailable {
            return ResourceVersion::UNSET;
        }
        self.last.clone()
    }

    /// Whether the next list must be of the newest state.
    pub(super) fn is_unavailable(&self) -> bool {
        self.is_unavailable
    }

    /// Whether a list at this revision would lead to where a watch got stuck.
    pub(super) fn is_stuck_at(&self, revision: &ResourceVersion) -> bool {
        self.stuck_at.as_ref() == Some(revision)
    }

    /// Whether the same revision of an object means the same state.
    pub(super) fn believes_revisions(&self) -> bool {
        !self.is_server_behind
    }

    /// A list of this revision is about to be handed on.
    pub(super) fn listed(&mut self, revision: &ResourceVersion) {
        if *revision < self.last {
            self.rolled_back();
        }
    }

    /// The store has accepted a list of this revision.
    pub(super) fn accepted(&mut self, revision: ResourceVersion) {
        self.last = revision.in_epoch(self.epoch);
        self.is_unavailable = false;
        self.is_server_behind = false;
    }

    /// The store has accepted an event of this revision.
    pub(super) fn observed(&mut self, revision: ResourceVersion) {
        if revision.partial_cmp(&self.last) != Some(Ordering::Less) {
            self.last = revision.in_epoch(self.epoch);
        }
    }

    /// The server has gone back.
    pub(super) fn rolled_back(&mut self) {
        self.epoch = self.epoch.after_rollback(self.last.epoch());
    }

    /// The server may have gone back, so no revision proves what the store has.
    pub(super) fn suspected(&mut self) {
        self.epoch = self.epoch.after_suspicion(self.last.epoch());
    }

    /// What a failure says of the server's history. That the server has not come as far as the last revision
    /// may also be said by one of several servers that lags behind; the next list shows which.
    pub(super) fn note(&mut self, class: Class) {
        if class == Class::WentBack {
            self.rolled_back();
        }
        self.is_server_behind |= class == Class::TooLargeResourceVersion;
    }

    /// The server can't answer from the last revision.
    pub(super) fn unavailable(&mut self) {
        self.is_unavailable = true;
    }

    /// A watch expired at the last revision. If one did there before, a list at that revision is of no use.
    pub(super) fn expired(&mut self) {
        self.is_unavailable |= self.is_stuck_at(&self.last);
        self.stuck();
    }

    /// A watch from the last revision would send the same again, which is of no use.
    pub(super) fn stuck(&mut self) {
        self.stuck_at = Some(self.last.clone());
    }
}

/// Whether a list, or an answer to a probe, may be of this revision, given one that the server has had.
///
/// # Errors
/// It is older, so the server has gone back.
pub(super) fn not_older(revision: &ResourceVersion, than: &ResourceVersion) -> Result<(), Error> {
    if revision < than {
        let what = format!(
            "the server answered at revision {revision}, older than {than}: it was restored from a backup, or is another one"
        );
        return Err(Error::new(Class::WentBack, what));
    }
    Ok(())
}
