//! Tests which events a [`Filtering`] handler passes to its inner handler.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::{Heard, object, show};
use crate::{
    event_handler::{Event, EventHandler, Filtering},
    indexer::Cause,
    object::{Deleted, Object},
};

struct Noting(Heard);

impl EventHandler<Pod> for Noting {
    async fn handle(&mut self, event: Event<Pod>) {
        self.0.lock().push(show(&event));
    }
}

#[tokio::test]
async fn a_filter_converts_updates_to_additions_and_deletions() {
    let heard = Heard::default();
    let odd = |object: &Object<Pod>| object.revision().to_string().ends_with(['1', '3', '5']);
    let mut filtering = Filtering::new(odd, Noting(Arc::clone(&heard)));
    let added = |at, in_initial_list| Event::Added {
        object: object("a", at),
        in_initial_list,
    };
    let updated = |old, new| Event::Updated {
        old: object("a", old),
        new: object("a", new),
        cause: Cause::Watch,
    };
    let unknown = |at| {
        Event::Deleted(Deleted::FinalStateUnknown {
            name: object("a", at).object_name().clone(),
            last_known: Some(object("a", at)),
        })
    };
    for (event, expected) in [
        (added(1, true), "+a@1!"),
        (updated(1, 3), "~a@1→3"),
        (updated(3, 2), "-a@3"),
        (updated(2, 4), ""),
        (updated(4, 5), "+a@5"),
        (Event::Deleted(Deleted::Known(object("a", 5))), "-a@5"),
        (added(2, true), ""),
        (Event::Deleted(Deleted::Known(object("a", 3))), ""),
        (added(3, false), "+a@3"),
        // An update to a state that does not pass was merged into the deletion.
        (Event::Deleted(Deleted::Known(object("a", 6))), "-a@6"),
        (added(5, false), "+a@5"),
        (unknown(5), "-?a@5"),
        (unknown(5), ""),
        (Event::Synced, "synced"),
    ] {
        let input = show(&event);
        filtering.handle(event).await;
        assert_eq!(
            std::mem::take(&mut *heard.lock()).join(", "),
            expected,
            "{input}"
        );
    }
}
