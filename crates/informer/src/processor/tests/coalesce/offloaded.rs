//! Tests on which thread a `Coalesce` listener buffer splits a buffered list into one event per object.
//!
//! A long list is split on another thread, and a short list on the current thread.

use super::*;
use crate::{
    indexer::Change,
    offload::{OFFLOADED_MIN, with_held_pool},
};

/// Returns a store with `objects` pods, and a `Coalesce` buffer that contains all of them as one list.
fn behind(objects: usize) -> (World, Arc<Buffer<Pod>>) {
    let mut world = World::new();
    let names: Vec<_> = (0..objects).map(|number| format!("p{number:04}")).collect();
    let objects = names.iter().map(|name| object(name, 1));
    let list = DeltaKind::ReplacedAll {
        objects: objects.collect(),
        revision: 1.into(),
    };
    world.apply(list, true);
    let (_, buffer) = world.join(ListenerBuffer::Coalesce, false);
    (world, buffer)
}

fn one(object: Object<Pod>) -> [Change<Pod>; 1] {
    [Change::Added {
        object,
        in_initial_list: false,
    }]
}

#[test]
fn a_long_list_is_expanded_on_another_thread_and_counts_as_waiting() {
    with_held_pool(async |hold| {
        let (world, buffer) = behind(OFFLOADED_MIN);
        let changes = one(object("x", 2));
        let mut distributed = Box::pin(world.processor.distribute(&changes));
        let held = hold();
        assert!(
            distributed.as_mut().now_or_never().is_none(),
            "this thread is not blocked"
        );
        drop(held);
        while distributed.as_mut().now_or_never().is_none() {
            assert!(buffer.depth() > 0);
            assert!(buffer.until_idle().now_or_never().is_none());
            std::thread::yield_now();
        }
        assert_eq!(buffer.depth(), OFFLOADED_MIN + 1);
        let events = received(&buffer);
        assert_eq!(events.matches('+').count(), OFFLOADED_MIN + 1);
        assert!(events.ends_with("+x@2"), "{events}");
    });
}

#[test]
fn a_listener_closed_before_a_list_is_expanded_discards_all_of_it() {
    with_held_pool(async |hold| {
        let (world, buffer) = behind(OFFLOADED_MIN);
        let changes = one(object("x", 2));
        let mut distributed = Box::pin(world.processor.distribute(&changes));
        let held = hold();
        assert!(distributed.as_mut().now_or_never().is_none());
        buffer.close(Closing::Discard);
        drop(held);
        distributed.await;
        assert_eq!(buffer.depth(), 0);
        assert!(buffer.next().await.is_none());
        assert_eq!(buffer.status().discarded, OFFLOADED_MIN as u64);
    });
}

#[test]
fn a_short_list_is_expanded_in_place() {
    let (world, buffer) = behind(10);
    let changes = one(object("x", 2));
    let distributed = world.processor.distribute(&changes);
    distributed.now_or_never().unwrap();
    assert_eq!(buffer.depth(), 11);
}
