//! When a probe is sent, before a watch or beside an open one, and what follows it: the fourth table of the
//! machine.

use tokio::time::Instant;

use super::{Action, Machine, Next, RollbackDetection};
use crate::{
    clock,
    object::ResourceVersion,
    reflector::probe::probe_options,
    transport::{Class, Error, ListOptions},
};

impl Machine {
    /// The watch from where the last one ended, or first a look whether the server knows that place.
    pub(super) fn resume(&mut self, now: Instant) -> Action {
        let held = self.held_until.take();
        if let Some(rest) = held.and_then(|until| until.checked_duration_since(now))
            && !rest.is_zero()
        {
            self.after_sleep = Next::Watch;
            return Action::Sleep(rest);
        }
        if !self.probes() || !self.probe.is_due(now) {
            return self.watch();
        }
        Action::Probe(probe_options(self.last.clone()))
    }

    /// Sends no probes: the source need not know what they request.
    pub(crate) fn skip_probes(&mut self) {
        self.skips_probes = true;
    }

    /// Whether the server can be asked if it knows the last revision.
    fn probes(&self) -> bool {
        let wanted = self.options.rollback_detection() == RollbackDetection::Enabled;
        wanted && !self.skips_probes && self.is_ordered()
    }

    /// Whether a probe is to be sent beside the watch that is open, now or later.
    pub(crate) fn owes_probe(&self) -> bool {
        self.probe.is_owed() && self.probes() && !self.is_streaming()
    }

    /// When the probe beside the open watch is due, and what it requests. Read it again when it is due, for
    /// the watch goes on meanwhile.
    pub(crate) fn probe_beside(&self, now: Instant) -> Option<(Instant, ListOptions)> {
        let due = self.probe.due_at(now).filter(|_| self.owes_probe())?;
        Some((due, probe_options(self.last.clone())))
    }

    /// The probe was answered, at this revision.
    ///
    /// # Errors
    /// The server has gone back; to be reported, and passed to [`Machine::probe_failed`].
    pub(crate) fn probed(
        &mut self,
        revision: &ResourceVersion,
        now: Instant,
    ) -> Result<Action, Error> {
        Self::not_older(revision, &self.last)?;
        self.probe_answered(now);
        Ok(self.watch())
    }

    /// The probe beside an open watch was answered, at this revision; `asked` is the one it requested,
    /// which the watch may have left behind. Returns whether the collection counts as unordered for it.
    ///
    /// # Errors
    /// The server has gone back; to be reported, to end the watch, and passed to
    /// [`Machine::probe_failed`].
    pub(crate) fn probed_beside(
        &mut self,
        asked: &ResourceVersion,
        revision: &ResourceVersion,
        now: Instant,
    ) -> Result<bool, Error> {
        Self::not_older(revision, asked)?;
        let was_unordered = self.is_unordered;
        self.probe_answered(now);
        Ok(self.is_unordered && !was_unordered)
    }

    /// The server knows the last revision, or does not answer such questions.
    fn probe_answered(&mut self, now: Instant) {
        self.is_unordered |= self.probe.answered(now);
    }

    /// The probe was not answered, or at an older revision; no watch is open.
    pub(crate) fn probe_failed(&mut self, error: &Error, now: Instant) -> Action {
        let class = error.class();
        self.note(class);
        match class {
            Class::TooLargeResourceVersion | Class::WentBack => {
                self.probe.answered(now);
                self.last_unavailable = true;
                self.everything(now)
            }
            Class::ConnectionRefused => self.pause(error, now, Next::Watch),
            _ if is_temporary(class) => {
                let (action, until) = self.pause_until(error, now);
                self.probe.put_off(until);
                action
            }
            _ => {
                self.probe_answered(now);
                self.watch()
            }
        }
    }

    /// The probe beside an open watch was not answered, which says nothing about the server's history. The
    /// watch goes on; if it ends before the pause that the failure calls for, that is waited for.
    pub(crate) fn probe_failed_beside(&mut self, error: &Error, now: Instant) {
        let class = error.class();
        if class == Class::ConnectionRefused || is_temporary(class) {
            let (_, until) = self.pause_until(error, now);
            self.held_until = Some(until);
            self.probe.put_off(until);
        } else {
            self.probe_answered(now);
        }
    }

    /// The pause after a failure, and when it is over.
    fn pause_until(&mut self, error: &Error, now: Instant) -> (Action, Instant) {
        let action = self.pause(error, now, Next::Watch);
        let until = match action {
            Action::Sleep(pause) => clock::after(now, pause),
            _ => now,
        };
        (action, until)
    }
}

/// Whether the server may answer later what it refuses now.
fn is_temporary(class: Class) -> bool {
    matches!(
        class,
        Class::TooManyRequests
            | Class::Connection
            | Class::Timeout
            | Class::Unavailable
            | Class::Unauthorized
    )
}
