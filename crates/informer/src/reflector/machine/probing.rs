//! Decides when a probe is sent: before a watch, or in parallel to an open watch. A probe is a LIST with
//! `limit=1`. It requests at least the newest revision that the store has accepted. The response shows
//! whether the server still knows this revision.
//!
//! A probe is required after a watch
//!
//! - lost its connection, was refused a connection, or received no response headers;
//! - was closed before its server-side timeout;
//! - was rejected with 502, 503 or 504;
//! - sent an event that is older than the newest revision that the store has accepted.
//!
//! A required probe is due at once, but at the earliest one minute after the last answered probe. If a watch
//! is open when the probe is due, the probe is sent in parallel to the watch. Otherwise, the probe is sent
//! before the next watch.
//!
//! No probe is sent if [`RollbackDetection`](crate::reflector::RollbackDetection) is disabled, or if
//! [`ListerWatcher::streams_lists`](crate::transport::ListerWatcher::streams_lists) returns false.
//!
//! In the tables, *later another probe* means that another probe is due one minute after the pause that
//! follows the failure. Each further failure doubles this minute, up to one hour.
//!
//! | a probe before a watch | is followed by |
//! | --- | --- |
//! | was answered at the requested revision or a newer one | the watch, at once |
//! | failed with "too large resource version", or was answered at an older revision | a list of the newest state, at once |
//! | was refused a connection | the same probe, after a pause |
//! | failed with 401, 429, 502, 503 or 504, lost its connection, or got no response | the watch, after a pause; later another probe |
//! | failed with any other error | the watch, at once |
//!
//! | a probe in parallel to an open watch | is followed by |
//! | --- | --- |
//! | was answered at the requested revision or a newer one | nothing: the watch continues |
//! | failed with "too large resource version", or was answered at an older revision | the end of the watch, and a list of the newest state, at once |
//! | was refused a connection, failed with 401, 429, 502, 503 or 504, lost its connection, or got no response | nothing: the watch continues; later another probe. If the watch ends, the next watch is requested only after a pause that begins with the failure |
//! | failed with any other error | nothing: the watch continues |

use tokio::time::Instant;

use super::{Action, Machine, Next, State, not_older};
use crate::{
    clock,
    object::ResourceVersion,
    reflector::probe::probe_options,
    transport::{Class, Error, ListOptions},
};

impl Machine {
    /// Returns the next action after a watch has ended or a pause is over:
    ///
    /// - a pause, if a probe failed while the watch was open, and the pause after this failure is not over;
    /// - otherwise a probe, if one is due;
    /// - otherwise a watch.
    ///
    /// A probe is a LIST of one object, which shows whether the server has gone back to an earlier state.
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

    /// Disables all probes, for a `ListerWatcher` that may ignore `resourceVersionMatch`. Probes require this
    /// option.
    pub(crate) fn skip_probes(&mut self) {
        self.probe.disable();
    }

    /// Returns whether a probe must be sent while the watch is open. The probe may not be due yet.
    ///
    /// A probe is a LIST of one object, which shows whether the server has gone back to an earlier state.
    pub(crate) fn requires_probe(&self) -> bool {
        self.probe.is_required() && self.history.can_resume() && !self.is_streaming()
    }

    /// Returns when a probe of the open watch is due, and the options of the probe's request. Returns `None`
    /// if no probe is required.
    ///
    /// The options change with the events of the watch. When the probe is due, the caller must call this
    /// method again, and use the new options.
    pub(crate) fn watch_probe(&self, now: Instant) -> Option<(Instant, ListOptions)> {
        let due = self.probe.due_at(now).filter(|_| self.requires_probe())?;
        Some((due, probe_options(self.last_revision().clone())))
    }

    /// Records the response to a probe before a watch, and returns the action that opens the watch.
    ///
    /// # Errors
    /// Returns an error if the response's `revision` is older than the newest revision that the store has
    /// accepted. The caller must pass the error to [`Machine::probe_failed`].
    pub(crate) fn probed(
        &mut self,
        revision: &ResourceVersion,
        now: Instant,
    ) -> Result<Action, Error> {
        not_older(revision, self.last_revision())?;
        self.probe.answered(now);
        Ok(self.watch())
    }

    /// Records the response to a probe that was sent in parallel to an open watch. The probe requested the
    /// revision `asked`, and returned `revision`.
    ///
    /// Returns true if a watch has sent an event or bookmark older than the newest accepted revision. The
    /// response shows that the server has not gone back, so the server sends events out of order. Between two
    /// lists, at most one call returns true.
    ///
    /// # Errors
    /// Returns an error if `revision` is older than `asked`. The caller must pass the error to
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

    /// Returns the next action after a probe failed or returned a revision older than requested.
    ///
    /// If a watch is open, call this method only if `error` shows that the server may have gone back to an
    /// earlier state, and end the watch first. After any other error, call [`Machine::watch_probe_failed`]
    /// instead.
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

    /// Records that a probe has failed while a watch is open. The watch continues.
    ///
    /// `error` must not show that the server may have gone back to an earlier state.
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

/// Returns whether another probe may succeed after an error of this class.
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
