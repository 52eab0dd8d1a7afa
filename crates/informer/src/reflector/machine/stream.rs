//! Streaming lists: how they are asked for, when they are complete, and what follows one that does not
//! come to its end: the second table of the machine.

use std::time::Duration;

use tokio::time::Instant;

use super::{Action, Machine, Next, State, Stream, WATCH_TIMEOUT_MIN, Watch, WatchEnd, not_older};
use crate::{
    codec::FrameKind,
    object::ResourceVersion,
    transport::{Class, Error, ListOptions, ResourceVersionMatch},
};

impl Machine {
    /// Whether a streaming list is under way and has not told its end.
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

    /// The store has accepted what the streaming list brought, as of its end's revision.
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

    /// An event of a streaming list has come, which is not its end; `is_new` if it brought an object
    /// that this stream had not brought.
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

    /// Whether the end of a streaming list may be of this revision.
    ///
    /// # Errors
    /// It is older than what was asked for; to be reported, and to end the watch.
    pub(crate) fn end_in_order(&self, revision: &ResourceVersion) -> Result<(), Error> {
        if self.history.is_unavailable() {
            return Ok(());
        }
        not_older(revision, self.last_revision())
    }

    /// When the end of a streaming list is no longer waited for.
    pub(crate) fn initial_events_deadline(&self) -> Option<Instant> {
        let State::Streaming(stream) = &self.state else {
            return None;
        };
        Some(stream.deadline(self.options.timeouts().initial_events))
    }

    /// The streaming list has ended before its end bookmark, or with it, if the store did not accept
    /// what it brought.
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
            WatchEnd::Closed(_) | WatchEnd::Overdue(_) | WatchEnd::LetGo => self.list_instead(now),
        }
    }

    /// A streaming list has no objects, and the cache has some. A LIST of the newest state confirms it, for
    /// the server's cache may be what is empty.
    pub(crate) fn list_unconfirmed(&mut self) -> Action {
        self.history.unavailable();
        self.list()
    }

    /// The server does not stream lists, or not to their end.
    fn list_instead(&mut self, now: Instant) -> Action {
        self.streaming.refused(now);
        self.list()
    }

    /// Once more, unless it has been in vain too often; after a pause if something was wrong.
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
