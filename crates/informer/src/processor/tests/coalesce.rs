//! Tests how a `Coalesce` buffer merges the waiting events of an object.

mod model;
mod offloaded;

use super::*;
use crate::processor::Closing;

fn is_resync(buffer: &Buffer<Pod>) -> bool {
    buffer.is_resyncing()
}

fn updated(name: &str, old: u64, new: u64, cause: Cause) -> Notification<Pod> {
    Notification::One(Event::Updated {
        old: object(name, old),
        new: object(name, new),
        cause,
    })
}

fn deleted(name: &str, revision: u64) -> Notification<Pod> {
    Notification::One(Event::Deleted(Deleted::Known(object(name, revision))))
}

fn initial(name: &str, revision: u64) -> Notification<Pod> {
    Notification::One(Event::Added {
        object: object(name, revision),
        in_initial_list: true,
    })
}

/// Adds messages to a `Coalesce` buffer, and returns its events and the number of coalesced events.
fn merged(messages: impl IntoIterator<Item = Notification<Pod>>) -> (String, u64) {
    let (buffer, _) = buffer(ListenerBuffer::Coalesce);
    for message in messages {
        buffer.push(message);
    }
    (received(&buffer), buffer.status().coalesced)
}

#[test]
fn waiting_events_of_an_object_are_merged_into_one_from_its_last_delivered_state() {
    use Cause::Watch;

    let update = |old, new| updated("a", old, new, Watch);
    for (messages, expected, coalesced) in [
        (vec![added("a", 1), update(1, 2)], "+a@2", 1),
        (vec![initial("a", 1), update(1, 2)], "+a@2!", 1),
        (vec![added("a", 1), deleted("a", 2)], "", 2),
        (
            vec![added("a", 1), deleted("a", 2), added("a", 3)],
            "+a@3",
            2,
        ),
        (vec![update(1, 2), update(2, 3), update(3, 4)], "~a@1→4", 2),
        (vec![update(1, 2), deleted("a", 3)], "-a@3", 1),
        (vec![deleted("a", 2), added("a", 3)], "-a@2, +a@3", 0),
        (
            vec![update(1, 2), deleted("a", 3), added("a", 4), update(4, 5)],
            "-a@3, +a@5",
            2,
        ),
        (
            vec![deleted("a", 2), added("a", 3), deleted("a", 4)],
            "-a@2",
            2,
        ),
        (
            vec![
                deleted("a", 2),
                added("a", 3),
                deleted("a", 4),
                added("a", 5),
            ],
            "-a@2, +a@5",
            2,
        ),
    ] {
        assert_eq!(merged(messages), (expected.to_owned(), coalesced));
    }
}

#[test]
fn a_merged_update_has_the_cause_of_its_last_change_that_was_not_a_resync() {
    use Cause::{Relist, Resync, Watch};

    for (first, next, expected) in [
        (Watch, Relist, " relist"),
        (Relist, Watch, ""),
        (Watch, Resync, ""),
        (Resync, Watch, ""),
        (Relist, Resync, " relist"),
        (Resync, Resync, " resync"),
    ] {
        let messages = [updated("a", 1, 2, first), updated("a", 2, 3, next)];
        assert_eq!(merged(messages).0, format!("~a@1→3{expected}"));
    }
}

#[test]
fn a_constantly_changing_object_keeps_its_position() {
    let (events, _) = merged([
        updated("a", 1, 2, Cause::Watch),
        added("b", 3),
        updated("a", 2, 4, Cause::Watch),
        added("c", 5),
        updated("a", 4, 6, Cause::Watch),
    ]);
    assert_eq!(events, "~a@1→6, +b@3, +c@5");
}

#[test]
fn the_synced_marker_keeps_its_position_when_a_snapshot_is_expanded() {
    let mut world = World::new();
    world.list(&[("a", 1), ("b", 2)], true);
    let (_, buffer) = world.join(ListenerBuffer::Coalesce, true);
    assert_eq!(
        buffer.depth(),
        2,
        "one message for the cache, and the marker"
    );
    world.apply(DeltaKind::Updated(object("b", 3)), false);
    world.apply(DeltaKind::Updated(object("c", 4)), false);
    assert_eq!(buffer.depth(), 4, "one per object, and the marker");
    assert_eq!(received(&buffer), "+a@1!, +b@3!, synced, +c@4");
}

#[test]
fn a_list_or_resync_into_an_empty_buffer_is_one_message() {
    let mut world = World::new();
    world.list(&[("a", 1), ("b", 2), ("c", 3)], true);
    let (due, buffer) = world.join(ListenerBuffer::Coalesce, true);
    received(&buffer);
    world.list(&[("a", 4), ("b", 5), ("c", 6)], false);
    assert_eq!(
        buffer.depth(),
        1,
        "one message, as the cache was when the listener joined"
    );
    received(&buffer);
    world.processor.due.insert(due);
    world.apply(DeltaKind::SyncAll, false);
    assert_eq!(buffer.depth(), 1);
    assert_eq!(
        received(&buffer),
        "~a@4→4 resync, ~b@5→5 resync, ~c@6→6 resync"
    );
}

#[test]
fn received_events_are_unchanged_and_only_waiting_ones_are_merged() {
    let mut world = World::new();
    world.list(&[("a", 1), ("b", 2)], true);
    let (_, buffer) = world.join(ListenerBuffer::Coalesce, true);
    let mut taken = buffer.next().now_or_never().unwrap().unwrap();
    assert_eq!(show(&taken.next().unwrap()), "+a@1!");
    for revision in 3..100 {
        world.apply(DeltaKind::Updated(object("b", revision)), false);
    }
    world.delete("a", 100);
    assert_eq!(
        buffer.depth(),
        1 + 1 + 2,
        "the received message, the marker, b and a"
    );
    assert_eq!(show(&taken.next().unwrap()), "+b@2!");
    assert!(taken.next().is_none());
    assert_eq!(received(&buffer), "synced, ~b@2→99, -a@100");
}

#[test]
fn lists_and_resyncs_are_merged_into_waiting_events() {
    let mut world = World::new();
    let (id, buffer) = world.join(ListenerBuffer::Coalesce, false);
    world.list(&[("a", 1), ("b", 2), ("c", 3)], true);
    world.list(&[("a", 4), ("c", 3), ("d", 5)], false);
    assert_eq!(received(&buffer), "+a@4!, +c@3!, +d@5");
    world.processor.due.insert(id);
    world.apply(DeltaKind::Updated(object("d", 6)), false);
    world.apply(DeltaKind::SyncAll, false);
    world.apply(DeltaKind::SyncAll, false);
    assert!(is_resync(&buffer));
    assert_eq!(buffer.depth(), 3);
    assert_eq!(received(&buffer), "~d@5→6, ~a@4→4 resync, ~c@3→3 resync");
    assert!(!is_resync(&buffer));
}

#[test]
fn a_resync_merged_into_changes_does_not_delay_the_next_resync() {
    let mut world = World::new();
    let (id, buffer) = world.join(ListenerBuffer::Coalesce, false);
    world.list(&[("a", 1)], true);
    received(&buffer);
    world.processor.due.insert(id);
    world.apply(DeltaKind::SyncAll, false);
    assert!(is_resync(&buffer));
    world.apply(DeltaKind::Updated(object("a", 2)), false);
    assert!(
        !is_resync(&buffer),
        "the change of every object is delivered"
    );
    assert_eq!(received(&buffer), "~a@1→2");
}

#[test]
fn a_waiter_is_woken_when_its_events_cancel_out() {
    let (buffer, _) = buffer(ListenerBuffer::Coalesce);
    buffer.push(added("a", 1));
    let mut idle = tokio_test::task::spawn(buffer.until_idle());
    tokio_test::assert_pending!(idle.poll());
    buffer.push(deleted("a", 2));
    assert!(idle.is_woken());
    tokio_test::assert_ready!(idle.poll());
    assert_eq!((buffer.depth(), buffer.status().lag), (0, Duration::ZERO));
}

#[test]
fn a_waiter_does_not_wait_for_later_events_of_other_objects() {
    let (buffer, _) = buffer(ListenerBuffer::Coalesce);
    buffer.push(added("a", 1));
    let mut idle = tokio_test::task::spawn(buffer.until_idle());
    tokio_test::assert_pending!(idle.poll());
    buffer.push(added("b", 2));
    let _a = buffer.next().now_or_never().unwrap();
    tokio_test::assert_pending!(idle.poll());
    let _b = buffer.next().now_or_never().unwrap();
    tokio_test::assert_ready!(idle.poll());
}

#[test]
fn a_discard_counts_merged_events() {
    let (buffer, _) = buffer(ListenerBuffer::Coalesce);
    for message in [
        added("a", 1),
        updated("a", 1, 2, Cause::Watch),
        deleted("b", 3),
        added("b", 4),
    ] {
        buffer.push(message);
    }
    buffer.close(Closing::Discard);
    let status = buffer.status();
    assert_eq!(
        (status.coalesced, status.discarded, status.depth),
        (1, 3, 0)
    );
}
