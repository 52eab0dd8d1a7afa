//! Tests how the processor delivers the changes of a store to listeners, without a controller.

mod buffer;
mod coalesce;
mod filter;
mod join;
mod listener;
mod log;
mod queues;
mod resync;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use expect_test::expect;
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectMeta;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    Buffer, Delivery, Listener, ListenerBuffer, ListenerId, Notification, Processor,
    notification::{Events as _, Expansion},
};
use crate::{
    event_handler::Event,
    indexer::{self, Cause, IndexerWriter, Indexers},
    object::{Deleted, Object, ResourceVersion, SourceId},
    queue::Batch,
    reflector::{Delta, DeltaKind},
};

type Heard = Arc<Mutex<Vec<String>>>;

const BLOCK_2: ListenerBuffer = ListenerBuffer::Block(NonZeroUsize::new(2).unwrap());

fn object(name: &str, revision: u64) -> Object<Pod> {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        resource_version: Some(revision.to_string()),
        ..ObjectMeta::default()
    };
    Object::new(Pod {
        metadata,
        ..Pod::default()
    })
    .unwrap()
}

fn added(name: &str, revision: u64) -> Notification<Pod> {
    Notification::One(Event::Added {
        object: object(name, revision),
        in_initial_list: false,
    })
}

fn show(event: &Event<Pod>) -> String {
    match event {
        Event::Added {
            object,
            in_initial_list,
        } => format!("+{object:?}{}", if *in_initial_list { "!" } else { "" }),
        Event::Updated { old, new, cause } => {
            let cause = match cause {
                Cause::Watch => "",
                Cause::Relist => " relist",
                Cause::Resync => " resync",
            };
            format!("~{old:?}→{}{cause}", new.revision())
        }
        Event::Deleted(Deleted::Known(object)) => format!("-{object:?}"),
        Event::Deleted(Deleted::FinalStateUnknown { last_known, .. }) => {
            format!("-?{:?}", last_known.as_ref().unwrap())
        }
        Event::Synced => "synced".to_owned(),
    }
}

fn buffer(policy: ListenerBuffer) -> (Arc<Buffer<Pod>>, Arc<Notify>) {
    let room = Arc::new(Notify::new());
    let buffer = Buffer::new(policy, Arc::from("test"), Arc::clone(&room));
    (Arc::new(buffer), room)
}

/// Receives all waiting events of a buffer, and returns them as one line of text.
fn received(buffer: &Buffer<Pod>) -> String {
    let mut events = Vec::new();
    while let Some(Some(mut expansion)) = buffer.next().now_or_never() {
        while let Some(event) = expansion.next() {
            events.push(show(&event));
        }
    }
    events.join(", ")
}

/// A store, and a processor that distributes the store's changes.
struct World {
    writer: IndexerWriter<Pod>,
    processor: Processor<Pod>,
    listeners: u64,
}

impl World {
    fn new() -> Self {
        Self {
            writer: indexer::new(Indexers::new()).unwrap().1,
            processor: Processor::new(Duration::from_secs(10), Arc::new(Notify::new())),
            listeners: 0,
        }
    }

    fn join(&mut self, policy: ListenerBuffer, synced: bool) -> (ListenerId, Arc<Buffer<Pod>>) {
        let id = ListenerId(self.listeners);
        self.listeners += 1;
        let buffer = Buffer::new(policy, Arc::from("test"), Arc::clone(&self.processor.room));
        let buffer = Arc::new(buffer);
        let new = Listener {
            id,
            buffer: Arc::clone(&buffer),
            resync: None,
            delivery: Delivery::Changes,
            has_task: false,
        };
        self.processor
            .add(new, None, self.writer.snapshot(), synced);
        (id, buffer)
    }

    fn apply(&mut self, kind: DeltaKind<Pod>, in_initial_list: bool) {
        let batch = Batch {
            deltas: vec![Delta::new(SourceId::default(), kind)],
            in_initial_list,
            completes: None,
            reached: Vec::new(),
        };
        let changes = self.writer.apply(batch).changes;
        let distributed = self.processor.distribute(&changes);
        distributed.now_or_never().expect("nothing is long");
    }

    fn list(&mut self, objects: &[(&str, u64)], in_initial_list: bool) {
        let kind = DeltaKind::ReplacedAll {
            objects: objects.iter().map(|(name, at)| object(name, *at)).collect(),
            revision: ResourceVersion::from(100),
        };
        self.apply(kind, in_initial_list);
    }

    /// Updates the named objects to these revisions in one batch, and distributes the changes.
    fn update(&mut self, objects: &[(&str, u64)]) {
        let updated = |(name, at): &(&str, u64)| {
            let kind = DeltaKind::Updated(object(name, *at));
            Delta::new(SourceId::default(), kind)
        };
        let batch = Batch {
            deltas: objects.iter().map(updated).collect(),
            in_initial_list: false,
            completes: None,
            reached: Vec::new(),
        };
        let changes = self.writer.apply(batch).changes;
        let distributed = self.processor.distribute(&changes);
        distributed.now_or_never().expect("nothing is long");
    }

    fn delete(&mut self, name: &str, revision: u64) {
        self.apply(
            DeltaKind::Deleted(Deleted::Known(object(name, revision))),
            false,
        );
    }
}

#[tokio::test]
async fn every_listener_receives_a_batch_in_order() {
    let mut world = World::new();
    let (_, first) = world.join(ListenerBuffer::Grow, false);
    let (_, second) = world.join(ListenerBuffer::Coalesce, false);
    world.update(&[("b", 1), ("a", 2), ("c", 3)]);
    world.update(&[("c", 4)]);
    assert_eq!(received(&first), "+b@1, +a@2, +c@3, ~c@3→4");
    assert_eq!(received(&second), "+b@1, +a@2, +c@4");
}

#[tokio::test]
async fn a_list_delivers_deletions_first_and_then_its_objects_in_order() {
    let mut world = World::new();
    let (due, with) = world.join(ListenerBuffer::Grow, false);
    let (_, without) = world.join(ListenerBuffer::Grow, false);
    world.list(&[("c", 1), ("a", 2), ("b", 3), ("d", 4)], true);
    assert_eq!(received(&without), "+c@1!, +a@2!, +b@3!, +d@4!");
    assert_eq!(received(&with), "+c@1!, +a@2!, +b@3!, +d@4!");

    world.processor.due.insert(due);
    world.list(&[("e", 5), ("b", 6), ("a", 2)], false);
    assert_eq!(received(&without), "-?c@1, -?d@4, +e@5, ~b@3→6 relist");
    expect!["-?c@1, -?d@4, +e@5, ~b@3→6 relist, ~a@2→2 relist"].assert_eq(&received(&with));

    world.list(&[("e", 5), ("b", 6), ("a", 2)], false);
    assert_eq!(without.depth(), 0, "a list without changes adds no message");
    expect!["~e@5→5 relist, ~b@6→6 relist, ~a@2→2 relist"].assert_eq(&received(&with));
    world.list(&[("e", 5), ("b", 6)], false);
    assert_eq!(received(&without), "-?a@2", "a deletion alone is a change");
}

#[tokio::test]
async fn buffered_events_have_the_states_of_their_time_whatever_the_store_contains() {
    let mut world = World::new();
    let (_, buffer) = world.join(ListenerBuffer::Grow, false);
    world.list(&[("a", 1), ("b", 2)], true);
    world.apply(DeltaKind::Updated(object("a", 3)), false);
    world.list(&[("a", 4)], false);
    world.delete("a", 5);
    let (_, late) = world.join(ListenerBuffer::Grow, true);
    expect!["+a@1!, +b@2!, ~a@1→3, -?b@2, ~a@3→4 relist, -a@5"].assert_eq(&received(&buffer));
    assert_eq!(received(&late), "synced", "the cache is empty");
}

#[tokio::test]
async fn a_late_listener_receives_the_cache_by_name_then_synced_then_changes() {
    let mut world = World::new();
    world.list(&[("b", 1), ("a", 2)], true);
    let (_, early) = world.join(ListenerBuffer::Grow, false);
    assert_eq!(early.depth(), 1, "any number of objects is one message");
    world.processor.synced();
    let (_, late) = world.join(ListenerBuffer::Grow, true);
    world.apply(DeltaKind::Added(object("c", 3)), false);
    world.delete("a", 4);
    for buffer in [early, late] {
        assert_eq!(received(&buffer), "+a@2!, +b@1!, synced, +c@3, -a@4");
    }
}

#[tokio::test]
async fn only_a_due_listener_receives_unchanged_objects() {
    let mut world = World::new();
    let (due, with) = world.join(ListenerBuffer::Grow, false);
    let (_, without) = world.join(ListenerBuffer::Grow, false);
    world.list(&[("a", 1)], true);
    world.processor.due.insert(due);
    received(&with);
    received(&without);
    let both = |world: &mut World, kind| {
        world.apply(kind, false);
        (received(&with), received(&without))
    };
    let same = |text: &str| (text.to_owned(), text.to_owned());
    let only = |text: &str| (text.to_owned(), String::new());

    let kind = DeltaKind::Updated(object("a", 1));
    assert_eq!(
        both(&mut world, kind),
        same("~a@1→1"),
        "a watch event is always delivered"
    );
    let kind = DeltaKind::Replaced(object("a", 1));
    assert_eq!(both(&mut world, kind), only("~a@1→1 relist"));
    let kind = DeltaKind::Replaced(object("a", 2));
    assert_eq!(both(&mut world, kind), same("~a@1→2 relist"));
    let kind = DeltaKind::Sync(object("a", 2));
    assert_eq!(both(&mut world, kind), only("~a@2→2 resync"));
    assert_eq!(both(&mut world, DeltaKind::SyncAll), only("~a@2→2 resync"));

    world.processor.remove(due);
    world.apply(DeltaKind::SyncAll, false);
    assert_eq!(without.depth(), 0);
}

#[tokio::test]
async fn a_removed_listener_receives_nothing_and_blocks_no_other() {
    let mut world = World::new();
    let (id, gone) = world.join(BLOCK_2, false);
    let (_, stays) = world.join(ListenerBuffer::Grow, false);
    world.list(&[("a", 1)], true);
    world.apply(DeltaKind::Updated(object("a", 2)), false);
    assert_eq!(
        world.processor.room(),
        0,
        "the fullest buffer determines the room"
    );
    assert!(world.processor.room_made().now_or_never().is_none());
    world.processor.remove(id);
    world.processor.remove(id);
    assert_eq!(world.processor.room(), usize::MAX);
    assert!(
        world.processor.room_made().now_or_never().is_some(),
        "the controller is woken"
    );
    world.apply(DeltaKind::Updated(object("a", 3)), false);
    assert!(gone.next().now_or_never().unwrap().is_none());
    assert_eq!(received(&stays), "+a@1!, ~a@1→2, ~a@2→3");
}

#[tokio::test]
async fn a_dropped_processor_closes_every_buffer() {
    let mut world = World::new();
    let (_, buffer) = world.join(ListenerBuffer::Grow, true);
    drop(world);
    assert!(buffer.is_discarding());
    assert!(buffer.next().now_or_never().unwrap().is_none());
}

#[test]
fn a_snapshot_is_delivered_piece_by_piece_while_the_store_changes() {
    let mut world = World::new();
    world.list(&[("a", 1), ("b", 2), ("c", 3)], true);
    let snapshot = world.writer.snapshot();
    let mut expansion = Expansion::new(Notification::Resync(snapshot));
    assert_eq!(show(&expansion.next().unwrap()), "~a@1→1 resync");
    world.list(&[("c", 9)], false);
    let rest: Vec<_> = std::iter::from_fn(|| expansion.next())
        .map(|event| show(&event))
        .collect();
    assert_eq!(rest, ["~b@2→2 resync", "~c@3→3 resync"]);
    assert!(expansion.next().is_none());
}
