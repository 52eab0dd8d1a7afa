//! Merges two messages about one object: the result leads from the last delivered state to the latest state.
//!
//! | waiting | new | delivered |
//! | --- | --- | --- |
//! | added | updated | added, with the newest state |
//! | added | deleted | nothing |
//! | updated | updated | one update, from the first `old` to the newest `new` |
//! | updated | deleted | deleted |
//! | deleted | added | both, in this order |
//! | both | any | the deletion, then the addition merged with the new message by this table |
//!
//! A deletion and an addition are never merged into an update. An update's `old` must be the last delivered
//! state, but the state of a deletion may differ from it. Handlers that clean up after an object must also
//! receive its deletion.

use crate::{event_handler::Event, indexer::Cause, processor::notification::Notification};

/// Merges a waiting message with a newer message of the same object. Returns `None` if nothing remains to
/// deliver.
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

/// Merges two events of one object. Returns `None` if nothing remains to deliver. `first` must not be a
/// deletion.
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

/// Returns the cause of two merged updates: the cause of the last update that is not a resync.
fn both(first: Cause, next: Cause) -> Cause {
    match next {
        Cause::Resync => first,
        Cause::Watch | Cause::Relist => next,
    }
}
