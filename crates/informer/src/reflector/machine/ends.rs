//! What follows the end of a watch, of a streaming list and of a probe: the second, third and fourth
//! table of the machine.

use std::time::Duration;

use tokio::time::Instant;

use super::{Action, Machine, Next, VERY_SHORT, WatchEnd};
use crate::{
    clock,
    object::ResourceVersion,
    transport::{Class, Error, FrameKind},
};

impl WatchEnd<'_> {
    fn class(&self) -> Option<Class> {
        match self {
            Self::Refused(error)
            | Self::Error(error)
            | Self::Broken(error)
            | Self::Overdue(error) => Some(error.class()),
            Self::LetGo | Self::Closed(_) | Self::Doubted => None,
        }
    }
}

impl Machine {
    /// The watch has ended.
    pub(crate) fn watch_ended(&mut self, end: WatchEnd<'_>, now: Instant) -> Action {
        if let Some(class) = end.class() {
            self.note(class);
        }
        if self.is_streaming() {
            return self.stream_ended(end, now);
        }
        let is_short = matches!(end, WatchEnd::Closed(open_for) if open_for < VERY_SHORT);
        self.short_closes = if is_short { self.short_closes + 1 } else { 0 };
        if matches!(end, WatchEnd::Closed(open_for) if open_for < self.watch_lasts) {
            self.probe.owe();
        }
        match end {
            WatchEnd::Refused(error) => match error.class() {
                Class::TooManyRequests => self.pause(error, now, Next::Watch),
                // Nobody has looked at what was asked for.
                Class::ConnectionRefused | Class::Connection => {
                    if self.has_watched {
                        self.probe.owe();
                    }
                    self.pause(error, now, Next::Watch)
                }
                Class::Expired => self.relist_expired(now),
                _ if error.retry_after().is_some() => self.pause(error, now, Next::Watch),
                _ => self.pause(error, now, Next::List),
            },
            WatchEnd::Error(error) => match error.class() {
                Class::TooManyRequests => self.pause(error, now, Next::Watch),
                Class::Expired => self.relist_expired(now),
                Class::WentBack => {
                    // Not newer than what is known is what this server can't promise.
                    self.last_unavailable = true;
                    self.at_once_after_health(now, Next::List)
                }
                Class::Internal if self.internal_errors.allows(now) => {
                    let action = self.at_once_after_health(now, Next::Watch);
                    if let Action::Sleep(pause) = action {
                        self.internal_errors.paused(pause);
                    }
                    action
                }
                Class::Protocol | Class::Store => {
                    // From here on the same would be told again.
                    self.stuck_at = Some(self.last.clone());
                    self.pause(error, now, Next::List)
                }
                _ => self.pause(error, now, Next::List),
            },
            WatchEnd::Broken(error) | WatchEnd::Overdue(error) => {
                self.probe.owe();
                self.pause(error, now, Next::Watch)
            }
            WatchEnd::Closed(_) if self.short_closes > 1 => {
                self.after_sleep = Next::Watch;
                Action::Sleep(self.backoff.failed(now, &mut self.rng))
            }
            WatchEnd::Doubted => {
                self.doubt();
                self.last_unavailable = true;
                self.at_once_after_health(now, Next::List)
            }
            WatchEnd::Closed(_) | WatchEnd::LetGo => self.resume(now),
        }
    }

    fn relist_expired(&mut self, now: Instant) -> Action {
        self.last_unavailable |= self.stuck_at.as_ref() == Some(&self.last);
        self.stuck_at = Some(self.last.clone());
        self.at_once_after_health(now, Next::List)
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
        self.in_order(&FrameKind::Bookmark, Some(revision))?;
        self.probe.answered(now);
        Ok(self.watch())
    }

    /// The probe was not answered.
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
            Class::TooManyRequests | Class::Connection | Class::Timeout => {
                let action = self.pause(error, now, Next::Watch);
                let pause = match action {
                    Action::Sleep(pause) => pause,
                    _ => Duration::ZERO,
                };
                self.probe.put_off(clock::after(now, pause));
                action
            }
            _ => {
                self.probe.answered(now);
                self.watch()
            }
        }
    }
}
