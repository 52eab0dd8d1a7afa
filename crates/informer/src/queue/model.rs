//! Both queues against naive references: random changes, lists, bookmarks, resyncs and pops, and
//! after each of them the same deltas in the same units with the same flags.
//!
//! The references follow the rules as they are written, with a plain list and linear searches. Two
//! sources take part; as in an informer over two namespaces, a name belongs to one of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{
    Batch, DeltaFifo, InOrder, Queue, Replaced,
    script::{K, object, show_delta},
};
use crate::{
    object::{Deleted, Known, Object, ObjectName, SourceId},
    reflector::{Delta, DeltaKind},
};

const NAMES: [&str; 6] = ["p", "q", "r", "s", "t", "u"];

fn source_of(name: &str) -> u32 {
    u32::from(name >= "s")
}

#[derive(Clone, Debug)]
enum Operation {
    Add(usize),
    Update(usize),
    Delete(usize),
    /// A deletion whose final state is unknown.
    Missing(usize),
    /// A list of the source, which may have a name twice.
    List(u32, Vec<usize>),
    Bookmark(u32),
    Resync,
    Pop(usize),
    /// Takes a unit out and puts it back, perhaps behind a newer change of its key.
    PutBack {
        newer: bool,
    },
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let name = || 0..NAMES.len();
    let list = |source: u32| {
        let first = source as usize * 3;
        prop::collection::vec(first..first + 3, 0..4)
            .prop_map(move |names| Operation::List(source, names))
    };
    let operation = prop_oneof![
        3 => name().prop_map(Operation::Add),
        4 => name().prop_map(Operation::Update),
        3 => name().prop_map(Operation::Delete),
        2 => name().prop_map(Operation::Missing),
        2 => (0..2u32).prop_flat_map(list),
        2 => (0..2u32).prop_map(Operation::Bookmark),
        2 => Just(Operation::Resync),
        6 => (0..5usize).prop_map(Operation::Pop),
        1 => any::<bool>().prop_map(|newer| Operation::PutBack { newer }),
    ];
    prop::collection::vec(operation, 0..40)
}

/// The store behind a queue: it has what was popped.
#[derive(Default)]
struct Cache(BTreeMap<ObjectName, (SourceId, Object<K>)>);

impl Known<K> for Cache {
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)> {
        self.0.get(name).cloned()
    }

    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {
        for (name, (source, object)) in &self.0 {
            visit(*source, name, object);
        }
    }
}

impl Cache {
    fn apply(&mut self, delta: &Delta<K>) {
        let mut keep = |object: &Object<K>| {
            let kept = (delta.source, object.clone());
            self.0.insert(object.object_name().clone(), kept);
        };
        match &delta.kind {
            DeltaKind::Added(object)
            | DeltaKind::Updated(object)
            | DeltaKind::Replaced(object)
            | DeltaKind::Sync(object) => keep(object),
            DeltaKind::ReplacedAll { objects, .. } => {
                self.0.retain(|_, (source, _)| *source != delta.source);
                for object in objects {
                    let kept = (delta.source, object.clone());
                    self.0.insert(object.object_name().clone(), kept);
                }
            }
            DeltaKind::Deleted(deleted) => {
                self.0.remove(deleted.object_name());
            }
            DeltaKind::SyncAll | DeltaKind::Bookmark { .. } => {}
        }
    }

    /// Name and revision of everything, by source.
    fn all(&self) -> Vec<(u32, String, String)> {
        let all = self.0.iter().map(|(name, (source, object))| {
            (
                source.number(),
                name.to_string(),
                object.revision().to_string(),
            )
        });
        all.collect()
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(&ObjectName::cluster(name))
    }
}

/// What one operation asks of a queue; `None` for those that are no single change.
fn change(operation: &Operation, revision: u64) -> Option<Delta<K>> {
    let one = |name: usize| object(&format!("{}@{revision}", NAMES[name]));
    let (source, kind) = match operation {
        Operation::Add(name) => (source_of(NAMES[*name]), DeltaKind::Added(one(*name))),
        Operation::Update(name) => (source_of(NAMES[*name]), DeltaKind::Updated(one(*name))),
        Operation::Delete(name) => {
            let deleted = Deleted::Known(one(*name));
            (source_of(NAMES[*name]), DeltaKind::Deleted(deleted))
        }
        Operation::Missing(name) => {
            let deleted = Deleted::FinalStateUnknown {
                name: ObjectName::cluster(NAMES[*name]),
                last_known: Some(one(*name)),
            };
            (source_of(NAMES[*name]), DeltaKind::Deleted(deleted))
        }
        Operation::Bookmark(source) => {
            let revision = revision.into();
            (*source, DeltaKind::Bookmark { revision })
        }
        _ => return None,
    };
    Some(Delta::new(SourceId::new(source), kind))
}

fn replaced(source: u32, names: &[usize], revision: u64) -> Replaced<K> {
    let objects = names.iter().enumerate().map(|(place, name)| {
        // Each has a revision of its own, so that of two of a name it shows which is which.
        object(&format!("{}@{revision}{place}", NAMES[*name]))
    });
    Replaced {
        source: SourceId::new(source),
        objects: objects.collect(),
        revision: revision.into(),
    }
}

/// A batch as both sides write it.
#[derive(Debug, Default, PartialEq)]
struct Unit {
    deltas: Vec<String>,
    in_initial_list: bool,
    completes: Option<u32>,
}

fn unit(batch: &Batch<K>) -> Unit {
    Unit {
        deltas: batch.deltas.iter().map(show_delta).collect(),
        in_initial_list: batch.in_initial_list,
        completes: batch.completes.map(SourceId::number),
    }
}

/// Population and initial population count of each source: it has synced iff it is populated and
/// nothing of its first list is left.
#[derive(Debug, Default)]
struct Sync(BTreeMap<u32, usize>);

impl Sync {
    fn populate(&mut self, source: u32) {
        self.0.entry(source).or_insert(0);
    }

    /// A list with so much to pop; whether it is the first and empty.
    fn list(&mut self, source: u32, count: usize) -> bool {
        let is_first = !self.0.contains_key(&source);
        self.0.entry(source).or_insert(count);
        is_first && count == 0
    }

    fn synced(&self, source: u32) -> bool {
        self.0.get(&source) == Some(&0)
    }

    fn all_synced(&self) -> bool {
        !self.0.is_empty() && self.0.keys().all(|source| self.synced(*source))
    }

    /// One of the first list is popped; whether it was the last.
    fn popped(&mut self, source: u32) -> bool {
        match self.0.get_mut(&source) {
            None | Some(0) => false,
            Some(left) => {
                *left -= 1;
                *left == 0
            }
        }
    }
}

// === in order ===

/// A list of what was put in; a whole list and a resync are one of them.
#[derive(Default)]
struct Line {
    waiting: Vec<Waiting>,
    sync: Sync,
}

struct Waiting {
    source: u32,
    text: String,
    /// The object it is about; what is about none is handed out alone.
    name: Option<String>,
    is_list: bool,
}

impl Line {
    fn wait(&mut self, source: u32, text: String, name: Option<String>) {
        self.waiting.push(Waiting {
            source,
            is_list: text.starts_with("ReplacedAll"),
            text,
            name,
        });
    }

    fn pop(&mut self, size: usize, room: usize) -> Option<Unit> {
        if room == 0 || self.waiting.is_empty() {
            return None;
        }
        let mut unit = Unit::default();
        let mut names = BTreeSet::new();
        let flag = |line: &Self| !line.sync.synced(line.waiting[0].source);
        unit.in_initial_list = flag(self);
        while let Some(head) = self.waiting.first() {
            let Some(name) = head.name.clone() else {
                break;
            };
            let full = unit.deltas.len() == size.min(room);
            if full || flag(self) != unit.in_initial_list || !names.insert(name) {
                return Some(unit);
            }
            unit.deltas.push(self.waiting.remove(0).text);
        }
        if unit.deltas.is_empty() {
            let alone = self.waiting.remove(0);
            if alone.is_list && self.sync.popped(alone.source) {
                unit.completes = Some(alone.source);
            }
            unit.deltas.push(alone.text);
        }
        Some(unit)
    }
}

proptest! {
    #[test]
    fn in_order_does_what_a_list_does(operations in operations(), size in 1..5usize) {
        let mut queue = InOrder::new().batch_size(size);
        let mut line = Line::default();
        let mut cache = Cache::default();
        for (operation, revision) in operations.iter().zip(1..) {
            if let Some(delta) = change(operation, revision) {
                let source = delta.source.number();
                let name = delta.object_name().map(ToString::to_string);
                if name.is_some() {
                    line.sync.populate(source);
                }
                line.wait(source, show_delta(&delta), name);
                queue.push(delta, &cache).unwrap();
            }
            match operation {
                Operation::List(source, names) => {
                    let list = replaced(*source, names, revision);
                    let objects = list.objects.iter().map(|object| format!(" {object:?}"));
                    let objects: String = objects.collect();
                    line.sync.list(*source, 1);
                    line.wait(*source, format!("ReplacedAll {revision}:{objects}"), None);
                    queue.replace(list, &cache).unwrap();
                }
                Operation::Resync => {
                    queue.resync(&cache);
                    if line.waiting.iter().all(|waiting| waiting.text != "SyncAll") {
                        line.wait(0, "SyncAll".to_owned(), None);
                    }
                }
                Operation::Pop(room) => {
                    let batch = queue.pop_batch(*room);
                    prop_assert_eq!(batch.as_ref().map(unit), line.pop(size, *room));
                    batch.iter().flat_map(|batch| &batch.deltas).for_each(|d| cache.apply(d));
                }
                _ => {}
            }
            prop_assert_eq!(queue.len(), line.waiting.len());
            prop_assert_eq!(queue.is_empty(), line.waiting.is_empty());
            prop_assert_eq!(queue.has_synced(), line.sync.all_synced());
        }
        while let Some(batch) = queue.pop_batch(usize::MAX) {
            prop_assert_eq!(Some(unit(&batch)), line.pop(size, usize::MAX));
        }
        prop_assert!(line.waiting.is_empty());
    }
}

// === per key ===

/// Keys with their deltas, and bookmarks between them, in the order of the queue.
#[derive(Default)]
struct Keys {
    slots: Vec<Slot>,
    /// First lists that had nothing.
    empty_lists: Vec<u32>,
    sync: Sync,
}

enum Slot {
    Key(String, Vec<Change>),
    Bookmark(u32, String),
}

/// One delta: what happened, and the revision of its object.
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
            // Of two deletions the older stays, unless its final state is unknown.
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
        if !is_gone || known || self.deltas(key).is_some() {
            self.queue(key, change);
        }
    }

    fn bookmark(&mut self, source: u32, revision: u64) {
        if matches!(self.slots.last(), Some(Slot::Bookmark(from, _)) if *from == source) {
            self.slots.pop();
        }
        self.slots
            .push(Slot::Bookmark(source, revision.to_string()));
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
        self.bookmark(source, revision);
    }

    fn resync(&mut self, known: &Cache) {
        for (_, name, revision) in known.all() {
            if self.deltas(&name).is_none() {
                self.queue(&name, Change("Sync", revision));
            }
        }
    }

    fn pop(&mut self, room: usize) -> Option<Unit> {
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
        Some(match self.slots.remove(0) {
            Slot::Bookmark(_, revision) => Unit {
                deltas: vec![format!("Bookmark {revision}")],
                ..Unit::default()
            },
            Slot::Key(key, deltas) => {
                let source = source_of(&key);
                let deltas = deltas
                    .iter()
                    .map(|Change(what, at)| format!("{what} {key}@{at}"));
                Unit {
                    deltas: deltas.collect(),
                    in_initial_list: !self.sync.synced(source),
                    completes: self.sync.popped(source).then_some(source),
                }
            }
        })
    }

    /// Key by key: the name and the newest delta.
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

/// The change of one operation, as the reference writes it.
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

/// Takes a unit out of both and puts it back, perhaps behind a newer change of its key.
fn put_back(
    fifo: &mut DeltaFifo<K>,
    keys: &mut Keys,
    newer: Option<u64>,
) -> Result<(), TestCaseError> {
    let first = keys
        .slots
        .iter()
        .position(|slot| matches!(slot, Slot::Key(..)));
    // Bookmarks on the way are dropped.
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
    fn delta_fifo_does_what_lists_per_key_do(operations in operations(), has_store in any::<bool>()) {
        let mut fifo = DeltaFifo::new();
        let mut keys = Keys::default();
        let mut cache = Cache::default();
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
                Operation::Bookmark(source) => keys.bookmark(*source, revision),
                Operation::Resync => {
                    keys.resync(&cache);
                    fifo.resync(&cache);
                }
                Operation::Pop(room) => {
                    let batch = fifo.pop_batch(*room);
                    prop_assert_eq!(batch.as_ref().map(unit), keys.pop(*room));
                    // Without a store behind it nothing is ever known.
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
