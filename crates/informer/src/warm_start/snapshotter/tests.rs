//! Tests of cancelled and failed saves, and of saved stores that a snapshotter must reject.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fs,
    sync::atomic::{AtomicBool, Ordering},
};

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error as _};

use super::*;
use crate::{
    indexer::{self, Indexers},
    limits::REVISION_BYTES,
    queue::Batch,
    transport::{Error, ListOptions, Response},
};

/// While this value is true, the serialization of an object named `slow` waits.
static HELD: AtomicBool = AtomicBool::new(false);
static WRITING: AtomicBool = AtomicBool::new(false);

/// A ConfigMap whose name determines whether serialization or deserialization waits, fails or panics.
#[derive(Debug)]
struct Odd(ConfigMap);

impl Serialize for Odd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.metadata.name.as_deref() {
            Some("slow") => {
                WRITING.store(true, Ordering::SeqCst);
                while HELD.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            }
            Some("unwritable") => return Err(S::Error::custom("not this one")),
            Some("panics-when-written") => panic!("as it says"),
            _ => {}
        }
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Odd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = ConfigMap::deserialize(deserializer)?;
        let name = map.metadata.name.as_deref();
        assert_ne!(name, Some("panics-when-read"), "as it says");
        Ok(Self(map))
    }
}

impl Resource for Odd {
    type DynamicType = ();
    type Scope = kube_core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "ConfigMap".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "configmaps".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}

/// A `ListerWatcher` of all ConfigMaps, whose lists and watches never complete.
struct Unasked;

impl ListerWatcher for Unasked {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        std::future::pending().boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        std::future::pending().boxed()
    }

    fn collection(&self) -> Option<String> {
        Some("/api/v1/configmaps".to_owned())
    }
}

fn named(name: &str) -> Odd {
    Odd(ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
}

/// A snapshotter that saves to a file in a temporary directory. Removes the directory on drop.
struct World {
    snapshotter: Arc<Snapshotter<Odd>>,
    folder: PathBuf,
}

impl World {
    fn new(test: &str) -> Self {
        let process = std::process::id();
        let folder =
            std::env::temp_dir().join(format!("kube-informer-snapshotter-{process}-{test}"));
        let store = SavedStore::in_file(folder.join("maps.jsonl"), "1").server("one");
        let storing = Storing::new(store.clock(|| UNIX_EPOCH));
        let snapshotter = Arc::new(Snapshotter::new(
            storing,
            &(),
            &[Arc::new(Unasked)],
            &Pruning::default(),
        ));
        Self {
            snapshotter,
            folder,
        }
    }

    async fn save(&self, names: &[&str]) -> Result<Saved, SaveError> {
        self.snapshotter.save(snapshot(names)).await
    }

    async fn load(&self) -> Result<Loaded<Odd>, ColdReason> {
        self.snapshotter.load(Decoder::new(&(), None)).await
    }

    /// Writes a store without objects to the snapshotter's file. `change` modifies the header of the store.
    fn write(&self, change: impl FnOnce(&mut Header)) {
        let mut header = self.snapshotter.header(&snapshot(&[])).unwrap();
        change(&mut header);
        fs::create_dir_all(&self.folder).unwrap();
        let file = fs::File::create(self.snapshotter.path()).unwrap();
        let writer = Writer::new(file, &header, Limits::DEFAULT).unwrap();
        writer.finish().unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn snapshot(names: &[&str]) -> Snapshot<Odd> {
    let (indexer, mut writer) = indexer::new(Indexers::by_namespace()).unwrap();
    writer
        .replace(names.iter().map(|name| named(name)), 7)
        .unwrap();
    indexer.snapshot()
}

#[tokio::test]
async fn a_save_that_is_given_up_writes_nothing_and_the_next_one_waits_for_it() {
    let world = World::new("given-up");
    let snapshotter = &world.snapshotter;
    HELD.store(true, Ordering::SeqCst);
    let mut given_up = Box::pin(snapshotter.save(snapshot(&["slow", "x"])));
    assert!(given_up.as_mut().now_or_never().is_none());
    while !WRITING.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    drop(given_up);
    let is_at_it = snapshotter.turn.try_lock().is_err();
    HELD.store(false, Ordering::SeqCst);
    assert!(is_at_it, "the file is still its own");
    drop(snapshotter.turn.lock().await);
    assert!(!snapshotter.path().exists());
    assert_eq!(world.save(&["a", "b"]).await.unwrap().objects, 2);
}

#[tokio::test]
async fn an_object_that_cannot_be_written_leaves_what_was_saved_before() {
    let world = World::new("unwritable");
    world.save(&["a"]).await.unwrap();
    let refused = world.save(&["a", "unwritable"]).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "unwritable can't be serialized as JSON"
    );
    let panicked = world.save(&["a", "panics-when-written"]).await;
    assert!(matches!(panicked, Err(SaveError::Panicked)), "{panicked:?}");
    let loaded = world.load().await.unwrap();
    assert_eq!(format!("{:?}", loaded.lists[0].0), "[a@]");
    let count = fs::read_dir(&world.folder).unwrap().count();
    assert_eq!(count, 2, "the store and its lock");
}

#[tokio::test]
async fn a_file_that_another_process_is_writing_is_said_to_be_busy() {
    let world = World::new("busy");
    world.save(&[]).await.unwrap();
    let path = world.snapshotter.path();
    let lock = fs::File::open(path.with_extension("jsonl.lock")).unwrap();
    lock.lock().unwrap();
    let busy = world.save(&["a"]).await.unwrap_err();
    assert!(matches!(&busy, SaveError::Busy(at) if at == path), "{busy}");
    drop(lock);
    world.save(&["a"]).await.unwrap();
}

#[tokio::test]
async fn each_source_is_saved_with_its_own_revision() {
    let storing = Storing::new(SavedStore::in_file("nowhere", "1").server("one"));
    let snapshotter = Snapshotter::<Odd>::new(
        storing,
        &(),
        &[Arc::new(Unasked), Arc::new(Unasked)],
        &Pruning::default(),
    );
    let (indexer, mut writer) = indexer::new(Indexers::by_namespace()).unwrap();
    writer.apply(Batch {
        deltas: Vec::new(),
        in_initial_list: false,
        completes: None,
        reached: (0..).map(SourceId::new).zip([5.into(), 9.into()]).collect(),
    });
    let header = snapshotter.header(&indexer.snapshot()).unwrap();
    let revisions: Vec<_> = header
        .sources
        .iter()
        .map(|source| &*source.revision)
        .collect();
    assert_eq!(revisions, ["5", "9"]);
}

#[tokio::test]
async fn what_panics_when_it_is_read_is_damage() {
    let world = World::new("unreadable");
    world.save(&["panics-when-read"]).await.unwrap();
    let reason = world.load().await.unwrap_err();
    assert_eq!(reason, damaged("reading it panicked"));
}

#[tokio::test]
async fn a_file_that_is_larger_than_any_store_is_not_read() {
    let world = World::new("huge");
    world.save(&[]).await.unwrap();
    let file = fs::File::options()
        .write(true)
        .open(world.snapshotter.path());
    file.unwrap().set_len((4 << 30) + 1).unwrap();
    let reason = world.load().await.unwrap_err();
    assert_eq!(
        reason,
        damaged("it is larger than the limit of a saved store")
    );
}

#[tokio::test]
async fn a_time_that_no_clock_shows_is_no_age() {
    let world = World::new("late");
    world.write(|header| header.saved = u64::MAX);
    assert_eq!(world.load().await.unwrap().age, Duration::ZERO);
}

#[tokio::test]
async fn what_was_saved_with_other_fields_pruned_is_not_loaded_and_has_another_file() {
    let world = World::new("pruned");
    for (pruned, fits) in [("", true), ("-metadata.managedFields", false)] {
        world.write(|header| header.pruned = pruned.to_owned());
        let reason = world.load().await.err();
        assert_eq!(reason, (!fits).then_some(ColdReason::OtherPruning));
    }
    let path = |pruning: &Pruning| {
        let storing = Storing::new(SavedStore::in_directory("d", "1"));
        let snapshotter = Snapshotter::<Odd>::new(storing, &(), &[Arc::new(Unasked)], pruning);
        snapshotter.path().to_owned()
    };
    let mut pruning = Pruning::default();
    let whole = path(&pruning);
    let managed = "metadata.managedFields".parse().unwrap();
    pruning.prune::<Odd>([managed]).unwrap();
    assert_ne!(path(&pruning), whole);
}

#[tokio::test]
async fn a_source_without_a_revision_is_nothing_to_go_on_from() {
    let world = World::new("no-revision");
    let endless = "9".repeat(REVISION_BYTES + 1);
    for revision in ["", "0", "5\n6", &endless] {
        world.write(|header| header.sources[0].revision = revision.to_owned());
        let reason = world.load().await.unwrap_err();
        assert_eq!(reason, damaged("a source has no revision"), "{revision:?}");
    }
}

#[test]
fn a_server_is_named_once_and_is_not_known_while_one_source_cannot_tell() {
    let storing = || Storing::new(SavedStore::in_file("nowhere", "1"));
    let snapshotter =
        || Snapshotter::<Odd>::new(storing(), &(), &[Arc::new(Unasked)], &Pruning::default());
    let answers = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect();
    let several = snapshotter();
    several.identify(answers(&["one", "two", "one"])).unwrap();
    assert_eq!(several.server(), Some("one two"));
    let unknown = snapshotter();
    let mut silent: Vec<_> = answers(&["one"]);
    silent.push(None);
    assert!(unknown.identify(silent).is_err());
    assert_eq!(unknown.server(), None);
}

#[test]
fn the_name_of_a_file_follows_from_kind_and_collections_and_is_fit_for_one() {
    let name = |kind: &str, collections: &[&str]| {
        let collections: Vec<_> = collections.iter().map(|&it| it.to_owned()).collect();
        file_name(
            "po/ds",
            collections.iter().map(String::as_str).chain([kind]),
        )
    };
    let names = [
        name("v1 Pod", &["/a", "/b"]),
        name("v1 Pod", &["/a/b"]),
        name("v1 Pod", &["/b", "/a"]),
        name("v2 Pod", &["/a", "/b"]),
    ];
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    for name in &names {
        let rest = name.strip_prefix("pods-").unwrap();
        assert!(rest.len() == 16 + ".jsonl".len(), "{name}");
    }
}

#[test]
fn secrets_are_refused_whatever_their_type_is_and_what_has_their_name_only_is_not() {
    let path = Path::new("nowhere");
    let check = |group| {
        let kind = GroupVersionKind::gvk(group, "v1", "Secret");
        let storing = Storing::new(SavedStore::in_file(path, "1").server("one"));
        let dyntype = ApiResource::from_gvk(&kind);
        Snapshotter::<DynamicObject>::new(
            storing,
            &dyntype,
            &[Arc::new(Unasked)],
            &Pruning::default(),
        )
        .check()
    };
    assert_eq!(check(""), Err(ColdReason::SecretsRefused));
    assert_eq!(check("example.com"), Ok(()));
}
