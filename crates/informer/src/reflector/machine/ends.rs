//! Decides which request follows the end of a watch, according to the section "Watches" in the documentation
//! of the `machine` module.

use tokio::time::Instant;

use super::{Action, Machine, Next, VERY_SHORT, WatchEnd};
use crate::transport::Class;

impl WatchEnd<'_> {
    fn class(&self) -> Option<Class> {
        match self {
            Self::Refused(error)
            | Self::Unanswered(error)
            | Self::Error(error)
            | Self::Broken(error)
            | Self::Overdue(error) => Some(error.class()),
            Self::StoreFull | Self::Closed(_) | Self::RelistRequested | Self::Unconfirmed => None,
        }
    }
}

impl Machine {
    /// Records the end of a watch or streaming list, and returns the reflector's next action.
    pub(crate) fn watch_ended(&mut self, end: WatchEnd<'_>, now: Instant) -> Action {
        if let Some(class) = end.class() {
            self.history.note(class);
        }
        if self.is_streaming() {
            return self.stream_ended(end, now);
        }
        let is_short = matches!(end, WatchEnd::Closed(open_for) if open_for < VERY_SHORT);
        self.short_closes = if is_short { self.short_closes + 1 } else { 0 };
        if matches!(end, WatchEnd::Closed(open_for) if open_for < self.watch_lasts()) {
            self.probe.require();
        }
        match end {
            WatchEnd::Refused(error) => self.watch_refused(error, now),
            WatchEnd::Unanswered(error) => self.watch_unanswered(error, now),
            WatchEnd::Error(error) => match error.class() {
                Class::TooManyRequests => self.pause(error, now, Next::Watch),
                Class::Expired => self.relist_expired(now),
                Class::WentBack => {
                    // The server can't serve a state that is at least as new as the last revision.
                    self.history.unavailable();
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
                    // A watch from this revision would send the same data again.
                    self.history.stuck();
                    self.pause(error, now, Next::List)
                }
                _ => self.pause(error, now, Next::List),
            },
            WatchEnd::Broken(error) | WatchEnd::Overdue(error) => {
                self.probe.require();
                self.pause(error, now, Next::Watch)
            }
            WatchEnd::Closed(_) if self.short_closes > 1 => {
                let pause = self.backoff.failed(now, &mut self.rng);
                self.sleep(pause, Next::Watch)
            }
            WatchEnd::RelistRequested => self.relist_requested(now),
            WatchEnd::Closed(_) | WatchEnd::StoreFull | WatchEnd::Unconfirmed => self.resume(now),
        }
    }

    pub(super) fn relist_expired(&mut self, now: Instant) -> Action {
        self.history.expired();
        self.at_once_after_health(now, Next::List)
    }
}
