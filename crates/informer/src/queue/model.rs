//! Property tests that compare each queue with a simple reference implementation.
//!
//! Each test runs a series of random changes, lists, bookmarks, resyncs and pops. After each operation, the
//! queue and its reference implementation must contain the same deltas, and must have returned the same
//! batches.

mod delta_fifo;
mod in_order;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{
    Batch, Queue, Replaced,
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
    /// Queues a deletion with unknown final state. The number is the index of the object's name in `NAMES`.
    Missing(usize),
    /// Queues a list from the source with this number. The objects are indices in `NAMES`, and may repeat.
    List(u32, Vec<usize>),
    Bookmark(u32),
    Resync,
    Pop(usize),
    /// Pops an object's deltas, and puts them back.
    ///
    /// If `newer`, queues a newer change of the object after the pop; the queue must then reject the popped
    /// deltas.
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

/// A store to which the test applies each popped change. The tested queue looks up known objects in the
/// store.
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
    /// Creates a store of objects at revision 0. `names` contains the indices of their names in `NAMES`.
    fn with(names: &BTreeSet<usize>) -> Self {
        let mut cache = Self::default();
        for name in names.iter().map(|name| NAMES[*name]) {
            let kind = DeltaKind::Added(object(&format!("{name}@0")));
            cache.apply(&Delta::new(SourceId::new(source_of(name)), kind));
        }
        cache
    }

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

/// Returns the change that an addition, update, deletion or bookmark queues; `None` for all other operations.
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
        // Each object has its own revision, so that two objects with one name are different.
        object(&format!("{}@{revision}{place}", NAMES[*name]))
    });
    Replaced {
        source: SourceId::new(source),
        objects: objects.collect(),
        revision: revision.into(),
    }
}

/// The content of a popped batch, for comparison with the reference implementation.
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

/// Number of unpopped items of each source's first list, by source number.
///
/// A source has synced if its count exists and is zero.
#[derive(Debug, Default)]
struct Sync(BTreeMap<u32, usize>);

impl Sync {
    fn populate(&mut self, source: u32) {
        self.0.entry(source).or_insert(0);
    }

    /// Records a queued list with `count` items. Has no effect if the source has already queued a list or a
    /// change.
    ///
    /// Returns true if this is the source's first list and `count` is zero. The source has then synced.
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

    /// Records that an item of a source was popped. Returns whether the item was the last one of the source's
    /// first list.
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
