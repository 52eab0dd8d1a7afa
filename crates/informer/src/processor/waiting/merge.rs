//! Merges two messages about one object into one message. The merged message describes the change from the
//! last delivered state to the latest state of the object.
//!
//! | waiting message | new message | merged message |
//! | --- | --- | --- |
//! | added | updated | added, with the newest state |
//! | added | deleted | nothing |
//! | updated | updated | one update, from the first `old` to the newest `new` |
//! | updated | deleted | deleted |
//! | deleted | added | deleted, then added |
//! | deleted, then added | any | the deletion, then the result of merging the addition with the new message |
//!
//! A deletion and a later addition are never merged into an update. Handlers that clean up after an object
//! must receive the deletion.

use crate::{event_handler::Event, indexer::Cause, processor::notification::Notification};

/// Merges two messages about one object, or returns `None` if nothing remains to deliver.
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

/// Merges two events of one object, or returns `None` if nothing remains to deliver.
///
/// `first` must not be a deletion.
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
        // A deletion after an update; no other sequence occurs for an object.
        (_, next) => next,
    })
}

/// Returns the cause of two merged updates: `next`, or `first` if `next` is a resync.
fn both(first: Cause, next: Cause) -> Cause {
    match next {
        Cause::Resync => first,
        Cause::Watch | Cause::Relist => next,
    }
}
