//! Compares the store with a simple reference implementation after each of several random batches.
//!
//! The store and the reference must have the same objects and indices. A handler that applies the reported
//! changes must reach the same state.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// One random delta. Each [`Put`](Step::Put) has a new revision of the object.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A new or updated object. `colours` is as in [`state`].
    Put {
        name: u8,
        colours: Option<u8>,
        relisted: bool,
    },
    Delete {
        name: u8,
        known: bool,
    },
    Sync {
        name: u8,
    },
    SyncAll,
    Bookmark,
}

#[derive(Clone, Debug)]
enum Operation {
    Batch {
        source: u32,
        steps: Vec<Step>,
    },
    List {
        source: u32,
        items: BTreeMap<u8, Item>,
    },
}

#[derive(Clone, Copy, Debug)]
enum Item {
    AsItIs,
    /// A new revision of the object. The bits of the number select the colours in the object's label. `None`
    /// stands for an object that failed to decode.
    Changed(Option<u8>),
}

const NAMES: u8 = 6;

fn name_of(number: u8) -> ObjectName {
    name(["a/x", "a/y", "a-b/x", "b/x", "top", "zz"][usize::from(number)])
}

fn steps() -> impl Strategy<Value = Step> {
    let colours = || prop::option::weighted(0.8, 0..8u8);
    prop_oneof![
        6 => (0..NAMES, colours(), any::<bool>())
            .prop_map(|(name, colours, relisted)| Step::Put { name, colours, relisted }),
        3 => (0..NAMES, any::<bool>()).prop_map(|(name, known)| Step::Delete { name, known }),
        2 => (0..NAMES).prop_map(|name| Step::Sync { name }),
        1 => Just(Step::SyncAll),
        1 => Just(Step::Bookmark),
    ]
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let changed = prop::option::weighted(0.8, 0..8u8).prop_map(Item::Changed);
    let item = prop_oneof![1 => Just(Item::AsItIs), 1 => changed];
    let operation = prop_oneof![
        3 => (0..2u32, prop::collection::vec(steps(), 0..6))
            .prop_map(|(source, steps)| Operation::Batch { source, steps }),
        1 => (0..2u32, prop::collection::btree_map(0..NAMES, item, 0..5))
            .prop_map(|(source, items)| Operation::List { source, items }),
    ];
    prop::collection::vec(operation, 0..20)
}

fn colour_names(bits: u8) -> Vec<&'static str> {
    let all = ["red", "blue", "green"].into_iter().enumerate();
    let chosen = all.filter(|(bit, _)| bits >> bit & 1 == 1);
    chosen.map(|(_, colour)| colour).collect()
}

/// Returns the object `name` at `revision`.
///
/// The bits of `colours` select the colours in the object's label. `None` creates an object that failed to
/// decode.
fn state(name: &ObjectName, revision: u64, colours: Option<u8>) -> Object<K> {
    match colours {
        None => broken(&format!("{name}@{revision}")),
        Some(bits) => object(&format!(
            "{name}@{revision} {}",
            colour_names(bits).join(",")
        )),
    }
}

#[derive(Clone)]
struct Kept {
    source: u32,
    object: Object<K>,
    colours: Option<u8>,
    /// The last state that handlers have received, if any.
    delivered: Option<Object<K>>,
}

#[derive(Default)]
struct Reference {
    kept: BTreeMap<ObjectName, Kept>,
    revisions: BTreeMap<u32, u64>,
    clock: u64,
}

impl Reference {
    fn put(&mut self, source: u32, object: &Object<K>, colours: Option<u8>) {
        let delivered = match colours {
            Some(_) => Some(object.clone()),
            None => self.delivered(object.object_name()),
        };
        let kept = Kept {
            source,
            object: object.clone(),
            colours,
            delivered,
        };
        self.kept.insert(object.object_name().clone(), kept);
    }

    fn delivered(&self, name: &ObjectName) -> Option<Object<K>> {
        self.kept.get(name)?.delivered.clone()
    }

    fn delete(&mut self, source: u32, name: &ObjectName) {
        if self
            .kept
            .get(name)
            .is_some_and(|kept| kept.source == source)
        {
            self.kept.remove(name);
        }
    }

    /// Applies a step to the reference, and returns the delta for the store, if any.
    fn step(&mut self, source: u32, step: Step) -> Option<DeltaKind<K>> {
        self.clock += 1;
        let revision = self.clock;
        Some(match step {
            Step::Put {
                name,
                colours,
                relisted,
            } => {
                let object = state(&name_of(name), revision, colours);
                self.put(source, &object, colours);
                if relisted {
                    return Some(DeltaKind::Replaced(object));
                }
                self.revisions.insert(source, revision);
                DeltaKind::Updated(object)
            }
            Step::Delete { name, known } => {
                let name = name_of(name);
                self.delete(source, &name);
                if !known {
                    return Some(missing(name.as_str()));
                }
                self.revisions.insert(source, revision);
                deleted(&format!("{name}@{revision}"))
            }
            Step::Sync { name } => {
                let kept = self.kept.get(&name_of(name))?;
                let mine = kept.source == source && kept.colours.is_some();
                DeltaKind::Sync(mine.then(|| kept.object.clone())?)
            }
            Step::SyncAll => DeltaKind::SyncAll,
            Step::Bookmark => {
                self.revisions.insert(source, revision);
                DeltaKind::Bookmark {
                    revision: revision.into(),
                }
            }
        })
    }

    /// Applies a list to the reference, and returns the matching delta for the store.
    fn list(&mut self, source: u32, items: &BTreeMap<u8, Item>) -> DeltaKind<K> {
        let mut objects = Vec::new();
        let mut listed = BTreeSet::new();
        for (number, item) in items {
            let name = name_of(*number);
            listed.insert(name.clone());
            let kept = self.kept.get(&name).filter(|kept| kept.source == source);
            let unchanged = kept.and_then(|kept| {
                let revision = kept.object.revision().to_string().parse().unwrap();
                Some(state(&name, revision, Some(kept.colours?)))
            });
            let colours = match (item, unchanged) {
                (Item::AsItIs, Some(object)) => {
                    objects.push(object);
                    continue;
                }
                (Item::AsItIs, None) => Some(0),
                (Item::Changed(colours), _) => *colours,
            };
            self.clock += 1;
            let object = state(&name, self.clock, colours);
            self.put(source, &object, colours);
            objects.push(object);
        }
        self.kept
            .retain(|name, kept| kept.source != source || listed.contains(name));
        self.clock += 1;
        self.revisions.insert(source, self.clock);
        list(self.clock, objects)
    }

    fn same_as(&self, snapshot: &Snapshot<K>) -> Result<(), TestCaseError> {
        let all: Vec<_> = self.kept.values().map(|kept| &kept.object).collect();
        prop_assert_eq!(format!("{snapshot:?}"), format!("{all:?}"));
        let live = || self.kept.iter().filter(|(_, kept)| kept.colours.is_some());
        prop_assert_eq!(snapshot.len(), live().count());
        prop_assert_eq!(snapshot.broken_count(), self.kept.len() - live().count());
        for (name, kept) in &self.kept {
            let delivered = snapshot.told(name).map(Object::revision);
            prop_assert_eq!(delivered, kept.delivered.as_ref().map(Object::revision));
        }
        let mut by_colour: BTreeMap<&str, Vec<&ObjectName>> = BTreeMap::new();
        let mut by_namespace: BTreeMap<&str, Vec<&ObjectName>> = BTreeMap::new();
        for (name, kept) in live() {
            let namespace = name.namespace().unwrap_or_default();
            by_namespace.entry(namespace).or_default().push(name);
            for colour in colour_names(kept.colours.unwrap_or_default()) {
                by_colour.entry(colour).or_default().push(name);
            }
        }
        for (index_name, expected) in [
            ("colour", by_colour),
            ("late", by_namespace.clone()),
            (NAMESPACE, by_namespace),
        ] {
            let lines = expected
                .iter()
                .map(|(value, names)| format!("{value}: {names:?}"));
            let expected = lines.collect::<Vec<_>>().join(", ");
            prop_assert_eq!(
                index(snapshot, index_name),
                expected,
                "index {}",
                index_name
            );
        }
        for source in 0..2 {
            let revision = self.revisions.get(&source).map(u64::to_string);
            let found = snapshot.source_revision(SourceId::new(source)).to_string();
            prop_assert_eq!(found, revision.unwrap_or_default());
        }
        Ok(())
    }
}

/// A handler that stores the newest revision of each object, and checks each change against this revision.
#[derive(Default)]
struct Handler(BTreeMap<ObjectName, ResourceVersion>);

impl Handler {
    fn receive(&mut self, change: &Change<K>) -> Result<(), TestCaseError> {
        match change {
            Change::Added { object, .. } => self.added(object),
            Change::Updated { old, new, cause } => {
                prop_assert_eq!(*cause == Cause::Resync, old.is_same(new));
                self.updated(old, new)
            }
            Change::Deleted(deleted) => {
                let had = self.0.remove(deleted.object_name());
                prop_assert!(had.is_some(), "{:?} was never added", deleted);
                prop_assert!(deleted.object().is_some());
                Ok(())
            }
            Change::Replaced {
                old, new, changed, ..
            } => self.replaced(old, new, changed),
            Change::Resync(snapshot) => {
                for object in snapshot.iter() {
                    let had = self.0.get(object.object_name());
                    prop_assert_eq!(had, Some(object.revision()));
                }
                Ok(())
            }
            Change::Listed(_) => Ok(()),
        }
    }

    fn added(&mut self, object: &Object<K>) -> Result<(), TestCaseError> {
        let name = object.object_name().clone();
        let had = self.0.insert(name, object.revision().clone());
        prop_assert_eq!(had, None, "{:?} was added before", object);
        Ok(())
    }

    fn updated(&mut self, old: &Object<K>, new: &Object<K>) -> Result<(), TestCaseError> {
        let name = new.object_name().clone();
        let had = self.0.insert(name, new.revision().clone());
        prop_assert_eq!(had.as_ref(), Some(old.revision()), "before {:?}", new);
        Ok(())
    }

    fn replaced(
        &mut self,
        old: &Snapshot<K>,
        new: &Snapshot<K>,
        changed: &Changed,
    ) -> Result<(), TestCaseError> {
        prop_assert!(changed.gone.is_sorted());
        for name in &changed.gone {
            let had = self.0.remove(name);
            prop_assert_eq!(had.as_ref(), old.told(name).map(Object::revision));
            prop_assert!(new.get(name).is_none());
        }
        for (name, is_changed) in &changed.listed {
            let object = new.get(name).expect("a listed object is in the store");
            let before = old.get(name);
            let is_same = before.is_some_and(|before| before.is_same(object));
            prop_assert_eq!(*is_changed, !is_same, "{}", name);
            match (old.told(name), object.broken()) {
                (_, Some(_)) => {}
                (None, None) => self.added(object)?,
                (Some(delivered), None) => self.updated(delivered, object)?,
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_store_equals_a_map_and_reports_all_changes(operations in operations()) {
        let (indexer, mut writer) = by_colour();
        let namespace = |map: &K| [map.namespace().unwrap_or_default()];
        let mut late = Some(Indexers::new().with("late", namespace));
        let mut reference = Reference::default();
        let mut handler = Handler::default();
        for (number, operation) in operations.into_iter().enumerate() {
            if number == 3 || late.is_some() && number > 3 {
                late.take().map(|late| writer.add_indexers(late).unwrap());
            }
            let batch = match operation {
                Operation::Batch { source, steps } => {
                    let kinds = steps.into_iter().filter_map(|step| reference.step(source, step));
                    batch(source, kinds.collect::<Vec<_>>())
                }
                Operation::List { source, items } => {
                    batch(source, [reference.list(source, &items)])
                }
            };
            let before = (indexer.snapshot(), format!("{:?}", indexer.snapshot()));
            let applied = writer.apply(batch);
            for change in &applied.changes {
                handler.receive(change)?;
            }
            prop_assert_eq!(format!("{:?}", before.0), before.1);
            if late.is_none() {
                reference.same_as(&indexer.snapshot())?;
            }
            let delivered = reference.kept.iter().filter_map(|(name, kept)| {
                Some((name.clone(), kept.delivered.as_ref()?.revision().clone()))
            });
            prop_assert_eq!(&handler.0, &delivered.collect::<BTreeMap<_, _>>());
        }
    }
}
