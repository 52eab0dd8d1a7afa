//! Plants bugs in the simulated informer: deliberate defects that the simulation must find.
//!
//! The bugs are in the simulation's own code around the library, such as wrappers of the informer's queue and
//! handlers. The library itself is unchanged.

mod source;
mod waiting;

pub(crate) use self::{source::Spoilt, waiting::queue};

use std::collections::BTreeMap;

use harness::bugs;
use kube_informer::{Event, EventHandler, Object, Snapshot};
use parking_lot::Mutex;

bugs! {
    pub(crate) enum Bug {
        EventLost: "a watch event that does not arrive",
        WatchFromNow: "a watch that starts at the current revision",
        GoneIgnored: "a 410 that is handled like the end of a watch",
        RetriedAtOnce: "a rejected request that is retried without backoff",
        FirstPageOnly: "a first page that is used as the whole list",
        BookmarkTooEarly: "a streaming list that ends before its objects",
        BodyLeaked: "a body that is never dropped",
        TaskLeaked: "a task that outlives its watch",
        DeletionIgnored: "a deletion that is not queued",
        UnchangedToldToAll: "an unchanged list delivered to every handler",
        ResyncOvertakes: "a resync that overtakes a change",
        SyncedTooEarly: "has-synced after the first batch",
        NeverSynced: "a list that is never complete",
        RevisionTooEarly: "a revision that the store has not reached",
        LateWithoutBarrier: "a late handler that misses changes during its registration",
        BoundIgnored: "a bounded buffer that grows",
        StaleIndexValue: "a stale index value",
        RetryAfterIgnored: "a Retry-After that is ignored",
        OldEventListed: "a list in response to an event of an old object",
        ListedAfterOutage: "a list after a temporarily rejected watch",
        ResyncForgotten: "a resync that is not delivered",
        CapacityIgnored: "a queue without a limit",
        Panics: "a reflector that panics",
        LapseUnreported: "a lapse that is not reported",
        BrokenUncounted: "a broken object that stays listed",
    }
}

/// Event handler that omits the `Added` events of the initial list if `skips` is true.
pub(crate) struct Late<H> {
    handler: H,
    skips: bool,
}

impl<H> Late<H> {
    pub(crate) fn new(handler: H, skips: bool) -> Self {
        Self { handler, skips }
    }
}

impl<K: Send + Sync + 'static, H: EventHandler<K>> EventHandler<K> for Late<H> {
    async fn handle(&mut self, event: Event<K>) {
        let initial = matches!(
            event,
            Event::Added {
                in_initial_list: true,
                ..
            }
        );
        if !(self.skips && initial) {
            self.handler.handle(event).await;
        }
    }
}

/// Returns whether a snapshot of the cache still contains `object`, which failed to decode.
///
/// An informer must replace such an [`Object`] in the cache by another one. The function therefore compares
/// with [`Object::is_same`]. With [`Bug::BrokenUncounted`], the function compares only the name and the
/// revision. The result is then the same as if the informer had not replaced `object`.
pub(crate) fn lists<K>(bug: Option<Bug>, snapshot: &Snapshot<K>, object: &Object<K>) -> bool {
    let kept = snapshot.get(object.object_name());
    let is_kept = kept.is_some_and(|kept| kept.is_same(object));
    // With the bug a decode failure changes nothing: the old state stays until the next one arrives.
    is_kept
        || bug == Some(Bug::BrokenUncounted)
            && kept.is_some_and(|kept| kept.revision() == object.revision())
}

/// Returns the value of the index `third`: the label `v` modulo 3.
pub(crate) fn third(value: u32) -> String {
    (value % 3).to_string()
}

/// Returns the function that computes the value of the index `third`.
///
/// The arguments of this function are the name of an object and the number in its label `v`. With
/// [`Bug::StaleIndexValue`], the function always uses the first number that it received for the name.
pub(crate) fn index_function(bug: Option<Bug>) -> impl Fn(&str, u32) -> String + Send + Sync {
    let first = Mutex::new(BTreeMap::new());
    move |name, value| {
        if bug == Some(Bug::StaleIndexValue) {
            let mut first = first.lock();
            return third(*first.entry(name.to_owned()).or_insert(value));
        }
        third(value)
    }
}
