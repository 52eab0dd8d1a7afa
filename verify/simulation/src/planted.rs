//! Bugs on purpose: a simulation that does not find them is worth nothing.
//!
//! Each is a faulty implementation behind a seam of the library, or what a user would see of one.

mod source;
mod waiting;

pub(crate) use self::{source::Spoilt, waiting::queue};

use std::{collections::BTreeMap, fmt};

use kube_informer::{Event, EventHandler, Object, Snapshot};
use parking_lot::Mutex;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Now and then a watch event does not arrive.
    EventLost,
    /// A watch begins at the present instead of where the last one ended.
    WatchFromNow,
    /// That a revision is gone is taken for the end of a watch.
    GoneIgnored,
    /// What is refused is asked for again at once.
    RetriedAtOnce,
    /// The first page passes for the whole list.
    FirstPageOnly,
    /// A streaming list is an empty one.
    BookmarkTooEarly,
    /// Nobody lets go of a watch's body.
    BodyLeaked,
    /// A task goes on behind each watch.
    TaskLeaked,
    /// Now and then a deletion is not queued.
    DeletionIgnored,
    /// A list tells everyone of everything that it brings.
    UnchangedToldToAll,
    /// A resync queues what has newer changes waiting.
    ResyncOvertakes,
    /// The first batch completes the first list.
    SyncedTooEarly,
    /// The first list is never complete.
    NeverSynced,
    /// The store says that it is where its queue is.
    RevisionTooEarly,
    /// What happens while a handler joins passes it by.
    LateWithoutBarrier,
    /// A bounded buffer grows.
    BoundIgnored,
    /// An index keeps the first value of an object.
    StaleIndexValue,
    /// How long a server wants to be left alone is not heard.
    PatienceIgnored,
    /// An event below the last revision is taken for a setback.
    OldEventListed,
    /// A watch that is refused for now is followed by a list.
    ListedAfterOutage,
    /// Nobody is told everything again.
    ResyncForgotten,
    /// Any number of changes wait for the cache.
    CapacityIgnored,
    /// A reflector panics when a watch is refused.
    Panics,
    /// A write that lapses is not reported.
    LapseUnreported,
    /// An object that could not be decoded when it was read is listed and not counted.
    BrokenUncounted,
}

impl Bug {
    /// All of them.
    pub(crate) const ALL: [Self; 25] = [
        Self::EventLost,
        Self::WatchFromNow,
        Self::GoneIgnored,
        Self::RetriedAtOnce,
        Self::FirstPageOnly,
        Self::BookmarkTooEarly,
        Self::BodyLeaked,
        Self::TaskLeaked,
        Self::DeletionIgnored,
        Self::UnchangedToldToAll,
        Self::ResyncOvertakes,
        Self::SyncedTooEarly,
        Self::NeverSynced,
        Self::RevisionTooEarly,
        Self::LateWithoutBarrier,
        Self::BoundIgnored,
        Self::StaleIndexValue,
        Self::PatienceIgnored,
        Self::OldEventListed,
        Self::ListedAfterOutage,
        Self::ResyncForgotten,
        Self::CapacityIgnored,
        Self::Panics,
        Self::LapseUnreported,
        Self::BrokenUncounted,
    ];
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EventLost => "a watch event that does not arrive",
            Self::WatchFromNow => "a watch that begins at the present",
            Self::GoneIgnored => "a 410 taken for the end of a watch",
            Self::RetriedAtOnce => "a refusal that is not backed off from",
            Self::FirstPageOnly => "a first page that passes for the list",
            Self::BookmarkTooEarly => "a streaming list that ends before its objects",
            Self::BodyLeaked => "a body that nobody lets go of",
            Self::TaskLeaked => "a task that outlives its watch",
            Self::DeletionIgnored => "a deletion that is not queued",
            Self::UnchangedToldToAll => "an unchanged list told to everyone",
            Self::ResyncOvertakes => "a resync that overtakes a change",
            Self::SyncedTooEarly => "has-synced with the first batch",
            Self::NeverSynced => "a list that is never complete",
            Self::RevisionTooEarly => "a revision that the store has not reached",
            Self::LateWithoutBarrier => "a late handler without the barrier",
            Self::BoundIgnored => "a bounded buffer that grows",
            Self::StaleIndexValue => "a stale index value",
            Self::PatienceIgnored => "a pause that was asked for and is not made",
            Self::OldEventListed => "a list because of an event of an old object",
            Self::ListedAfterOutage => "a list after a watch that was refused for now",
            Self::ResyncForgotten => "a resync that nobody hears",
            Self::CapacityIgnored => "a queue without a bound",
            Self::Panics => "a reflector that panics",
            Self::LapseUnreported => "a lapse that is not reported",
            Self::BrokenUncounted => "a broken object that stays listed",
        })
    }
}

/// A handler that does not hear what was there when it began.
pub(crate) struct Late<H> {
    handler: H,
    skips: bool,
}

impl<H> Late<H> {
    /// Spoils a handler, if it is to be spoilt.
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

/// Whether a cache lists an object in this very state.
pub(crate) fn lists<K>(bug: Option<Bug>, snapshot: &Snapshot<K>, object: &Object<K>) -> bool {
    let kept = snapshot.get(object.object_name());
    let is_kept = kept.is_some_and(|kept| kept.is_same(object));
    // With the bug the reader's failure changes nothing: the state is listed until the next one arrives.
    is_kept
        || bug == Some(Bug::BrokenUncounted)
            && kept.is_some_and(|kept| kept.revision() == object.revision())
}

/// What the index of thirds says of a value.
pub(crate) fn third(value: u32) -> String {
    (value % 3).to_string()
}

/// The function of the index of thirds: of an object's name and value.
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
