//! Whether the server serves an informer's kind at all, and what to do when that changes.
//!
//! That it does not is believed of two witnesses only: the kind's definition was deleted, and the
//! server answers the kind's own requests with 404. One alone may be wrong: a definition can be heard
//! of late, and a 404 also comes from a server that is just starting, or when one version of several is
//! no longer served, and then the objects are still there.

use tokio::sync::watch;

use crate::{
    status::{Activity, SourceStatus, Status, StatusReader},
    transport::Class,
};

/// What is known of the definition of a kind.
#[cfg_attr(
    not(feature = "client"),
    expect(dead_code, reason = "only a factory follows definitions")
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Definition {
    /// Nothing: perhaps the kind has none, as the server's own.
    #[default]
    Unknown,
    /// It is there. Told again with each of its changes.
    There,
    /// It was there, and was deleted.
    Deleted,
}

/// What the reflectors of an informer are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// To begin anew, at once.
    Reflect,
    /// To say that nothing is there any more, and to ask nobody.
    Rest,
}

/// Looks at both witnesses.
pub(super) struct Following {
    definition: watch::Receiver<Definition>,
    status: StatusReader,
    resting: bool,
}

impl Following {
    pub(super) fn new(definition: watch::Receiver<Definition>, status: StatusReader) -> Self {
        Self {
            definition,
            status,
            resting: false,
        }
    }

    /// Waits until the reflectors are to do something else.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn turn(&mut self) -> Turn {
        let mut is_news = self.definition.has_changed().unwrap_or_default();
        loop {
            let refused = is_refused(&self.status.get());
            let definition = *self.definition.borrow_and_update();
            match (definition, self.resting) {
                (Definition::Deleted, false) if refused => {
                    self.resting = true;
                    return Turn::Rest;
                }
                (Definition::There, true) => {
                    self.resting = false;
                    return Turn::Reflect;
                }
                // Its change may be what was waited for: it is established, or its version is served.
                (Definition::There, false) if refused && is_news => return Turn::Reflect,
                _ => {}
            }
            let alive = tokio::select! {
                biased;
                told = self.definition.changed() => {
                    is_news = true;
                    told.is_ok()
                }
                status = self.status.changed() => {
                    is_news = false;
                    status.is_some()
                }
            };
            if !alive {
                // Nobody will say anything more.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Waits until the reflectors are to do something else; for ever if nothing is followed.
pub(super) async fn next_turn(following: Option<&mut Following>) -> Turn {
    match following {
        Some(following) => following.turn().await,
        None => std::future::pending().await,
    }
}

/// Whether some source has just been told that there is no such kind.
fn is_refused(status: &Status) -> bool {
    let refused = |source: &SourceStatus| {
        let error = source.last_error.as_ref();
        matches!(source.activity, Activity::BackingOff { attempt, .. } if attempt > 0)
            && error.is_some_and(|error| error.class() == Class::NotFound)
    };
    status.sources.iter().any(refused)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use futures_util::FutureExt;

    use super::*;
    use crate::{object::SourceId, status::StatusWriter, transport::Error};

    fn following() -> (watch::Sender<Definition>, StatusWriter, Following) {
        let (told, definition) = watch::channel(Definition::Unknown);
        let status = StatusWriter::new(1);
        let following = Following::new(definition, status.reader());
        (told, status, following)
    }

    fn refuse(status: &StatusWriter) {
        let source = SourceId::default();
        status.failed(source, &Arc::new(Error::new(Class::NotFound, "no")));
        status.back_off(source, Duration::from_secs(1), 1);
    }

    #[test]
    fn what_was_told_before_a_refusal_is_no_reason_to_ask_again_at_once() {
        let (told, status, mut following) = following();
        let mut turn = Box::pin(following.turn());
        told.send_replace(Definition::There);
        assert_eq!(turn.as_mut().now_or_never(), None);
        refuse(&status);
        assert_eq!(
            turn.as_mut().now_or_never(),
            None,
            "it is refused all the same"
        );
        told.send_replace(Definition::There);
        assert_eq!(turn.now_or_never(), Some(Turn::Reflect));
    }

    #[test]
    fn when_nobody_says_anything_any_more_nothing_changes() {
        let (told, status, mut following_nobody) = following();
        drop(told);
        assert_eq!(following_nobody.turn().now_or_never(), None);
        refuse(&status);
        assert_eq!(following_nobody.turn().now_or_never(), None);
        let (_told, status, mut following) = following();
        drop(status);
        assert_eq!(following.turn().now_or_never(), None);
    }

    #[test]
    fn what_was_told_before_anybody_looked_is_news_and_what_was_seen_is_not() {
        let (told, status, mut following) = following();
        refuse(&status);
        told.send_replace(Definition::There);
        assert_eq!(following.turn().now_or_never(), Some(Turn::Reflect));
        assert_eq!(following.turn().now_or_never(), None, "nothing is new");
        told.send_replace(Definition::There);
        assert_eq!(following.turn().now_or_never(), Some(Turn::Reflect));
    }

    #[test]
    fn a_kind_is_refused_while_it_is_backed_off_from_for_a_404_and_no_longer() {
        let back_off = |attempt| Activity::BackingOff {
            pause: Duration::from_secs(1),
            attempt,
        };
        for (class, activity, expected) in [
            (Class::NotFound, back_off(1), true),
            (Class::NotFound, back_off(0), false),
            (Class::NotFound, Activity::Watching, false),
            (Class::NotFound, Activity::Opening, false),
            (Class::Forbidden, back_off(1), false),
        ] {
            let mut sources = vec![SourceStatus::default(); 2];
            sources[1].activity = activity;
            sources[1].last_error = Some(Arc::new(Error::new(class, "no")));
            let status = Status {
                sources,
                ..Status::default()
            };
            assert_eq!(is_refused(&status), expected, "{class:?}, {activity:?}");
        }
    }
}
