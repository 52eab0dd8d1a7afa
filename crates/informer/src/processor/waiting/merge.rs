//! What two messages about one object come to: the later state, told from the state that was told
//! last.
//!
//! | waits | comes | is told |
//! | --- | --- | --- |
//! | added | updated | added, with the newest state |
//! | added | deleted | nothing |
//! | updated | updated | one update, from the first `old` to the newest `new` |
//! | updated | deleted | deleted |
//! | deleted | added | both, one after the other |
//! | both | anything | the deletion, and what the table makes of the rest |
//!
//! A deletion is never merged into an update: what a deletion shows is not what was told last, which
//! an update's `old` has to be, and who cleans up after an object has to hear that it was gone.

use crate::{event_handler::Event, indexer::Cause, processor::notification::Notification};

/// What is left to tell; `None` if nothing is. Neither message is of several objects.
pub(super) fn merged<K>(waits: Notification<K>, comes: Notification<K>) -> Option<Notification<K>> {
    match (waits, comes) {
        (Notification::One(gone @ Event::Deleted(_)), Notification::One(again)) => {
            Some(Notification::Both(gone, again))
        }
        (Notification::One(first), Notification::One(next)) => {
            event(first, next).map(Notification::One)
        }
        (Notification::Both(gone, again), Notification::One(next)) => {
            Some(match event(again, next) {
                Some(again) => Notification::Both(gone, again),
                None => Notification::One(gone),
            })
        }
        (_, comes) => {
            debug_assert!(
                false,
                "messages are merged one event of one object at a time"
            );
            Some(comes)
        }
    }
}

/// The same for two events, the first of which is not a deletion.
fn event<K>(first: Event<K>, next: Event<K>) -> Option<Event<K>> {
    Some(match (first, next) {
        (
            Event::Added {
                in_initial_list, ..
            },
            Event::Updated { new, .. },
        ) => Event::Added {
            object: new,
            in_initial_list,
        },
        (Event::Added { .. }, Event::Deleted(_)) => return None,
        (
            Event::Updated {
                old, cause: first, ..
            },
            Event::Updated { new, cause, .. },
        ) => Event::Updated {
            old,
            new,
            cause: both(first, cause),
        },
        // A deletion behind an update; nothing else is in the history of an object.
        (_, next) => next,
    })
}

/// Why an update is told that was made of two: for the last change, which a resync is not.
fn both(first: Cause, next: Cause) -> Cause {
    match next {
        Cause::Resync => first,
        Cause::Watch | Cause::Relist => next,
    }
}
