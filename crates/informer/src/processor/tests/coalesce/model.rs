//! Compares a `Coalesce` buffer with a `Grow` buffer in a model test. After the listeners of both buffers
//! have received all events, the state of each listener must be equal to the cache.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Step {
    Put(usize),
    Delete(usize),
    /// Applies a list. The first array selects the objects of [`NAMES`] that the list contains. The second
    /// array selects the listed objects that keep their cached revision, if any. The remaining listed objects
    /// have a new revision.
    List([bool; 4], [bool; 4]),
    Resync,
    Synced,
    Receive(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..NAMES.len()).prop_map(Step::Put),
        4 => (0..NAMES.len()).prop_map(Step::Delete),
        2 => (any::<[bool; 4]>(), any::<[bool; 4]>()).prop_map(|(has, same)| Step::List(has, same)),
        1 => Just(Step::Resync),
        1 => Just(Step::Synced),
        4 => (0_usize..5).prop_map(Step::Receive),
    ]
}

struct Listener {
    buffer: Arc<Buffer<Pod>>,
    taken: Option<Expansion<Pod>>,
    delivered: BTreeMap<String, String>,
    events: u64,
    synced: bool,
}

impl Listener {
    /// Receives and checks the next event, and returns whether an event was available.
    fn receive(&mut self) -> bool {
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
            .and_then(|name| self.delivered.remove(name.as_str()));
        match event {
            Event::Added { object, .. } => {
                assert_eq!(known, None, "added twice");
                let name = object.object_name().to_string();
                self.delivered.insert(name, object.revision().to_string());
            }
            Event::Updated { old, new, .. } => {
                assert_eq!(
                    known,
                    Some(old.revision().to_string()),
                    "the old state is the last delivered one"
                );
                let name = new.object_name().to_string();
                self.delivered.insert(name, new.revision().to_string());
            }
            Event::Deleted(_) => assert!(known.is_some(), "deleted without having been added"),
            Event::Synced => self.synced = true,
        }
    }
}

/// A store with two listeners that join at the same time: one has a `Grow` buffer, one a `Coalesce` buffer.
struct Both {
    world: World,
    revision: u64,
    listeners: Option<[Listener; 2]>,
    /// Names of the objects that the `Coalesce` listener must receive before the `Synced` event.
    ///
    /// `None` until [`Step::Synced`] adds the event to the buffers. Deleted objects are removed from the set.
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
                delivered: BTreeMap::new(),
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
            Step::Receive(events) => {
                for _ in 0..*events {
                    self.receive();
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
                "the buffer is within its limit"
            );
        }
    }

    /// Receives the next event with the `Coalesce` listener, and returns whether an event was available.
    fn receive(&mut self) -> bool {
        let Some([_, merged]) = &mut self.listeners else {
            return false;
        };
        let before = merged.synced;
        let received = merged.receive();
        if merged.synced && !before {
            for name in self.beginning.iter().flatten() {
                assert!(merged.delivered.contains_key(name), "synced before {name}");
            }
        }
        received
    }
}

proptest! {
    #[test]
    fn any_delivery_speed_yields_a_valid_event_sequence_that_ends_at_the_cache(
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
        while both.receive() {}
        let cache = both.cache();
        let [mut every, merged] = both.listeners.take().unwrap();
        while every.receive() {}
        prop_assert_eq!(&every.delivered, &cache);
        prop_assert_eq!(&merged.delivered, &cache);
        prop_assert_eq!(merged.synced, every.synced);
        prop_assert_eq!(merged.events + merged.buffer.status().coalesced, every.events);
        prop_assert_eq!(merged.buffer.depth(), 0);
    }
}
