//! Fuzz target that runs operations on the library's indexer, which is a store with indices.
//!
//! After each operation, the indexer must contain the same objects as a map that serves as the model. A
//! snapshot must never change.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{ObjectMeta, ResourceExt as _};
use kube_informer::{
    Indexer, ObjectName, Snapshot,
    indexer::{self, IndexerWriter, Indexers},
};

use crate::planted::Bug;

const COLOURS: [&str; 3] = ["red", "green", "blue"];
const INDICES: [&str; 2] = ["colour", "late"];

/// The expected objects, each with a bit mask of its index values.
///
/// Bit `i` of the mask is set if the object has the index value `COLOURS[i]`.
type Model = BTreeMap<ObjectName, u8>;

struct Under {
    indexer: Indexer<ConfigMap>,
    writer: IndexerWriter<ConfigMap>,
    model: Model,
    has_late: bool,
    held: Vec<(Snapshot<ConfigMap>, Model)>,
    revision: u64,
}

/// Runs at most 64 operations on a new indexer and on the model, and compares them after each operation.
///
/// Each operation consists of two bytes of `data`: the kind of the operation and its argument. Returns a
/// text that lists the kinds of the operations that ran.
pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let (indexer, writer) = indexer::new(by_colour(INDICES[0], bug)).expect("the name is free");
    let mut under = Under {
        indexer,
        writer,
        model: Model::new(),
        has_late: false,
        held: Vec::new(),
        revision: 0,
    };
    let mut kinds = [false; 6];
    for operation in data.chunks_exact(2).take(64) {
        kinds[usize::from(operation[0] % 6)] = true;
        under.operate(operation[0] % 6, operation[1]);
        same(
            &under.indexer.snapshot(),
            &under.model,
            &INDICES[..=usize::from(under.has_late)],
        );
    }
    for (snapshot, model) in &under.held {
        same(snapshot, model, &INDICES[..1]);
    }
    let kinds = kinds.map(u8::from);
    format!("{kinds:?} {}", under.model.len().min(3))
}

impl Under {
    fn operate(&mut self, operation: u8, argument: u8) {
        self.revision += 1;
        match operation {
            0 | 1 => {
                let colours = argument >> 5;
                let change = self.writer.add(object(argument, colours, self.revision));
                let is_new = self.model.insert(name(argument), colours).is_none();
                let change = change
                    .expect("it has a name")
                    .expect("no revision is older");
                assert_eq!(
                    matches!(change, kube_informer::indexer::Change::Added { .. }),
                    is_new
                );
            }
            2 => {
                let change = self.writer.delete(&name(argument));
                assert_eq!(
                    change.is_some(),
                    self.model.remove(&name(argument)).is_some()
                );
            }
            3 => {
                // A bit selects whether the name is listed; the colours follow from the name.
                let listed = (0..8).filter(|number| argument >> number & 1 == 1);
                let listed: Vec<u8> = listed.collect();
                let objects = listed
                    .iter()
                    .map(|number| object(*number, number % 8, self.revision));
                let replaced = self
                    .writer
                    .replace(objects.collect::<Vec<_>>(), self.revision);
                replaced.expect("all have names");
                self.model = listed
                    .iter()
                    .map(|number| (name(*number), number % 8))
                    .collect();
            }
            4 if self.has_late => {
                self.writer
                    .remove_index(INDICES[1])
                    .expect("the index exists");
                self.has_late = false;
            }
            4 => {
                let errors = self.writer.add_indexers(by_colour(INDICES[1], None));
                assert!(errors.expect("the name is free").is_empty());
                self.has_late = true;
            }
            _ => self
                .held
                .push((self.indexer.snapshot(), self.model.clone())),
        }
    }
}

fn same(snapshot: &Snapshot<ConfigMap>, model: &Model, indices: &[&str]) {
    let names: Vec<_> = snapshot
        .iter()
        .map(|object| object.object_name().clone())
        .collect();
    let expected: Vec<_> = model.keys().cloned().collect();
    assert_eq!(names, expected, "the objects differ");
    assert_eq!(snapshot.len(), model.len());
    for index in indices {
        for (bit, colour) in COLOURS.iter().enumerate() {
            let found = snapshot.by_index(*index, colour).expect("the index exists");
            let found: Vec<_> = found.map(|object| object.object_name().clone()).collect();
            let of_it = model.iter().filter(|(_, colours)| *colours >> bit & 1 == 1);
            let expected: Vec<_> = of_it.map(|(name, _)| name.clone()).collect();
            assert_eq!(found, expected, "{index}: what is {colour}");
            let keys = snapshot.index_keys(*index, colour);
            let keys = keys.expect("the index exists");
            assert_eq!(keys, expected, "{index}: the keys of {colour}");
        }
        let values = snapshot.index_values(*index).expect("the index exists");
        let used = |bit: &usize| model.values().any(|colours| *colours >> bit & 1 == 1);
        let expected = (0..COLOURS.len()).filter(used).count();
        assert_eq!(values.len(), expected, "{index}: the number of colours");
    }
    for (name, colours) in model {
        let object = snapshot.get(name).and_then(|object| object.live());
        let data = object.and_then(|object| object.data.as_ref());
        let found = data
            .and_then(|data| data.get("colours"))
            .map(String::as_str);
        assert_eq!(
            found,
            Some(colours.to_string().as_str()),
            "the state of {name}"
        );
    }
}

fn by_colour(index: &str, bug: Option<Bug>) -> Indexers<ConfigMap> {
    let first = parking_lot::Mutex::new(BTreeMap::new());
    Indexers::new().with(index, move |object: &ConfigMap| {
        let data = object.data.as_ref().and_then(|data| data.get("colours"));
        let mut colours: u8 = data.and_then(|data| data.parse().ok()).unwrap_or_default();
        if bug == Some(Bug::StaleIndexValue) {
            let mut first = first.lock();
            colours = *first.entry(object.name_any()).or_insert(colours);
        }
        let of_it = COLOURS.iter().enumerate();
        of_it
            .filter(|(bit, _)| colours >> bit & 1 == 1)
            .map(|(_, colour)| (*colour).to_owned())
            .collect::<Vec<_>>()
    })
}

/// Returns one of eight object names, cluster-scoped or in one of three namespaces.
fn name(number: u8) -> ObjectName {
    let number = number % 8;
    let namespace = ["a", "a-b", "b"].get(usize::from(number % 4));
    ObjectName::new(namespace.copied(), &format!("n{number}"))
}

fn object(number: u8, colours: u8, revision: u64) -> ConfigMap {
    let name = name(number);
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.name().to_owned()),
            namespace: name.namespace().map(str::to_owned),
            resource_version: Some(revision.to_string()),
            ..ObjectMeta::default()
        },
        data: Some([("colours".to_owned(), colours.to_string())].into()),
        ..ConfigMap::default()
    }
}
