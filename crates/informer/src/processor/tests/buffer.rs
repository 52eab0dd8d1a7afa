//! Tests a listener's buffer.
//!
//! To detect missing wake-ups, tests poll futures manually and check which changes wake them.

use std::sync::Arc;

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::Instant;
use tokio_test::{assert_pending, assert_ready, task::spawn};

use super::{BLOCK_2, World, added, buffer, received, show};
use crate::{
    event_handler::{Event, EventHandler},
    processor::{
        Closing, Events as _, Expansion, ListenerBuffer, Listening, Notification, SyncReport,
        listen,
    },
};

#[test]
fn a_push_wakes_a_waiting_listener() {
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    let mut next = spawn(buffer.next());
    assert!(next.poll().is_pending());
    buffer.push(added("a", 1));
    assert!(next.is_woken());
    let mut expansion = assert_ready!(next.poll()).unwrap();
    assert_eq!(show(&expansion.next().unwrap()), "+a@1");
    assert!(expansion.next().is_none());
}

#[test]
fn a_push_of_several_events_wakes_the_listener_and_an_empty_one_does_not() {
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    let mut next = spawn(buffer.next());
    assert!(next.poll().is_pending());
    buffer.push_all([], Instant::now());
    assert!(!next.is_woken());
    buffer.push_all([added("a", 1), added("b", 2)], Instant::now());
    assert!(next.is_woken());
    drop(next);
    assert_eq!(buffer.depth(), 2);
    assert_eq!(received(&buffer), "+a@1, +b@2");
}

#[test]
fn a_close_of_either_kind_wakes_a_waiting_listener() {
    for closing in [Closing::Discard, Closing::Drain(Instant::now())] {
        let (buffer, _) = buffer(ListenerBuffer::Grow);
        let mut next = spawn(buffer.next());
        assert!(next.poll().is_pending());
        buffer.close(closing);
        assert!(next.is_woken());
        assert!(assert_ready!(next.poll()).is_none());
    }
}

#[test]
fn a_woken_next_that_is_dropped_loses_no_event_and_no_wake_up() {
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    let mut dropped = spawn(buffer.next());
    assert!(dropped.poll().is_pending());
    buffer.push(added("a", 1));
    drop(dropped);
    assert_eq!(received(&buffer), "+a@1");
    let mut next = spawn(buffer.next());
    // A permit of the dropped future may remain. The future must be waiting afterwards.
    while next.poll().is_pending() && next.is_woken() {}
    buffer.push(added("b", 2));
    assert!(next.is_woken());
}

#[test]
fn an_empty_buffer_allocates_nothing_and_the_memory_of_a_burst_is_released() {
    for policy in [ListenerBuffer::Grow, ListenerBuffer::Coalesce, BLOCK_2] {
        let (buffer, _) = buffer(policy);
        assert_eq!(buffer.capacity(), 0);
        for n in 0..10_000 {
            buffer.push(added(&n.to_string(), 1));
        }
        assert_eq!(buffer.depth(), 10_000);
        assert!(buffer.capacity() >= 10_000);
        received(&buffer);
        assert!(buffer.capacity() < 2500, "{}", buffer.capacity());
    }
}

#[test]
fn a_drain_delivers_buffered_events_and_accepts_no_new_ones() {
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    buffer.push(added("a", 1));
    buffer.close(Closing::Drain(Instant::now()));
    buffer.push(added("b", 2));
    assert!(!buffer.is_discarding());
    assert_eq!(received(&buffer), "+a@1");
    assert!(buffer.next().now_or_never().unwrap().is_none());
    assert_eq!(buffer.status().discarded, 0);
}

#[test]
fn a_discard_counts_events_and_a_later_drain_does_not_revert_it() {
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    let mut world = World::new();
    let old = world.writer.snapshot();
    world.list(&[("a", 1), ("b", 2), ("c", 3)], true);
    buffer.push(Notification::Join(world.writer.snapshot()));
    buffer.push(Notification::One(Event::Synced));
    buffer.push(Notification::Resync(world.writer.snapshot()));
    buffer.push(Notification::Resync(old));
    buffer.close(Closing::Discard);
    assert_eq!((buffer.status().discarded, buffer.depth()), (3 + 1 + 3, 0));
    buffer.close(Closing::Drain(Instant::now()));
    assert!(buffer.is_discarding());
    assert!(buffer.next().now_or_never().unwrap().is_none());
}

#[test]
fn a_buffer_is_idle_once_the_listener_requests_the_next_event() {
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    assert_ready!(spawn(buffer.until_idle()).poll());
    buffer.push(added("a", 1));
    let (mut first, mut second) = (spawn(buffer.until_idle()), spawn(buffer.until_idle()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    let expansion = buffer.next().now_or_never().unwrap();
    assert_eq!(buffer.depth(), 1, "the event is being handled");
    assert_pending!(first.poll());
    drop(expansion);
    let mut next = spawn(buffer.next());
    assert!(next.poll().is_pending());
    assert!(first.is_woken() && second.is_woken());
    assert_ready!(first.poll());
    assert_ready!(second.poll());
    let mut ended = spawn(buffer.until_ended());
    assert_pending!(ended.poll());
}

#[test]
fn the_end_of_a_listener_resolves_every_wait_even_if_it_was_never_polled() {
    let (buffer, room) = buffer(BLOCK_2);
    let (synced, _, is_synced) = SyncReport::new();
    let listening = listen(
        Quiet,
        Listening::new(&buffer, Expansion::default()),
        Arc::from("test"),
        synced,
    );
    buffer.push(added("a", 1));
    buffer.push(added("b", 2));
    let (mut idle, mut ended) = (spawn(buffer.until_idle()), spawn(buffer.until_ended()));
    let mut room = spawn(room.notified());
    assert_pending!(idle.poll());
    assert_pending!(ended.poll());
    assert_pending!(room.poll());
    assert_eq!(buffer.room(), 0);
    drop(listening);
    assert!(idle.is_woken() && ended.is_woken() && room.is_woken());
    assert_ready!(idle.poll());
    assert_ready!(ended.poll());
    assert_eq!(
        buffer.room(),
        usize::MAX,
        "it does not limit the controller"
    );
    assert!(
        is_synced.has_changed().is_err(),
        "it will never have synced"
    );
}

#[test]
fn a_block_buffer_has_room_for_its_capacity_and_each_receive_wakes_the_controller() {
    let (unlimited, _) = buffer(ListenerBuffer::Grow);
    unlimited.push(added("a", 1));
    assert_eq!(unlimited.room(), usize::MAX);

    let (buffer, room) = buffer(BLOCK_2);
    assert_eq!(buffer.room(), 2);
    for (revision, left) in [(1, 1), (2, 0), (3, 0)] {
        buffer.push(added("a", revision));
        assert_eq!(buffer.room(), left, "it still accepts events");
    }
    let mut room = spawn(room.notified());
    assert_pending!(room.poll());
    buffer.next().now_or_never().unwrap();
    assert!(room.is_woken());
    assert_eq!(buffer.room(), 0);
    buffer.close(Closing::Drain(Instant::now()));
    assert_eq!(
        buffer.room(),
        usize::MAX,
        "a closed buffer does not limit the controller"
    );
}

#[test]
fn a_close_of_a_full_block_buffer_wakes_the_controller() {
    let (buffer, room) = buffer(BLOCK_2);
    buffer.push(added("a", 1));
    let mut room = spawn(room.notified());
    assert_pending!(room.poll());
    buffer.close(Closing::Discard);
    assert!(room.is_woken());
}

struct Quiet;

impl EventHandler<Pod> for Quiet {
    async fn handle(&mut self, _: Event<Pod>) {}
}
