//! Compares candidates for the ordered map inside the store. After each write, the map is cloned as a
//! snapshot.
//!
//! The figures are in `docs/benchmarks.md`, and the selected candidate is explained in
//! `docs/design/store.md`.
//!
//! ```text
//! cargo bench -p kube-informer --bench snapshots
//! cargo bench -p kube-informer --bench snapshots -- 10000 1000000
//! ```
//!
//! The arguments are numbers of objects. Each candidate is measured in a separate process for each number of
//! objects. A write replaces one object and keeps the previous snapshot until the next write. A list reads
//! every object. Times are the minimum of several rounds, because other programs on the machine only increase
//! them.
//!
//! The memory per object is the growth of the process's resident memory divided by the number of objects. It
//! does not include the names and contents of the objects, and is measured only on Linux.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::{collections::BTreeMap, hint::black_box, ops::Bound, process::Command, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use kube_informer::{Object, ObjectName, object::SourceId};
use tokio::time::{Duration, Instant};

#[expect(dead_code, unused_imports, reason = "the store uses the other items")]
#[path = "../src/indexer"]
mod indexer {
    pub(super) mod tree;
}

use indexer::tree::Tree;

const NAMESPACES: usize = 10;
const ROUNDS: usize = 5;
/// Number of writes or gets per round.
const STEPS: usize = 20_000;

/// Value type of the maps that the benchmark compares, the same as in the library's store.
///
/// The [`SourceId`] identifies the list and watch that delivered the object.
type Entry = (Object<ConfigMap>, SourceId);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, size] = &arguments[..]
        && let Some((_, measure)) = CANDIDATES.iter().find(|(known, _)| known == name)
    {
        println!("{}", measure(size.parse().expect("a number of objects")));
        return;
    }
    let sizes: Vec<usize> = arguments
        .iter()
        .filter_map(|size| size.parse().ok())
        .collect();
    let sizes = if sizes.is_empty() {
        vec![10_000, 100_000]
    } else {
        sizes
    };
    println!(
        "| objects | map | write, ns | whole list, ns/object | namespace, ns/object | get, ns | bytes/object |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: |");
    let program = std::env::current_exe().expect("this program");
    for size in sizes {
        for (name, _) in CANDIDATES {
            let measured = Command::new(&program)
                .args([*name, &size.to_string()])
                .output();
            let measured = measured.expect("this program runs").stdout;
            println!(
                "| {size} | {name} | {} |",
                String::from_utf8_lossy(&measured).trim()
            );
        }
    }
}

type Measure = fn(usize) -> String;

const CANDIDATES: &[(&str, Measure)] = &[
    ("tree, 8 wide", measure::<Tree<ObjectName, Entry, 8>>),
    ("tree, 16 wide", measure::<Tree<ObjectName, Entry, 16>>),
    ("tree, 32 wide", measure::<Tree<ObjectName, Entry, 32>>),
    ("tree, 64 wide", measure::<Tree<ObjectName, Entry, 64>>),
    ("imbl::OrdMap", measure::<imbl::OrdMap<ObjectName, Entry>>),
    (
        "imbl::OrdMap, entries in Arcs",
        measure::<imbl::OrdMap<ObjectName, Arc<Entry>>>,
    ),
    (
        "imbl::HashMap, sorted for each list",
        measure::<imbl::HashMap<ObjectName, Entry>>,
    ),
    ("256 BTreeMaps, copied on write", measure::<Shards>),
];

/// A candidate for the store's map. A clone is a snapshot.
trait Map: Clone + Default {
    fn put(&mut self, name: &ObjectName, entry: &Entry);
    fn find(&self, name: &ObjectName) -> Option<&Object<ConfigMap>>;
    fn each(&self, visit: impl FnMut(&Object<ConfigMap>));
    fn each_of(&self, namespace: &str, visit: impl FnMut(&Object<ConfigMap>));
}

impl<const WIDTH: usize> Map for Tree<ObjectName, Entry, WIDTH> {
    fn put(&mut self, name: &ObjectName, entry: &Entry) {
        self.insert(name.clone(), entry.clone());
    }

    fn find(&self, name: &ObjectName) -> Option<&Object<ConfigMap>> {
        self.get(name).map(|entry| &entry.0)
    }

    fn each(&self, mut visit: impl FnMut(&Object<ConfigMap>)) {
        self.values().for_each(|entry| visit(&entry.0));
    }

    fn each_of(&self, namespace: &str, mut visit: impl FnMut(&Object<ConfigMap>)) {
        let first = ObjectName::namespaced(namespace, "");
        let entries = self.range(Bound::Included(&first), |name| {
            name.namespace() == Some(namespace)
        });
        entries.for_each(|(_, entry)| visit(&entry.0));
    }
}

impl Map for imbl::OrdMap<ObjectName, Entry> {
    fn put(&mut self, name: &ObjectName, entry: &Entry) {
        self.insert(name.clone(), entry.clone());
    }

    fn find(&self, name: &ObjectName) -> Option<&Object<ConfigMap>> {
        self.get(name).map(|entry| &entry.0)
    }

    fn each(&self, mut visit: impl FnMut(&Object<ConfigMap>)) {
        self.values().for_each(|entry| visit(&entry.0));
    }

    fn each_of(&self, namespace: &str, mut visit: impl FnMut(&Object<ConfigMap>)) {
        let entries = self.range(ObjectName::namespaced(namespace, "")..);
        let own = entries.take_while(|(name, _)| name.namespace() == Some(namespace));
        own.for_each(|(_, entry)| visit(&entry.0));
    }
}

impl Map for imbl::OrdMap<ObjectName, Arc<Entry>> {
    fn put(&mut self, name: &ObjectName, entry: &Entry) {
        self.insert(name.clone(), Arc::new(entry.clone()));
    }

    fn find(&self, name: &ObjectName) -> Option<&Object<ConfigMap>> {
        self.get(name).map(|entry| &entry.0)
    }

    fn each(&self, mut visit: impl FnMut(&Object<ConfigMap>)) {
        self.values().for_each(|entry| visit(&entry.0));
    }

    fn each_of(&self, namespace: &str, mut visit: impl FnMut(&Object<ConfigMap>)) {
        let entries = self.range(ObjectName::namespaced(namespace, "")..);
        let own = entries.take_while(|(name, _)| name.namespace() == Some(namespace));
        own.for_each(|(_, entry)| visit(&entry.0));
    }
}

impl Map for imbl::HashMap<ObjectName, Entry> {
    fn put(&mut self, name: &ObjectName, entry: &Entry) {
        self.insert(name.clone(), entry.clone());
    }

    fn find(&self, name: &ObjectName) -> Option<&Object<ConfigMap>> {
        self.get(name).map(|entry| &entry.0)
    }

    fn each(&self, mut visit: impl FnMut(&Object<ConfigMap>)) {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        for (_, entry) in all {
            visit(&entry.0);
        }
    }

    fn each_of(&self, namespace: &str, mut visit: impl FnMut(&Object<ConfigMap>)) {
        let own = self
            .iter()
            .filter(|(name, _)| name.namespace() == Some(namespace));
        let mut own: Vec<_> = own.collect();
        own.sort_unstable_by_key(|(name, _)| *name);
        for (_, entry) in own {
            visit(&entry.0);
        }
    }
}

/// A candidate for the store's map: 256 sorted maps. The hash of an object's name selects one of them.
#[derive(Clone)]
struct Shards(Arc<Vec<Arc<BTreeMap<ObjectName, Entry>>>>);

impl Default for Shards {
    fn default() -> Self {
        Self(Arc::new(vec![Arc::default(); 256]))
    }
}

impl Shards {
    fn of(name: &ObjectName) -> usize {
        let bytes = name.as_str().bytes();
        bytes.fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        }) % 256
    }
}

impl Map for Shards {
    fn put(&mut self, name: &ObjectName, entry: &Entry) {
        let shard = &mut Arc::make_mut(&mut self.0)[Self::of(name)];
        Arc::make_mut(shard).insert(name.clone(), entry.clone());
    }

    fn find(&self, name: &ObjectName) -> Option<&Object<ConfigMap>> {
        self.0[Self::of(name)].get(name).map(|entry| &entry.0)
    }

    fn each(&self, mut visit: impl FnMut(&Object<ConfigMap>)) {
        let mut all: Vec<_> = self.0.iter().flat_map(|shard| shard.iter()).collect();
        all.sort_by_key(|(name, _)| *name);
        for (_, entry) in all {
            visit(&entry.0);
        }
    }

    fn each_of(&self, namespace: &str, mut visit: impl FnMut(&Object<ConfigMap>)) {
        let first = ObjectName::namespaced(namespace, "");
        let shards = self.0.iter();
        let own = shards.flat_map(|shard| {
            let entries = shard.range(&first..);
            entries.take_while(|(name, _)| name.namespace() == Some(namespace))
        });
        let mut own: Vec<_> = own.collect();
        own.sort_by_key(|(name, _)| *name);
        for (_, entry) in own {
            visit(&entry.0);
        }
    }
}

fn objects(size: usize) -> Vec<Object<ConfigMap>> {
    let mut objects: Vec<_> = (0..size).map(object).collect();
    // A list response has this order.
    objects.sort_by(|a, b| a.object_name().cmp(b.object_name()));
    objects
}

fn object(number: usize) -> Object<ConfigMap> {
    // Objects that are adjacent in memory are not adjacent by name.
    let mixed = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let metadata = ObjectMeta {
        name: Some(format!("map-{mixed:020}")),
        namespace: Some(format!("namespace-{}", number % NAMESPACES)),
        resource_version: Some((number + 1).to_string()),
        ..ObjectMeta::default()
    };
    let object = ConfigMap {
        metadata,
        ..ConfigMap::default()
    };
    Object::new(object).expect("the object has a name")
}

/// Measures the map type `M` with `size` objects, and returns cells of a Markdown table row.
///
/// The cells contain, in this order:
/// - nanoseconds per write;
/// - nanoseconds per object in a list of all objects;
/// - nanoseconds per object in a list of one namespace;
/// - nanoseconds per get;
/// - bytes of memory per object.
fn measure<M: Map>(size: usize) -> String {
    let objects = objects(size);
    let before = resident();
    let mut map = M::default();
    for object in &objects {
        map.put(object.object_name(), &(object.clone(), SourceId::default()));
    }
    let bytes = resident()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before));
    // The step is coprime to the sizes, so that neighbors are not written in a row.
    let somewhere = || (0..STEPS).map(|step| &objects[step * 7_919 % size]);
    let write = best(STEPS, || {
        let mut published = map.clone();
        for object in somewhere() {
            map.put(object.object_name(), &(object.clone(), SourceId::default()));
            published = map.clone();
        }
        drop(published);
    });
    let get = best(STEPS, || {
        for object in somewhere() {
            black_box(map.find(object.object_name()));
        }
    });
    let mut length = 0;
    let mut look = |object: &Object<ConfigMap>| {
        let name = object
            .live()
            .and_then(|object| object.metadata.name.as_ref());
        length += name.map_or(0, String::len);
    };
    let whole = best(size, || map.each(&mut look));
    let namespace = best(size / NAMESPACES, || map.each_of("namespace-3", &mut look));
    black_box(length);
    let bytes = bytes.map_or("?".to_owned(), |bytes| (bytes / size).to_string());
    format!("{write:.0} | {whole:.1} | {namespace:.1} | {get:.0} | {bytes}")
}

/// Returns the nanoseconds per operation of the fastest run of `action`, which has `count` operations.
fn best(count: usize, mut action: impl FnMut()) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        action();
        begun.elapsed()
    });
    let best: Duration = rounds.min().unwrap_or_default();
    best.as_secs_f64() * 1e9 / u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// Returns the resident memory of this process in bytes, if the kernel reports it.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
