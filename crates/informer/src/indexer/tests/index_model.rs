//! Compares the store's indices, and queries over them, with results that are computed from all objects.
//!
//! The test adds and removes indices between random changes of the objects.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::selector::{FieldOperator, FieldSelector};

const NAMES: [&str; 6] = ["a/x", "a/y", "a-b/x", "b/x", "top", "zz"];
/// Names of the test indices.
///
/// The colours of an object are a subset of [`VALUES`], stored in its label `colours`. The index `INDICES[n]`
/// contains an object under each of its colours except `VALUES[n]`.
const INDICES: [&str; 3] = ["first", "second", "third"];
const VALUES: [&str; 4] = ["red", "blue", "green", ""];
const NAMESPACES: [&str; 4] = ["a", "a-b", "b", ""];

type Colours = BTreeSet<&'static str>;

#[derive(Clone, Debug)]
enum Operation {
    Put(usize, Option<u8>),
    Delete(usize),
    List(BTreeMap<usize, u8>),
    Add(usize),
    /// Starts to build the index `INDICES[n]`. `Install` later adds this index to the store.
    Begin(usize),
    Install,
    Remove(usize),
    Keep,
}

#[derive(Clone, Debug)]
enum Condition {
    Any(usize, Vec<usize>),
    Not(usize, usize),
    InNamespaces(Vec<usize>),
    NotInNamespace(usize),
    Field(usize, bool, usize),
    Named(bool),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let name = || 0..NAMES.len();
    let index = || 0..INDICES.len();
    let operation = prop_oneof![
        6 => (name(), prop::option::weighted(0.8, 0..16u8)).prop_map(|(name, colours)| Operation::Put(name, colours)),
        2 => name().prop_map(Operation::Delete),
        1 => prop::collection::btree_map(name(), 0..16u8, 0..5).prop_map(Operation::List),
        2 => index().prop_map(Operation::Add),
        1 => index().prop_map(Operation::Begin),
        2 => Just(Operation::Install),
        1 => index().prop_map(Operation::Remove),
        1 => Just(Operation::Keep),
    ];
    prop::collection::vec(operation, 0..40)
}

fn conditions() -> impl Strategy<Value = Vec<Condition>> {
    let index = || 0..INDICES.len();
    let value = || 0..VALUES.len();
    let some = || prop::collection::vec(0..VALUES.len(), 0..3);
    let condition = prop_oneof![
        4 => (index(), some()).prop_map(|(index, values)| Condition::Any(index, values)),
        2 => (index(), value()).prop_map(|(index, value)| Condition::Not(index, value)),
        1 => some().prop_map(Condition::InNamespaces),
        1 => value().prop_map(Condition::NotInNamespace),
        2 => (index(), any::<bool>(), value())
            .prop_map(|(index, equal, value)| Condition::Field(index, equal, value)),
        1 => any::<bool>().prop_map(Condition::Named),
    ];
    prop::collection::vec(condition, 0..4)
}

fn chosen(bits: u8) -> Colours {
    let all = VALUES.into_iter().enumerate();
    let chosen = all.filter(|(bit, _)| bits >> bit & 1 == 1);
    chosen.map(|(_, colour)| colour).collect()
}

/// Returns the values of an object with these colours in the index `INDICES[index]`.
fn values_of(index: usize, colours: &Colours) -> Colours {
    let of_index = |colour: &&str| VALUES.iter().position(|value| value == colour) != Some(index);
    colours.iter().copied().filter(of_index).collect()
}

/// Returns the index `INDICES[number]`. In the label `colours`, `-` stands for the colour `""`.
fn indexers(number: usize) -> Indexers<K> {
    Indexers::new().with(INDICES[number], move |map: &K| {
        let own = colours(map).into_iter();
        let own = own.map(|colour| colour.replace('-', ""));
        let known = own.filter_map(|own| VALUES.into_iter().find(|value| *value == own));
        values_of(number, &known.collect())
    })
}

fn coloured(name: &str, revision: usize, colours: &Colours) -> Object<K> {
    let colours: Vec<_> = colours
        .iter()
        .map(|colour| if colour.is_empty() { "-" } else { colour })
        .collect();
    object(&format!("{name}@{revision} {}", colours.join(",")))
}

/// The expected objects with their colours, and the expected indices as positions in [`INDICES`]. Objects
/// that can't be decoded are left out.
#[derive(Clone, Debug, Default)]
struct Naive {
    objects: BTreeMap<ObjectName, Colours>,
    indices: BTreeSet<usize>,
}

impl Naive {
    fn same_as(&self, snapshot: &Snapshot<K>) -> Result<(), TestCaseError> {
        for (number, index_name) in INDICES.into_iter().enumerate() {
            if !self.indices.contains(&number) {
                prop_assert!(snapshot.index_values(index_name).is_err());
                continue;
            }
            let mut expected: BTreeMap<&str, Vec<&ObjectName>> = BTreeMap::new();
            for (name, colours) in &self.objects {
                for value in values_of(number, colours) {
                    expected.entry(value).or_default().push(name);
                }
            }
            let lines = expected
                .iter()
                .map(|(value, names)| format!("{value}: {names:?}"));
            let expected = lines.collect::<Vec<_>>().join(", ");
            prop_assert_eq!(index(snapshot, index_name), expected, "{}", index_name);
        }
        Ok(())
    }

    fn meets(&self, name: &ObjectName, condition: &Condition) -> bool {
        let colours = &self.objects[name];
        let namespace = name.namespace().unwrap_or_default();
        match condition {
            Condition::Any(index, wanted) => {
                let values = values_of(*index, colours);
                wanted.iter().any(|value| values.contains(VALUES[*value]))
            }
            Condition::Not(index, unwanted) => {
                !values_of(*index, colours).contains(VALUES[*unwanted])
            }
            Condition::InNamespaces(wanted) => {
                wanted.iter().any(|wanted| NAMESPACES[*wanted] == namespace)
            }
            Condition::NotInNamespace(unwanted) => NAMESPACES[*unwanted] != namespace,
            Condition::Field(index, equal, wanted) => {
                let values = values_of(*index, colours);
                let wanted = VALUES[*wanted];
                let missing = || wanted.is_empty() && values.iter().all(|value| value.is_empty());
                let has = !wanted.is_empty() && values.contains(wanted);
                (has || missing()) == *equal
            }
            Condition::Named(equal) => (name.name() == "x") == *equal,
        }
    }

    /// Returns the names that a query must find, or `None` if one of its indices does not exist.
    fn answer(&self, conditions: &[Condition]) -> Option<Vec<&ObjectName>> {
        let indices = conditions.iter().filter_map(|condition| match condition {
            Condition::Any(index, _) | Condition::Not(index, _) | Condition::Field(index, ..) => {
                Some(index)
            }
            _ => None,
        });
        let known = indices
            .into_iter()
            .all(|index| self.indices.contains(index));
        let all = self.objects.keys();
        let found = all.filter(|name| conditions.iter().all(|wanted| self.meets(name, wanted)));
        known.then(|| found.collect())
    }
}

fn ask(snapshot: &Snapshot<K>, conditions: &[Condition]) -> Option<Vec<ObjectName>> {
    let mut fields = FieldSelector::everything();
    for condition in conditions {
        let (field, equal, value) = match condition {
            Condition::Field(index, equal, value) => (INDICES[*index], equal, VALUES[*value]),
            Condition::Named(equal) => ("metadata.name", equal, "x"),
            _ => continue,
        };
        let operator = [FieldOperator::NotEquals, FieldOperator::Equals][usize::from(*equal)];
        fields = fields.and(field, operator, value);
    }
    let mut query = snapshot.by_fields(&fields).ok()?;
    for condition in conditions {
        query = match condition {
            Condition::Any(index, values) => {
                query.and_any(INDICES[*index], values.iter().map(|value| VALUES[*value]))
            }
            Condition::Not(index, value) => query.and_not(INDICES[*index], VALUES[*value]),
            Condition::InNamespaces(all) => query.and_any(
                NAMESPACE,
                all.iter().map(|namespace| NAMESPACES[*namespace]),
            ),
            Condition::NotInNamespace(one) => query.and_not(NAMESPACE, NAMESPACES[*one]),
            Condition::Field(..) | Condition::Named(_) => Ok(query),
        }
        .ok()?;
    }
    let found: Vec<_> = query.iter().map(Object::object_name).cloned().collect();
    let again = query.into_iter().map(Object::object_name);
    assert!(again.eq(&found), "both iterators find the same");
    Some(found)
}

/// State of one test run. `naive` is the expected content of the store. `build` is an index that is not in
/// the store yet. `kept` contains snapshots with their expected content.
struct Played {
    indexer: Indexer<K>,
    writer: IndexerWriter<K>,
    naive: Naive,
    build: Option<(usize, IndexBuild<K>)>,
    kept: Vec<(Snapshot<K>, Naive)>,
    clock: usize,
}

impl Played {
    fn play(&mut self, operation: Operation) -> Result<(), TestCaseError> {
        self.clock += 1;
        let clock = self.clock;
        match operation {
            Operation::Put(at, Some(bits)) => {
                let object = coloured(NAMES[at], clock, &chosen(bits));
                self.naive.objects.insert(name(NAMES[at]), chosen(bits));
                self.writer.apply(batch(0, [DeltaKind::Updated(object)]));
            }
            Operation::Put(at, None) => {
                let object = broken(&format!("{}@{clock}", NAMES[at]));
                self.naive.objects.remove(object.object_name());
                self.writer.apply(batch(0, [DeltaKind::Updated(object)]));
            }
            Operation::Delete(at) => {
                self.naive.objects.remove(&name(NAMES[at]));
                self.writer.delete(&name(NAMES[at]));
            }
            Operation::List(items) => {
                let objects = items
                    .iter()
                    .map(|(at, bits)| coloured(NAMES[*at], clock, &chosen(*bits)));
                self.writer.apply(batch(0, [list(clock as u64, objects)]));
                let items = items.into_iter();
                self.naive.objects = items
                    .map(|(at, bits)| (name(NAMES[at]), chosen(bits)))
                    .collect();
            }
            Operation::Add(number) => {
                let added = self.writer.add_indexers(indexers(number));
                prop_assert_eq!(added.is_ok(), self.naive.indices.insert(number));
            }
            Operation::Begin(number) => {
                let build = IndexBuild::new(indexers(number), &self.indexer.snapshot());
                prop_assert_eq!(build.is_err(), self.naive.indices.contains(&number));
                if let Ok(mut build) = build {
                    let approach = build.approach(|| self.indexer.snapshot());
                    approach
                        .now_or_never()
                        .expect("a few objects are indexed without a yield");
                    self.build = Some((number, build));
                }
            }
            Operation::Install => {
                if let Some((number, build)) = self.build.take() {
                    let installed = self.writer.install(build);
                    prop_assert_eq!(installed.is_ok(), self.naive.indices.insert(number));
                }
            }
            Operation::Remove(number) => {
                let removed = self.writer.remove_index(INDICES[number]);
                prop_assert_eq!(removed.is_ok(), self.naive.indices.remove(&number));
            }
            Operation::Keep => {
                let snapshot = self.indexer.snapshot();
                self.kept.push((snapshot, self.naive.clone()));
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn indices_equal_a_naive_recomputation(
        operations in operations(),
        queries in prop::collection::vec(conditions(), 3),
    ) {
        let (indexer, writer) = new(Indexers::new()).unwrap();
        let mut played = Played {
            indexer,
            writer,
            naive: Naive::default(),
            build: None,
            kept: Vec::new(),
            clock: 0,
        };
        for operation in operations {
            played.play(operation)?;
            let newest = (played.indexer.snapshot(), played.naive.clone());
            for (snapshot, naive) in played.kept.iter().chain([&newest]) {
                naive.same_as(snapshot)?;
                for query in &queries {
                    let found = ask(snapshot, query);
                    let found = found.as_ref().map(|found| found.iter().collect::<Vec<_>>());
                    prop_assert_eq!(found, naive.answer(query), "{:?}", query);
                }
            }
        }
    }
}
