//! Requests streaming lists, and decides which request follows their end, according to the section "Streaming
//! lists" in the documentation of the `machine` module.

use std::time::Duration;

use tokio::time::Instant;

use super::{Action, Machine, Next, State, Stream, WATCH_TIMEOUT_MIN, Watch, WatchEnd, not_older};
use crate::{
    codec::FrameKind,
    object::ResourceVersion,
    transport::{Class, Error, ListOptions, ResourceVersionMatch},
};

impl Machine {
    /// Returns whether a streaming list is in progress.
    ///
    /// A streaming list is in progress from its request until the store has accepted the list.
    pub(crate) fn is_streaming(&self) -> bool {
        matches!(self.state, State::Streaming(_))
    }

    pub(super) fn stream(&mut self, now: Instant) -> Action {
        let (lasts, options) = self.watch_options();
        self.state = State::Streaming(Stream::new(lasts, now));
        Action::Stream(ListOptions {
            resource_version: self.history.not_older_than(),
            resource_version_match: Some(ResourceVersionMatch::NotOlderThan),
            send_initial_events: Some(true),
            ..options
        })
    }

    /// Records that the store has accepted a streaming list whose end bookmark has this revision.
    pub(crate) fn streamed(&mut self, revision: ResourceVersion, now: Instant) {
        self.accepted(revision, now);
        self.streaming.succeeded();
        self.has_watched = true;
        let lasts = match &self.state {
            State::Streaming(stream) => stream.lasts(),
            State::Watching(watch) => watch.lasts,
            _ => Duration::ZERO,
        };
        self.state = State::Watching(Watch {
            lasts,
            advances: self.history.can_resume(),
        });
    }

    /// Records an event of a streaming list, except the end bookmark.
    ///
    /// `is_new` is true if the event adds an object that the list does not contain yet.
    pub(crate) fn initial_event(
        &mut self,
        kind: &FrameKind,
        revision: Option<&ResourceVersion>,
        is_new: bool,
        now: Instant,
    ) {
        if let State::Streaming(stream) = &mut self.state {
            stream.event(kind, revision, is_new, now);
        }
    }

    /// Checks that an end bookmark is not older than the newest revision in the store.
    ///
    /// # Errors
    /// Returns an error if the end bookmark is older, unless the list requested the newest state.
    pub(crate) fn end_in_order(&self, revision: &ResourceVersion) -> Result<(), Error> {
        if self.history.is_unavailable() {
            return Ok(());
        }
        not_older(revision, self.last_revision())
    }

    /// Returns the deadline for the end bookmark of a streaming list in progress.
    pub(crate) fn initial_events_deadline(&self) -> Option<Instant> {
        let State::Streaming(stream) = &self.state else {
            return None;
        };
        Some(stream.deadline(self.options.timeouts().initial_events))
    }

    /// Returns the next action after a streaming list that ended without its end bookmark, or that the store
    /// rejected.
    pub(super) fn stream_ended(&mut self, end: WatchEnd<'_>, now: Instant) -> Action {
        match end {
            WatchEnd::Refused(error) | WatchEnd::Unanswered(error) | WatchEnd::Error(error) => {
                match error.class() {
                    Class::TooManyRequests | Class::ConnectionRefused | Class::Store => {
                        self.pause(error, now, Next::List)
                    }
                    Class::Expired | Class::TooLargeResourceVersion => {
                        let at_a_revision = !self.history.not_older_than().is_unset();
                        self.history.unavailable();
                        if at_a_revision {
                            return self.stream(now);
                        }
                        self.stream_again(Some(error), now)
                    }
                    Class::WentBack => {
                        self.history.unavailable();
                        self.at_once_after_health(now, Next::List)
                    }
                    Class::Connection | Class::Timeout => self.stream_again(Some(error), now),
                    Class::VeryShortWatch => self.stream_again(None, now),
                    Class::Invalid => self.list_instead(now),
                    _ if matches!(end, WatchEnd::Refused(_)) && error.retry_after().is_some() => {
                        self.pause(error, now, Next::List)
                    }
                    _ => self.list(),
                }
            }
            WatchEnd::Broken(error) => self.stream_again(Some(error), now),
            WatchEnd::Closed(open_for) if open_for < WATCH_TIMEOUT_MIN => {
                self.stream_again(None, now)
            }
            WatchEnd::RelistRequested => self.relist_requested(now),
            WatchEnd::Unconfirmed => self.list_unconfirmed(),
            WatchEnd::Closed(_) | WatchEnd::Overdue(_) | WatchEnd::StoreFull => {
                self.list_instead(now)
            }
        }
    }

    /// Returns the next action after a streaming list without objects, if the cache contains objects.
    ///
    /// The action is a LIST of the newest state. The server's watch cache may be incomplete, so the LIST must
    /// confirm that the objects no longer exist.
    pub(crate) fn list_unconfirmed(&mut self) -> Action {
        self.history.unavailable();
        self.list()
    }

    /// Disables streaming lists for the next hour, and returns the action that sends a LIST.
    fn list_instead(&mut self, now: Instant) -> Action {
        self.streaming.refused(now);
        self.list()
    }

    /// Returns the next action after a streaming list that ended before its end bookmark.
    ///
    /// The third such end in a row causes a LIST.
    fn stream_again(&mut self, error: Option<&Error>, now: Instant) -> Action {
        if self.streaming.broke_off(now) {
            return self.list();
        }
        match error {
            Some(error) => self.pause(error, now, Next::List),
            None => self.at_once_after_health(now, Next::List),
        }
    }
}
