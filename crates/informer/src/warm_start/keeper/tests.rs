//! Saves that meet each other.

use std::{
    borrow::Cow,
    fs,
    sync::atomic::{AtomicBool, Ordering},
};

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use serde::{Deserialize, Serializer};

use super::*;
use crate::{
    indexer::{self, Indexers},
    transport::{ByteStream, Error, ListOptions},
};

/// Whether objects are written only when this is over, and whether one is being written.
static HELD: AtomicBool = AtomicBool::new(false);
static WRITING: AtomicBool = AtomicBool::new(false);

/// An object that takes its time to be written.
#[derive(Debug, Deserialize)]
struct Slow(ConfigMap);

impl Serialize for Slow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WRITING.store(true, Ordering::SeqCst);
        while HELD.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        self.0.serialize(serializer)
    }
}

impl Resource for Slow {
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

/// A source that says what it lists, and is never asked for it.
struct Unasked;

impl ListerWatcher for Unasked {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<ByteStream, Error>> {
        std::future::pending().boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<ByteStream, Error>> {
        std::future::pending().boxed()
    }

    fn collection(&self) -> Option<String> {
        Some("/api/v1/configmaps".to_owned())
    }
}

fn named(name: &str) -> Slow {
    Slow(ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
}

#[tokio::test]
async fn a_save_waits_for_one_that_was_given_up_to_let_go_of_the_file() {
    let process = std::process::id();
    let folder = std::env::temp_dir().join(format!("kube-informer-keeper-{process}"));
    let path = folder.join("maps.jsonl");
    let storing = Storing::new(SavedStore::in_file(&path, "1").server("one"));
    let keeper = Arc::new(Keeper::<Slow>::new(storing, &(), &[Arc::new(Unasked)]));
    let (indexer, mut writer) = indexer::new(Indexers::by_namespace()).unwrap();
    writer.replace([named("a"), named("b")], 7).unwrap();

    HELD.store(true, Ordering::SeqCst);
    let mut given_up = Box::pin(keeper.save(indexer.snapshot()));
    assert!(given_up.as_mut().now_or_never().is_none());
    while !WRITING.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    drop(given_up);
    let is_at_it = keeper.turn.try_lock().is_err();
    HELD.store(false, Ordering::SeqCst);
    assert!(is_at_it, "the file is still its own");
    let saved = keeper.save(indexer.snapshot()).await.unwrap();
    assert_eq!(saved.objects, 2);
    fs::remove_dir_all(folder).unwrap();
}
