//! What is noticed of a server that has gone back, or may have: the last table of the machine.

use super::Machine;
use crate::{
    object::{ResourceVersion, Timeline},
    transport::{Class, Error, FrameKind},
};

impl Machine {
    /// Whether an event may be handed on, or is from a state before the one that is known.
    ///
    /// Revisions without an order are not compared, nor are the existing objects with which a watch
    /// from `""` or `"0"` begins.
    ///
    /// # Errors
    /// The server has gone back; to be reported, and to end the watch.
    pub(crate) fn in_order(
        &self,
        kind: &FrameKind,
        revision: Option<&ResourceVersion>,
    ) -> Result<(), Error> {
        let counts = self.advances || *kind != FrameKind::Added;
        match revision {
            Some(revision) if counts && *revision < self.last => {
                let last = &self.last;
                let what = format!(
                    "the server told revision {revision} after {last}: it was put back, or is another one"
                );
                Err(Error::new(Class::WentBack, what))
            }
            _ => Ok(()),
        }
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
