//! A `Coalesce` buffer: what it makes of what waits, and that it tells the same story as one that
//! keeps everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::{
    indexer::Change,
    offload::{OFFLOADED_MIN, with_held_pool},
    processor::buffer::Closing,
};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

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

/// The events of these messages if all of them arrive before the first is delivered, and how many events
/// came to nothing.
fn merged(messages: impl IntoIterator<Item = Notification<Pod>>) -> (String, u64) {
    let (buffer, _) = buffer(ListenerBuffer::Coalesce);
    for message in messages {
        buffer.push(message);
    }
    (told(&buffer), buffer.status().coalesced)
}

#[test]
fn what_waits_is_merged_per_object_into_the_latest_state_told_from_the_last_one_told() {
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
fn an_object_that_changes_all_the_time_keeps_its_turn() {
    let (told, _) = merged([
        updated("a", 1, 2, Cause::Watch),
        added("b", 3),
        updated("a", 2, 4, Cause::Watch),
        added("c", 5),
        updated("a", 4, 6, Cause::Watch),
    ]);
    assert_eq!(told, "~a@1→6, +b@3, +c@5");
}

#[test]
fn the_marker_stays_behind_what_it_came_after_also_when_that_is_unfolded() {
    let mut world = World::new();
    world.list(&[("a", 1), ("b", 2)], true);
    let (_, buffer) = world.join(ListenerBuffer::Coalesce, true);
    assert_eq!(
        buffer.depth(),
        2,
        "the cache is one message, and the marker"
    );
    world.apply(DeltaKind::Updated(object("b", 3)), false);
    world.apply(DeltaKind::Updated(object("c", 4)), false);
    assert_eq!(buffer.depth(), 4, "one per object, and the marker");
    assert_eq!(told(&buffer), "+a@1!, +b@3!, synced, +c@4");
}

#[test]
fn what_is_all_that_waits_is_one_message_time_and_again() {
    let mut world = World::new();
    world.list(&[("a", 1), ("b", 2), ("c", 3)], true);
    let (due, buffer) = world.join(ListenerBuffer::Coalesce, true);
    told(&buffer);
    world.list(&[("a", 4), ("b", 5), ("c", 6)], false);
    assert_eq!(buffer.depth(), 1, "as the cache was when it joined");
    told(&buffer);
    world.processor.due.insert(due);
    world.apply(DeltaKind::SyncAll, false);
    assert_eq!(buffer.depth(), 1);
    assert_eq!(told(&buffer), "~a@4→4 resync, ~b@5→5 resync, ~c@6→6 resync");
}

#[test]
fn what_was_taken_is_told_as_it_was_and_only_what_waits_is_merged() {
    let mut world = World::new();
    world.list(&[("a", 1), ("b", 2)], true);
    let (_, buffer) = world.join(ListenerBuffer::Coalesce, true);
    let mut taken = buffer.next().now_or_never().unwrap().unwrap();
    assert_eq!(show(&taken.next().unwrap()), "+a@1!");
    for revision in 3..100 {
        world.apply(DeltaKind::Updated(object("b", revision)), false);
    }
    world.delete("a", 100);
    assert_eq!(buffer.depth(), 1 + 1 + 2, "taken, the marker, b and a");
    assert_eq!(show(&taken.next().unwrap()), "+b@2!");
    assert!(taken.next().is_none());
    assert_eq!(told(&buffer), "synced, ~b@2→99, -a@100");
}

#[test]
fn lists_and_resyncs_that_come_while_something_waits_are_merged_into_it() {
    let mut world = World::new();
    let (id, buffer) = world.join(ListenerBuffer::Coalesce, false);
    world.list(&[("a", 1), ("b", 2), ("c", 3)], true);
    world.list(&[("a", 4), ("c", 3), ("d", 5)], false);
    assert_eq!(told(&buffer), "+a@4!, +c@3!, +d@5");
    world.processor.due.insert(id);
    world.apply(DeltaKind::Updated(object("d", 6)), false);
    world.apply(DeltaKind::SyncAll, false);
    world.apply(DeltaKind::SyncAll, false);
    assert!(is_resync(&buffer));
    assert_eq!(buffer.depth(), 3);
    assert_eq!(told(&buffer), "~d@5→6, ~a@4→4 resync, ~c@3→3 resync");
    assert!(!is_resync(&buffer));
}

#[test]
fn a_resync_that_was_merged_into_news_is_no_resync_that_is_waited_for() {
    let mut world = World::new();
    let (id, buffer) = world.join(ListenerBuffer::Coalesce, false);
    world.list(&[("a", 1)], true);
    told(&buffer);
    world.processor.due.insert(id);
    world.apply(DeltaKind::SyncAll, false);
    assert!(is_resync(&buffer));
    world.apply(DeltaKind::Updated(object("a", 2)), false);
    assert!(!is_resync(&buffer), "the handler hears of all of it");
    assert_eq!(told(&buffer), "~a@1→2");
}

#[test]
fn whoever_waits_for_what_comes_to_nothing_is_woken() {
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
fn whoever_waits_does_not_wait_for_what_comes_later_to_another_object() {
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
fn a_discard_counts_what_waits_after_merging() {
    let (buffer, _) = buffer(ListenerBuffer::Coalesce);
    for message in [
        added("a", 1),
        updated("a", 1, 2, Cause::Watch),
        deleted("b", 3),
        added("b", 4),
    ] {
        buffer.push(message);
    }
    buffer.close(crate::processor::Closing::Discard);
    let status = buffer.status();
    assert_eq!(
        (status.coalesced, status.discarded, status.depth),
        (1, 3, 0)
    );
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize),
    Delete(usize),
    /// Which objects a list has, and which of them are as they were.
    List([bool; 4], [bool; 4]),
    Resync,
    Synced,
    Hear(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..NAMES.len()).prop_map(Step::Put),
        4 => (0..NAMES.len()).prop_map(Step::Delete),
        2 => (any::<[bool; 4]>(), any::<[bool; 4]>()).prop_map(|(has, same)| Step::List(has, same)),
        1 => Just(Step::Resync),
        1 => Just(Step::Synced),
        4 => (0_usize..5).prop_map(Step::Hear),
    ]
}

/// A listener, and what it must have in mind: what it was told last of each object.
struct Listener {
    buffer: Arc<Buffer<Pod>>,
    taken: Option<Expansion<Pod>>,
    told: BTreeMap<String, String>,
    events: u64,
    synced: bool,
}

impl Listener {
    /// Hears one event, which must be possible after what it heard before; whether there was one.
    fn hear(&mut self) -> bool {
        loop {
            if let Some(event) = self.taken.as_mut().and_then(Expansion::next) {
                self.events += 1;
                self.check(event);
                return true;
            }
            match self.buffer.next().now_or_never() {
                Some(next) => self.taken = next,
                None => return false,
            }
        }
    }

    fn check(&mut self, event: Event<Pod>) {
        let known = event
            .object_name()
            .and_then(|name| self.told.remove(name.as_str()));
        match event {
            Event::Added { object, .. } => {
                assert_eq!(known, None, "added twice");
                let name = object.object_name().to_string();
                self.told.insert(name, object.revision().to_string());
            }
            Event::Updated { old, new, .. } => {
                assert_eq!(
                    known,
                    Some(old.revision().to_string()),
                    "what was told last"
                );
                let name = new.object_name().to_string();
                self.told.insert(name, new.revision().to_string());
            }
            Event::Deleted(_) => assert!(known.is_some(), "deleted without having been told"),
            Event::Synced => self.synced = true,
        }
    }
}

/// A store with a listener of each policy, which join at the same moment.
struct Both {
    world: World,
    revision: u64,
    listeners: Option<[Listener; 2]>,
    /// What was there when the marker was pushed, and has not been deleted since.
    beginning: Option<BTreeSet<String>>,
    ids: Vec<ListenerId>,
}

impl Both {
    fn new() -> Self {
        Self {
            world: World::new(),
            revision: 0,
            listeners: None,
            beginning: None,
            ids: Vec::new(),
        }
    }

    fn join(&mut self) {
        let policies = [ListenerBuffer::Grow, ListenerBuffer::Coalesce];
        self.listeners = Some(policies.map(|policy| {
            let (id, buffer) = self.world.join(policy, false);
            self.ids.push(id);
            Listener {
                buffer,
                taken: None,
                told: BTreeMap::new(),
                events: 0,
                synced: false,
            }
        }));
    }

    fn cache(&self) -> BTreeMap<String, String> {
        let snapshot = self.world.writer.snapshot();
        let state = |object: &Object<Pod>| {
            let name = object.object_name().to_string();
            (name, object.revision().to_string())
        };
        snapshot.iter().map(state).collect()
    }

    fn play(&mut self, step: &Step) {
        self.revision += 1;
        match step {
            Step::Put(name) => {
                let kind = DeltaKind::Updated(object(NAMES[*name], self.revision));
                self.world.apply(kind, false);
            }
            Step::Delete(name) => self.world.delete(NAMES[*name], self.revision),
            Step::List(has, same) => {
                let cache = self.cache();
                let mut objects = Vec::new();
                for (at, name) in NAMES.iter().enumerate().filter(|(at, _)| has[*at]) {
                    let known = cache.get(*name).filter(|_| same[at]);
                    let revision = known.map_or(self.revision, |known| known.parse().unwrap());
                    objects.push((*name, revision));
                }
                self.world.list(&objects, false);
            }
            Step::Resync => {
                self.world.processor.due.extend(&self.ids);
                self.world.apply(DeltaKind::SyncAll, false);
            }
            Step::Synced if self.listeners.is_some() && self.beginning.is_none() => {
                self.world.processor.synced();
                self.beginning = Some(self.cache().into_keys().collect());
            }
            Step::Synced => {}
            Step::Hear(events) => {
                for _ in 0..*events {
                    self.hear();
                }
            }
        }
        let cache = self.cache();
        if let Some(beginning) = &mut self.beginning {
            beginning.retain(|name| cache.contains_key(name));
        }
        if let Some([_, merged]) = &self.listeners {
            let taken = usize::from(merged.taken.is_some());
            assert!(
                merged.buffer.depth() <= NAMES.len() + 1 + taken,
                "the bound"
            );
        }
    }

    /// Lets the one that merges hear something.
    fn hear(&mut self) -> bool {
        let Some([_, merged]) = &mut self.listeners else {
            return false;
        };
        let before = merged.synced;
        let heard = merged.hear();
        if merged.synced && !before {
            for name in self.beginning.iter().flatten() {
                assert!(merged.told.contains_key(name), "synced before {name}");
            }
        }
        heard
    }
}

proptest! {
    #[test]
    fn whatever_happens_at_whatever_speed_what_is_heard_is_possible_and_leads_to_the_cache(
        before in proptest::collection::vec(step(), 0..8),
        after in proptest::collection::vec(step(), 0..60),
    ) {
        let mut both = Both::new();
        for step in &before {
            both.play(step);
        }
        both.join();
        for step in &after {
            both.play(step);
        }
        while both.hear() {}
        let cache = both.cache();
        let [mut every, merged] = both.listeners.take().unwrap();
        while every.hear() {}
        prop_assert_eq!(&every.told, &cache);
        prop_assert_eq!(&merged.told, &cache);
        prop_assert_eq!(merged.synced, every.synced);
        prop_assert_eq!(merged.events + merged.buffer.status().coalesced, every.events);
        prop_assert_eq!(merged.buffer.depth(), 0);
    }
}

/// A listener that has not heard of a list of this many objects.
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
fn a_long_list_is_unfolded_on_another_thread_and_nothing_is_missing_meanwhile() {
    with_held_pool(async |hold| {
        let (world, buffer) = behind(OFFLOADED_MIN);
        let changes = one(object("x", 2));
        let mut distributed = Box::pin(world.processor.distribute(&changes));
        let held = hold();
        assert!(
            distributed.as_mut().now_or_never().is_none(),
            "this thread does something else"
        );
        drop(held);
        while distributed.as_mut().now_or_never().is_none() {
            assert!(buffer.depth() > 0);
            assert!(buffer.until_idle().now_or_never().is_none());
            std::thread::yield_now();
        }
        assert_eq!(buffer.depth(), OFFLOADED_MIN + 1);
        let told = told(&buffer);
        assert_eq!(told.matches('+').count(), OFFLOADED_MIN + 1);
        assert!(told.ends_with("+x@2"), "{told}");
    });
}

#[test]
fn a_listener_that_is_closed_before_a_list_is_unfolded_discards_all_of_it() {
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
fn a_short_list_is_unfolded_in_place() {
    let (world, buffer) = behind(10);
    let changes = one(object("x", 2));
    let distributed = world.processor.distribute(&changes);
    distributed.now_or_never().unwrap();
    assert_eq!(buffer.depth(), 11);
}
