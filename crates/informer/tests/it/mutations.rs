//! Tests of the opt-in mutation detector: the mutations that a running informer reports.
//!
//! The tests also check when the detector keeps a copy of an object.

use std::{borrow::Cow, sync::Arc, time::Duration};

use k8s_openapi::NamespaceResourceScope;
use kube_core::{ObjectMeta, Resource};
use kube_informer::{
    InformerOptions, SharedInformer, client::ListWatch, informer::Informer, reflector,
    shared_informer::Builder,
};
use kube_informer_apiserver::Server;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinSet, time::sleep};

use crate::setting::{LONG, factory_builder};

const SECOND: Duration = Duration::from_secs(1);

/// A `ConfigMap` with a note that a test can change through a shared reference, to mutate a cached object.
#[derive(Debug, Deserialize)]
struct Noted {
    metadata: ObjectMeta,
    #[serde(skip)]
    note: Mutex<String>,
    /// Reference that all copies of the object share, to count the copies.
    #[serde(skip)]
    alive: Arc<()>,
}

impl Clone for Noted {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            note: Mutex::new(self.note.lock().clone()),
            alive: Arc::clone(&self.alive),
        }
    }
}

impl PartialEq for Noted {
    fn eq(&self, other: &Self) -> bool {
        let theirs = other.note.lock().clone();
        self.metadata == other.metadata && *self.note.lock() == theirs
    }
}

impl Resource for Noted {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

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
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn map(name: &str, data: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"key": data},
    })
}

/// The messages of the mutation errors that the informer's error handler received.
type Heard = Arc<Mutex<Vec<String>>>;

fn builder(server: &Server, alive: &Arc<()>) -> (Builder<Noted>, Heard) {
    let heard = Heard::default();
    let (note, alive) = (Arc::clone(&heard), Arc::clone(alive));
    let builder = SharedInformer::builder(ListWatch::<Noted>::new(server.client()))
        .initial_list(kube_informer::InitialList::List)
        .name("notes")
        .rng_seed(1)
        .transform(move |noted: &mut Noted| noted.alive = Arc::clone(&alive))
        .on_error(move |error| {
            if let reflector::Error::Mutated { .. } = error {
                note.lock().push(error.to_string());
            }
        });
    (builder, heard)
}

struct Running {
    notes: SharedInformer<Noted>,
    stop: oneshot::Sender<()>,
    tasks: JoinSet<()>,
}

async fn run(builder: Builder<Noted>) -> Running {
    let (notes, controller) = builder.build();
    let (stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    // Dropping the sender also stops the informer.
    let running = controller.run(async { drop(stopped.await) });
    tasks.spawn(async {
        running.await.unwrap();
    });
    notes.wait_for_sync().deadline(LONG).await.unwrap();
    Running { notes, stop, tasks }
}

impl Running {
    async fn caught_up(&self, server: &Server) {
        let reached = self.notes.wait_for_revision(server.revision(), LONG);
        reached.await.unwrap();
        self.notes.handlers_idle().await;
    }

    async fn stop(mut self) -> SharedInformer<Noted> {
        let _ = self.stop.send(());
        self.tasks.join_next().await.unwrap().unwrap();
        self.notes
    }
}

fn take(heard: &Heard) -> Vec<String> {
    std::mem::take(&mut *heard.lock())
}

#[tokio::test(start_paused = true)]
async fn a_mutation_by_a_handler_is_detected_within_a_second() {
    let server = Server::builder()
        .seed([map("a", "1"), map("b", "1")])
        .build();
    let (builder, heard) = builder(&server, &Arc::default());
    let running = run(builder.detect_mutations()).await;
    running
        .notes
        .on_add(|noted, _| {
            if noted.name() == "a" {
                "seen".clone_into(&mut noted.live().unwrap().note.lock());
            }
        })
        .register()
        .unwrap();
    running.notes.handlers_idle().await;
    assert_eq!(take(&heard), [""; 0], "no check has run yet");
    // Timers are exact to a millisecond.
    sleep(SECOND + Duration::from_millis(2)).await;
    let expected = "default/a at revision 1 was modified in the cache, which all handlers and readers share; modify a clone instead";
    assert_eq!(take(&heard), [expected]);
    let status = running.notes.status().get();
    assert_eq!(status.mutated, 1, "{status}");

    sleep(60 * SECOND).await;
    assert_eq!(take(&heard), [""; 0], "each state is reported once");
    server.update(map("a", "2")).unwrap();
    running.caught_up(&server).await;
    sleep(2 * SECOND).await;
    assert_eq!(take(&heard), [""; 0], "the new state was not mutated");
    assert_eq!(running.stop().await.status().get().mutated, 1);
}

#[tokio::test(start_paused = true)]
async fn mutations_by_index_functions_and_readers_are_detected_and_the_last_one_at_the_stop() {
    let server = Server::builder().seed([map("a", "1")]).build();
    let (builder, heard) = builder(&server, &Arc::default());
    let meddler = kube_informer::Indexers::new().with("meddler", |noted: &Noted| {
        if noted.metadata.name.as_deref() == Some("indexed") {
            noted.note.lock().push('!');
        }
        None::<String>
    });
    let running = run(builder.indexers(meddler).unwrap().detect_mutations()).await;
    server.create(map("indexed", "1")).unwrap();
    running.caught_up(&server).await;
    // Between two checks.
    sleep(SECOND * 5 / 2).await;
    let found = take(&heard);
    assert!(
        found.len() == 1 && found[0].starts_with("default/indexed at revision 2"),
        "{found:?}"
    );

    let name = "default/a".parse().unwrap();
    let a = running.notes.indexer().get(&name).unwrap();
    a.get().unwrap().note.lock().push('?');
    let notes = running.stop().await;
    let found = take(&heard);
    assert!(
        found.len() == 1 && found[0].starts_with("default/a at revision 1"),
        "{found:?}"
    );
    assert_eq!(notes.status().get().mutated, 2);
}

#[tokio::test(start_paused = true)]
async fn updates_deletes_and_relists_keep_no_copy_and_report_no_mutation() {
    let alive = Arc::new(());
    let seed = ["a", "b", "c", "d"].map(|name| map(name, "1"));
    let server = Server::builder().seed(seed).build();
    let (builder, heard) = builder(&server, &alive);
    let running = run(builder.detect_mutations()).await;
    // Two references here: this one, and the one of the transform.
    let instances = || Arc::strong_count(&alive) - 2;
    assert_eq!(instances(), 8, "an object and its copy each");

    for n in 2..20 {
        server.update(map("a", &n.to_string())).unwrap();
    }
    server.delete("v1", "configmaps", "default/b").unwrap();
    running.caught_up(&server).await;
    sleep(2 * SECOND).await;
    assert_eq!(instances(), 6);

    // A relist: one object is deleted, one unchanged, one new.
    server.faults().cut_watches();
    server.delete("v1", "configmaps", "default/c").unwrap();
    server.create(map("e", "1")).unwrap();
    server.faults().expire_history();
    running.caught_up(&server).await;
    sleep(2 * SECOND).await;
    // The first list, a probe after the watch that broke, and this list.
    assert_eq!(server.requests().lists("configmaps").len(), 3);
    assert_eq!(running.notes.indexer().len(), 3);
    assert_eq!(instances(), 6);
    assert_eq!(take(&heard), [""; 0]);

    let notes = running.stop().await;
    assert_eq!(
        Arc::strong_count(&alive),
        1 + 3,
        "the cache is still readable"
    );
    assert_eq!(notes.status().get().mutated, 0);
}

#[tokio::test(start_paused = true)]
async fn by_default_no_object_is_copied_and_no_mutation_reported() {
    let alive = Arc::new(());
    let server = Server::builder().seed([map("a", "1")]).build();
    let (builder, heard) = builder(&server, &alive);
    let running = run(builder).await;
    assert_eq!(Arc::strong_count(&alive) - 2, 1);
    let name = "default/a".parse().unwrap();
    let a = running.notes.indexer().get(&name).unwrap();
    a.live().unwrap().note.lock().push('?');
    sleep(5 * SECOND).await;
    assert_eq!(running.stop().await.status().get().mutated, 0);
    assert_eq!(take(&heard), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_a_factory_detects_mutations_if_its_options_enable_it() {
    let server = Server::builder().seed([map("a", "1")]).build();
    let factory = factory_builder(server.client()).build();
    let detecting = || InformerOptions::<Noted>::new().detect_mutations();
    let notes = factory.informer_with(detecting()).unwrap();
    factory.informer_with(detecting()).unwrap();
    let conflict = factory.informer_with(InformerOptions::<Noted>::new());
    assert_eq!(
        conflict.unwrap_err().to_string(),
        "the factory already has an informer of ConfigMap in this scope with another mutation detector; use the same options, or another factory"
    );
    factory.start();
    notes.wait_for_sync().deadline(LONG).await.unwrap();
    let name = "default/a".parse().unwrap();
    let a = notes.indexer().get(&name).unwrap();
    a.live().unwrap().note.lock().push('?');
    factory.shutdown().await;
    assert_eq!(notes.status().get().mutated, 1);
}

#[tokio::test(start_paused = true)]
async fn a_plain_informer_detects_mutations_of_known_objects() {
    let server = Server::builder().seed([map("a", "1")]).build();
    let known: Noted = serde_json::from_value(map("old", "1")).unwrap();
    let (indexer, controller) = Informer::builder(ListWatch::<Noted>::new(server.client()))
        .known_objects([known])
        .unwrap()
        .detect_mutations()
        .build();
    let old = indexer.get(&"default/old".parse().unwrap()).unwrap();
    old.live().unwrap().note.lock().push('?');
    let status = controller.status();
    controller.run(sleep(2 * SECOND)).await.unwrap();
    assert_eq!(status.get().mutated, 1);
}
