//! Compares [`DeltaFifo`] with a reference implementation in a property test.
//!
//! The reference implementation is a list of keys with their deltas.

use super::*;
use crate::queue::DeltaFifo;

/// The reference implementation of [`DeltaFifo`]: the queued keys with their deltas, and bookmarks.
#[derive(Default)]
struct Keys {
    slots: Vec<Slot>,
    /// Numbers of the sources whose first list was empty and is not reported as complete yet.
    ///
    /// An empty list has no item to pop. Each of the next pops therefore reports one of these lists, and
    /// nothing else.
    empty_lists: Vec<u32>,
    sync: Sync,
    /// Revisions that the last popped batch contained, each with the number of its source.
    reached: Vec<(u32, String)>,
}

enum Slot {
    Key(String, Vec<Change>),
    Bookmark(u32, String),
}

/// Type of a delta, and the revision of the delta's object.
#[derive(Clone, PartialEq)]
struct Change(&'static str, String);

impl Keys {
    fn deltas(&mut self, key: &str) -> Option<&mut Vec<Change>> {
        self.slots.iter_mut().find_map(|slot| match slot {
            Slot::Key(name, deltas) if name == key => Some(deltas),
            _ => None,
        })
    }

    fn queue(&mut self, key: &str, change: Change) {
        let is_gone = |change: &Change| matches!(change.0, "Deleted" | "Tombstone");
        let Some(deltas) = self.deltas(key) else {
            return self.slots.push(Slot::Key(key.to_owned(), vec![change]));
        };
        match deltas.last_mut() {
            // Of two deletions the older is kept, unless its final state is unknown.
            Some(last) if is_gone(last) && is_gone(&change) => {
                if last.0 == "Tombstone" {
                    *last = change;
                }
            }
            _ => deltas.push(change),
        }
    }

    fn change(&mut self, key: &str, change: Change, known: bool) {
        self.sync.populate(source_of(key));
        let is_gone = matches!(change.0, "Deleted" | "Tombstone");
        let told = (change.0 != "Tombstone").then(|| change.1.clone());
        if !is_gone || known || self.deltas(key).is_some() {
            self.queue(key, change);
        }
        if let Some(revision) = told {
            self.bookmark(source_of(key), revision);
        }
    }

    fn bookmark(&mut self, source: u32, revision: String) {
        let behind_keys = self
            .slots
            .iter()
            .rposition(|slot| matches!(slot, Slot::Key(..)));
        let marks = &mut self.slots[behind_keys.map_or(0, |at| at + 1)..];
        for mark in marks {
            if let Slot::Bookmark(from, reached) = mark
                && *from == source
            {
                *reached = revision;
                return;
            }
        }
        self.slots.push(Slot::Bookmark(source, revision));
    }

    fn list(&mut self, source: u32, names: &[usize], revision: u64, known: &Cache) {
        let listed: BTreeSet<&str> = names.iter().map(|name| NAMES[*name]).collect();
        for (place, name) in names.iter().enumerate() {
            let change = Change("Replaced", format!("{revision}{place}"));
            self.queue(NAMES[*name], change);
        }
        let is_absent = |name: &str| source_of(name) == source && !listed.contains(name);
        let mut gone = Vec::new();
        for slot in &self.slots {
            if let Slot::Key(name, deltas) = slot
                && is_absent(name)
            {
                let newest = deltas.last().expect("a queued key has deltas");
                gone.push((name.clone(), newest.1.clone()));
            }
        }
        for (_, name, revision) in known.all() {
            if is_absent(&name) && self.deltas(&name).is_none() {
                gone.push((name, revision));
            }
        }
        if self.sync.list(source, listed.len() + gone.len()) {
            self.empty_lists.push(source);
        }
        for (name, revision) in gone {
            self.queue(&name, Change("Tombstone", revision));
        }
        self.bookmark(source, revision.to_string());
    }

    fn resync(&mut self, known: &Cache) {
        for (_, name, revision) in known.all() {
            if self.deltas(&name).is_none() {
                self.queue(&name, Change("Sync", revision));
            }
        }
    }

    fn pop(&mut self, room: usize) -> Option<Unit> {
        self.reached.clear();
        if !self.empty_lists.is_empty() {
            return Some(Unit {
                deltas: Vec::new(),
                in_initial_list: true,
                completes: Some(self.empty_lists.remove(0)),
            });
        }
        if room == 0 || self.slots.is_empty() {
            return None;
        }
        let mut unit = Unit::default();
        while let Some(slot) = self.slots.first() {
            match slot {
                Slot::Key(..) if !unit.deltas.is_empty() => break,
                _ => {}
            }
            match self.slots.remove(0) {
                Slot::Bookmark(source, revision) => self.reached.push((source, revision)),
                Slot::Key(key, mut deltas) => {
                    let source = source_of(&key);
                    let rest = deltas.split_off(deltas.len().min(room));
                    let deltas = deltas
                        .iter()
                        .map(|Change(what, at)| format!("{what} {key}@{at}"));
                    unit.deltas = deltas.collect();
                    unit.in_initial_list = !self.sync.synced(source);
                    if !rest.is_empty() {
                        self.slots.insert(0, Slot::Key(key, rest));
                        break;
                    }
                    unit.completes = self.sync.popped(source).then_some(source);
                }
            }
        }
        Some(unit)
    }

    fn newest(&self) -> Vec<(String, String)> {
        let keys = self.slots.iter().filter_map(|slot| match slot {
            Slot::Key(name, deltas) => {
                let Change(what, at) = deltas.last()?;
                Some((name.clone(), format!("{what} {name}@{at}")))
            }
            Slot::Bookmark(..) => None,
        });
        keys.collect()
    }

    fn waiting(&self) -> usize {
        let counts = self.slots.iter().map(|slot| match slot {
            Slot::Key(_, deltas) => deltas.len(),
            Slot::Bookmark(..) => 0,
        });
        counts.sum()
    }
}

/// Returns the key and the delta that an operation on one object adds.
fn named(operation: &Operation, revision: u64) -> Option<(&'static str, Change)> {
    let (name, what) = match operation {
        Operation::Add(name) => (name, "Added"),
        Operation::Update(name) => (name, "Updated"),
        Operation::Delete(name) => (name, "Deleted"),
        Operation::Missing(name) => (name, "Tombstone"),
        _ => return None,
    };
    Some((NAMES[*name], Change(what, revision.to_string())))
}

/// Pops the first key from `fifo` and from the reference implementation `keys`. If `newer` is `None`, puts
/// the key back into both.
///
/// Otherwise, queues an update of the key at the revision `newer` in both. Then asserts that `fifo` rejects
/// the popped key.
fn put_back(
    fifo: &mut DeltaFifo<K>,
    keys: &mut Keys,
    newer: Option<u64>,
) -> Result<(), TestCaseError> {
    let first = keys
        .slots
        .iter()
        .position(|slot| matches!(slot, Slot::Key(..)));
    // A pop drops the bookmarks before the first key.
    keys.slots.drain(..first.unwrap_or(keys.slots.len()));
    let Some(popped) = fifo.pop() else {
        prop_assert!(first.is_none());
        return Ok(());
    };
    let Slot::Key(key, deltas) = keys.slots.remove(0) else {
        unreachable!("the first slot is a key");
    };
    prop_assert_eq!(popped.name.as_str(), key.as_str());
    prop_assert_eq!(popped.in_initial_list, !keys.sync.synced(source_of(&key)));
    keys.sync.popped(source_of(&key));
    if let Some(revision) = newer {
        let source = SourceId::new(source_of(&key));
        let kind = DeltaKind::Updated(object(&format!("{key}@{revision}")));
        fifo.push(Delta::new(source, kind)).unwrap();
        keys.change(&key, Change("Updated", revision.to_string()), true);
        prop_assert!(fifo.add_if_not_present(popped).is_err());
    } else {
        fifo.add_if_not_present(popped).unwrap();
        keys.sync.populate(source_of(&key));
        keys.slots.push(Slot::Key(key, deltas));
    }
    Ok(())
}

fn reached(batch: &Batch<K>) -> Vec<(u32, String)> {
    let reached = batch.reached.iter();
    reached
        .map(|(source, revision)| (source.number(), revision.to_string()))
        .collect()
}

fn same(fifo: &DeltaFifo<K>, keys: &Keys) -> Result<(), TestCaseError> {
    let newest = fifo.keys().zip(fifo.list());
    let newest: Vec<_> = newest
        .map(|(key, delta)| (key.to_string(), show_delta(delta)))
        .collect();
    prop_assert_eq!(&newest, &keys.newest());
    prop_assert_eq!(fifo.len(), newest.len());
    prop_assert_eq!(fifo.is_empty(), newest.is_empty());
    prop_assert_eq!(Queue::len(fifo), keys.waiting());
    let nothing = keys.slots.is_empty() && keys.empty_lists.is_empty();
    prop_assert_eq!(Queue::is_empty(fifo), nothing);
    prop_assert_eq!(fifo.has_synced(), keys.sync.all_synced());
    for name in NAMES {
        let queued = newest.iter().any(|(key, _)| key == name);
        prop_assert_eq!(fifo.get(&ObjectName::cluster(name)).is_some(), queued);
    }
    Ok(())
}

proptest! {
    #[test]
    fn delta_fifo_does_what_lists_per_key_do(
        operations in operations(),
        store in prop::option::of(prop::collection::btree_set(0..NAMES.len(), 0..4)),
    ) {
        let has_store = store.is_some();
        let mut fifo = DeltaFifo::new();
        let mut keys = Keys::default();
        // Without a store, no object is known.
        let mut cache = Cache::with(&store.unwrap_or_default());
        for (operation, revision) in operations.iter().zip(1..) {
            if let Some((key, change)) = named(operation, revision) {
                keys.change(key, change, cache.has(key));
            }
            if let Some(delta) = change(operation, revision) {
                Queue::push(&mut fifo, delta, &cache).unwrap();
            }
            match operation {
                Operation::List(source, names) => {
                    keys.list(*source, names, revision, &cache);
                    fifo.replace(replaced(*source, names, revision), &cache).unwrap();
                }
                Operation::Bookmark(source) => keys.bookmark(*source, revision.to_string()),
                Operation::Resync => {
                    keys.resync(&cache);
                    fifo.resync(&cache);
                }
                Operation::Pop(room) => {
                    let batch = fifo.pop_batch(*room);
                    prop_assert_eq!(batch.as_ref().map(unit), keys.pop(*room));
                    prop_assert_eq!(batch.as_ref().map_or(Vec::new(), reached), keys.reached.clone());
                    let deltas = batch.iter().flat_map(|batch| &batch.deltas);
                    deltas.filter(|_| has_store).for_each(|delta| cache.apply(delta));
                }
                Operation::PutBack { newer } => {
                    put_back(&mut fifo, &mut keys, newer.then_some(revision))?;
                }
                _ => {}
            }
            same(&fifo, &keys)?;
        }
        while let Some(batch) = fifo.pop_batch(usize::MAX) {
            prop_assert_eq!(Some(unit(&batch)), keys.pop(usize::MAX));
        }
        prop_assert!(keys.slots.is_empty());
    }
}
