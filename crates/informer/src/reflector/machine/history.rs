//! What is noticed of a server that has gone back, or may have: the last table of the machine.

use tokio::time::Instant;

use super::{Action, Machine, Next, RollbackDetection};
use crate::{
    object::{ResourceVersion, Timeline},
    transport::{Class, Error, FrameKind},
};

impl Machine {
    /// What the store has is of this revision, and everything is to be asked for nevertheless. Who
    /// brought it may have noticed something of the server since, and can't say so any more.
    pub(crate) fn not_before(&mut self, revision: ResourceVersion) {
        self.last = revision;
        self.timeline = self.last.timeline();
        if !self.last.is_unset() {
            self.doubt();
        }
    }

    /// The store has everything up to here, from before.
    pub(crate) fn begin_at(&mut self, revision: ResourceVersion) {
        self.last = revision;
        self.timeline = self.last.timeline();
        self.has_watched = true;
    }

    /// Whether an event has a revision below the last one.
    ///
    /// Revisions without an order are not compared, nor are the existing objects with which a watch
    /// from `""` or `"0"` begins.
    pub(crate) fn is_below_last(&self, kind: &FrameKind, revision: &ResourceVersion) -> bool {
        let counts = self.advances || *kind != FrameKind::Added;
        counts && *revision < self.last
    }

    /// An event below the last revision has arrived; `cached` is the revision at which the cache has an
    /// object of that name. The event is to be applied, unless it contradicts the cache.
    ///
    /// Aggregated API servers send such events regularly: granting access to an old object is an addition
    /// at an old revision. So the server is asked once, and if it knows the last revision, the collection
    /// counts as unordered until its next list.
    ///
    /// The uid does not matter: names are unique, so an older object behind a name that the cache has
    /// newer exists on a server only that has gone back. Revisions of another timeline are not compared:
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
        let comparable = cached.filter(|cached| cached.timeline() == self.timeline);
        if let Some(newer) = comparable.filter(|cached| revision < *cached) {
            let what = format!(
                "the watch sent an object at revision {revision} that the cache has at {newer}: the server was restored from a backup, or is another one"
            );
            return Err(Error::new(Class::WentBack, what));
        }
        if !self.is_unordered {
            self.probe.suspect();
        }
        Ok(())
    }

    /// Whether a list, or an answer to a probe, may be of this revision, given one that the server has
    /// had.
    ///
    /// # Errors
    /// It is older, so the server has gone back.
    pub(super) fn not_older(
        revision: &ResourceVersion,
        than: &ResourceVersion,
    ) -> Result<(), Error> {
        if revision < than {
            let what = format!(
                "the server answered at revision {revision}, older than {than}: it was restored from a backup, or is another one"
            );
            return Err(Error::new(Class::WentBack, what));
        }
        Ok(())
    }

    /// The timeline that everything is handed on with.
    pub(crate) fn timeline(&self) -> Timeline {
        self.timeline
    }

    /// A list of this revision is about to be handed on.
    pub(crate) fn listed(&mut self, revision: &ResourceVersion) {
        if *revision < self.last {
            self.go_back();
        }
    }

    /// The server may have gone back: what the store has can't be compared with a list by revisions.
    pub(crate) fn doubt(&mut self) {
        self.timeline = self.timeline.after_doubt(self.last.timeline());
    }

    /// The same, and it is certain.
    fn go_back(&mut self) {
        self.timeline = self.timeline.after_setback(self.last.timeline());
    }

    /// A doubt has come while watching, or at the end of a list that has left known objects undecoded.
    pub(crate) fn list_doubted(&mut self, now: Instant) -> Action {
        self.doubt();
        self.last_unavailable = true;
        self.at_once_after_health(now, Next::List)
    }

    /// Whether a state that the server tells next is the one that is known, if its revision is.
    pub(crate) fn believes_revisions(&self) -> bool {
        !self.is_behind
    }

    /// What a failure says of the server's history. That it has not come as far as the last revision
    /// is also what one of several servers says that lags behind: whether it is that, the next list shows.
    pub(super) fn note(&mut self, class: Class) {
        if class == Class::WentBack {
            self.go_back();
        }
        self.is_behind |= class == Class::TooLargeResourceVersion;
    }
}
