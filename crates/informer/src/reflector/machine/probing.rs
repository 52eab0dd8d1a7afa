//! When a probe is sent, before a watch or beside an open one, and what follows it: the fourth table of the
//! machine.

use tokio::time::Instant;

use super::{Action, Machine, Next, State, not_older};
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
            return self.sleep(rest, Next::Watch);
        }
        if !self.history.can_resume() || !self.probe.is_due(now) {
            return self.watch();
        }
        self.state = State::Probing;
        Action::Probe(probe_options(self.last_revision().clone()))
    }

    /// Sends no probes: the source need not know what they request.
    pub(crate) fn skip_probes(&mut self) {
        self.probe.disable();
    }

    /// Whether a probe is to be sent beside the watch that is open, now or later.
    pub(crate) fn requires_probe(&self) -> bool {
        self.probe.is_required() && self.history.can_resume() && !self.is_streaming()
    }

    /// When the probe beside the open watch is due, and what it requests. Read it again when it is due, for
    /// the watch goes on meanwhile.
    pub(crate) fn watch_probe(&self, now: Instant) -> Option<(Instant, ListOptions)> {
        let due = self.probe.due_at(now).filter(|_| self.requires_probe())?;
        Some((due, probe_options(self.last_revision().clone())))
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
        not_older(revision, self.last_revision())?;
        self.probe.answered(now);
        Ok(self.watch())
    }

    /// The probe beside an open watch was answered, at this revision; `asked` is the one it requested,
    /// which the watch may have left behind. Returns whether the collection counts as unordered for it.
    ///
    /// # Errors
    /// The server has gone back; to be reported, to end the watch, and passed to
    /// [`Machine::probe_failed`].
    pub(crate) fn watch_probe_answered(
        &mut self,
        asked: &ResourceVersion,
        revision: &ResourceVersion,
        now: Instant,
    ) -> Result<bool, Error> {
        not_older(revision, asked)?;
        Ok(self.probe.answered(now))
    }

    /// The probe was not answered, or at an older revision; no watch is open.
    pub(crate) fn probe_failed(&mut self, error: &Error, now: Instant) -> Action {
        let class = error.class();
        self.history.note(class);
        match class {
            Class::TooLargeResourceVersion | Class::WentBack => {
                self.probe.answered(now);
                self.history.unavailable();
                self.everything(now)
            }
            Class::ConnectionRefused => self.pause(error, now, Next::Watch),
            _ if is_temporary(class) => {
                let pause = self.pause_after(error, now);
                self.probe.put_off(clock::after(now, pause));
                self.sleep(pause, Next::Watch)
            }
            _ => {
                self.probe.answered(now);
                self.watch()
            }
        }
    }

    /// The probe beside an open watch was not answered, which says nothing about the server's history. The
    /// watch goes on; if it ends before the pause that the failure calls for, that is waited for.
    pub(crate) fn watch_probe_failed(&mut self, error: &Error, now: Instant) {
        let class = error.class();
        if class == Class::ConnectionRefused || is_temporary(class) {
            let until = clock::after(now, self.pause_after(error, now));
            self.held_until = Some(until);
            self.probe.put_off(until);
        } else {
            self.probe.answered(now);
        }
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
