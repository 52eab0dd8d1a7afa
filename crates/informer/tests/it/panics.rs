//! Tests of panics in user code.
//!
//! A panic in code that processes a single object makes only this object fail. Any other panic stops the
//! informer, and every wait for the informer then returns the panic as an error.

use std::{
    collections::BTreeMap,
    panic::panic_any,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_core::{ClusterResourceScope, Resource};
use kube_informer::{
    Indexers, Object, SharedInformer,
    client::ListWatch,
    object::Known,
    queue::{Batch, DeltaFifo, InOrder, KeyError, KeyErrors, Queue, Replaced},
    reflector::Delta,
    shared_informer::{Builder, Stopped},
    status::{FailureCause, InformerError, SyncFailure},
};
use kube_informer_apiserver::Server;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::setting::{LONG, Trace, builder, factory_builder, labelled, pod, run};

/// A `ConfigMap` whose decoder panics if its data has the key `panic`.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Touchy {
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "touchy")]
    data: BTreeMap<String, String>,
}

fn touchy<'de, D: Deserializer<'de>>(data: D) -> Result<BTreeMap<String, String>, D::Error> {
    let data = BTreeMap::<String, String>::deserialize(data)?;
    assert!(!data.contains_key("panic"), "an assumption of the type");
    Ok(data)
}

impl Resource for Touchy {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "ConfigMap".into()
    }

    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "configmaps".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn map(name: &str, key: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {key: "x"},
    })
}

fn touchy_maps(server: &Server) -> Builder<Touchy> {
    SharedInformer::builder(ListWatch::<Touchy>::new(server.client())).rng_seed(1)
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_type_panics_is_broken_and_the_others_are_cached() {
    let server = Server::builder()
        .seed([map("a", "x"), map("b", "panic"), map("c", "x")])
        .build();
    let forms: [fn(Builder<Touchy>) -> Builder<Touchy>; 3] =
        [|typed| typed, Builder::packed, Builder::lazy];
    for form in forms {
        let (maps, controller) = form(touchy_maps(&server)).build();
        let steps = async {
            maps.wait_for_sync().deadline(LONG).await.unwrap();
            let lister = maps.lister().namespace("default");
            assert!(lister.get("a").is_ok() && lister.get("c").is_ok());
            let broken = lister.get("b").unwrap_err().to_string();
            let expected = "default/b can't be decoded: its type's Deserialize panicked at .";
            assert_eq!(broken, expected);
            // The informer continues, and stores that object too.
            server.update(map("b", "y")).unwrap();
            let written = maps.wait_for_revision(server.revision(), LONG);
            written.await.unwrap();
            let mended = maps.lister().namespace("default").get("b").unwrap();
            assert!(mended.data.contains_key("y"));
            server.update(map("b", "panic")).unwrap();
            let written = maps.wait_for_revision(server.revision(), LONG);
            written.await.unwrap();
            assert!(maps.has_synced());
        };
        controller.run(steps).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn index_and_key_functions_that_panic_omit_one_object() {
    let server = Server::builder()
        .seed([labelled("a", "x"), pod("b"), labelled("c", "x")])
        .build();
    // Each function assumes that every pod has labels.
    let by_app = Indexers::new().with("app", |pod: &Pod| {
        let labels = pod.metadata.labels.as_ref().expect("labels to index by");
        labels.values().cloned().collect::<Vec<_>>()
    });
    let key = |pod: &Object<Pod>| -> Result<_, Stopped> {
        assert!(pod.labels().get("app").is_some(), "labels to key by");
        Ok(pod.object_name().clone())
    };
    let errors = Trace::default();
    let heard = errors.clone();
    let informer = run(builder(&server)
        .queue(DeltaFifo::new().key_func(key))
        .on_error(move |error| heard.note(error.to_string())));
    informer.caught_up(&server).await;
    assert_eq!(informer.pods.indexer().len(), 2);
    let left_out = errors.take();
    assert!(left_out.contains("default/b"), "{left_out}");
    informer.stop().await;

    let informer = run(builder(&server).indexers(by_app).unwrap());
    informer.caught_up(&server).await;
    let status = informer.pods.status().get();
    let reason = status.last_index_error.unwrap_or_default();
    assert!(reason.contains("the index function panicked"), "{reason}");
    let web = informer.pods.indexer().by_index("app", "x").unwrap();
    assert_eq!(web.len(), 2);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_outside_of_an_object_fails_the_informer_and_all_its_waits() {
    let server = Server::builder().seed([pod("a")]).build();
    let panics = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&panics);
    let source = ListWatch::<Pod>::new(server.client()).tweak_list_options(move |_| {
        assert!(!told.load(Ordering::Relaxed), "a bad tweak");
    });
    let (pods, controller) = SharedInformer::builder(source).name("pods").build();
    let registration = Trace::default().listen(&pods);
    let steps = async {
        pods.wait_for_sync().deadline(LONG).await.unwrap();
        registration.wait_for_sync().await.unwrap();
        assert!(pods.has_synced() && registration.has_synced());
        panics.store(true, Ordering::Relaxed);
        server.faults().cut_watches();
        std::future::pending::<()>().await;
    };
    let error = timeout(LONG, controller.run(steps)).await.unwrap();
    let error = error.unwrap_err();
    assert_eq!(
        error.to_string(),
        "informer pods (v1 Pod) failed: the reflector of pods panicked: a bad tweak"
    );
    assert!(!pods.has_synced() && !registration.has_synced());
    for wait in [pods.wait_for_sync(), registration.wait_for_sync()] {
        let failed = wait.await.unwrap_err();
        assert_eq!(failed.failure, SyncFailure::Failed);
        let text = failed.to_string();
        assert!(text.contains("panicked: a bad tweak"), "{text}");
    }
    assert_eq!(pods.indexer().len(), 1, "the cache is still readable");
    assert_eq!(pods.status().get().failure.as_deref(), Some(&error));
}

/// A queue that panics when its `push` method is called for the second time.
#[derive(Default)]
struct BadQueue(InOrder<Pod>, u32);

impl Queue<Pod> for BadQueue {
    fn push(&mut self, delta: Delta<Pod>, known: &dyn Known<Pod>) -> Result<(), KeyError<Pod>> {
        self.1 += 1;
        if self.1 == 2 {
            panic_any("a bad queue".to_owned());
        }
        self.0.push(delta, known)
    }

    fn replace(
        &mut self,
        list: Replaced<Pod>,
        known: &dyn Known<Pod>,
    ) -> Result<(), KeyErrors<Pod>> {
        self.0.replace(list, known)
    }

    fn resync(&mut self, known: &dyn Known<Pod>) {
        self.0.resync(known);
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<Pod>> {
        self.0.pop_batch(room)
    }

    fn len(&self) -> usize {
        Queue::len(&self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_controller_loop_is_reported_as_a_failure_not_as_a_stop() {
    let server = Server::builder().seed([pod("a")]).build();
    let (pods, controller) = builder(&server).queue(BadQueue::default()).build();
    let trace = Trace::default();
    trace.listen(&pods);
    let wait = pods.wait_for_revision(3, LONG);
    let mut status = pods.status();
    let (error, seen, waited) = tokio::join!(
        controller.run(async {
            pods.wait_for_sync().await.unwrap();
            server.create(pod("b")).unwrap();
            server.create(pod("c")).unwrap();
            std::future::pending::<()>().await;
        }),
        status.wait_for(|status| status.is_stopped() || status.failure.is_some()),
        wait,
    );
    let cause = FailureCause::Panicked {
        part: Arc::from("the informer's loop"),
        reason: Arc::from("a bad queue"),
    };
    assert_eq!(error.unwrap_err().cause, cause);
    let seen = seen.and_then(|status| status.failure).unwrap();
    assert_eq!(seen.cause, cause, "never stopped without a reason");
    waited.unwrap_err();
    assert!(pods.is_stopped());
}

#[tokio::test]
async fn a_runtime_shutdown_fails_the_informer() {
    let server = Server::builder().seed([pod("a")]).build();
    let of_the_loop = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (pods, controller) = {
        let _inside = of_the_loop.enter();
        builder(&server).build()
    };
    let error = controller.run(async {
        pods.wait_for_sync().await.unwrap();
        of_the_loop.shutdown_background();
        std::future::pending::<()>().await;
    });
    let error = error.await.unwrap_err();
    assert!(
        matches!(error.cause, FailureCause::Cancelled { .. }),
        "{error}"
    );
    assert!(!pods.has_synced());
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_has_synced_stays_true_and_waits_fail_with_ended() {
    let server = Server::builder().seed([pod("a")]).build();
    let (pods, controller) = builder(&server).build();
    let synced = pods.wait_for_sync();
    let ended = controller.run(async { synced.await.unwrap() }).await;
    assert_eq!(ended.unwrap().discarded, 0);
    assert!(pods.has_synced());
    assert!(pods.status().get().failure.is_none());
    let waited = pods.wait_for_sync().await.unwrap_err();
    assert_eq!(waited.failure, SyncFailure::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_factory_names_the_informer_that_failed_and_the_others_go_on() {
    let server = Server::builder().seed([pod("a"), map("m", "x")]).build();
    let panics = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&panics);
    let factory = factory_builder(server.client())
        .tweak_list_options(move |_| {
            // One request panics, independent of the reflector that sends it.
            assert!(!told.swap(false, Ordering::Relaxed), "a bad tweak");
        })
        .build();
    let pods = factory.informer::<Pod>();
    let maps = factory.informer::<Touchy>();
    let failed = factory.failed();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(
        timeout(Duration::from_secs(60), factory.failed())
            .await
            .is_err()
    );
    panics.store(true, Ordering::Relaxed);
    server.faults().cut_watches();
    let error: InformerError = timeout(LONG, failed).await.unwrap();
    assert!(
        error.to_string().ends_with("panicked: a bad tweak"),
        "{error}"
    );
    assert_eq!(
        factory.failed().await,
        error,
        "a later wait returns the same error"
    );
    sleep(Duration::from_secs(60)).await;
    assert_ne!(
        pods.has_synced(),
        maps.has_synced(),
        "one of them continues"
    );
    let unsynced = [pods.name(), maps.name()].map(|name| *name == *error.name);
    assert_eq!(unsynced, [!pods.has_synced(), !maps.has_synced()]);
    factory.shutdown().await;
}
