//! Tests of warm starts, in which an informer fills its cache from a saved store before
//! its first watch.
//!
//! The tests check the requests, the cached objects and the events, and when the informer ignores
//! the saved store.

mod factory;
mod faults;
mod filled;
mod forms;
mod saves;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use expect_test::expect;
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube_core::PartialObjectMeta;
use kube_informer::{
    Event, EventHandler, Object, ObjectName, SharedInformer,
    client::ListWatch,
    queue::DeltaFifo,
    shared_informer::{Builder, ListenerBuffer},
    status::{Activity, ColdReason, WarmStart},
    warm_start::{SaveError, SavedStore},
};
use kube_informer_apiserver::{Match, Server, Verb};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};

use crate::{
    script::{Script, body, list},
    setting::{LONG, Running, Trace, builder, labelled, pod, requests, run},
};

/// Deletes the folder of the test `name`, and returns its path.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("warm-start")
        .join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

fn file(name: &str) -> PathBuf {
    folder(name).join("pods.jsonl")
}

/// Returns a [`SavedStore`] in the file `path`. The store's clock advances by one hour at each reading.
fn saved(path: &Path) -> SavedStore {
    let hours = std::sync::atomic::AtomicU64::new(0);
    SavedStore::in_file(path, "1").clock(move || {
        let hour = hours.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        UNIX_EPOCH + Duration::from_secs(3600 * (hour + 1))
    })
}

fn warm(server: &Server, path: &Path) -> Builder<Pod> {
    builder(server).warm_start(saved(path))
}

/// Runs an informer until its cache matches the server, and then stops the informer, which saves the cache.
async fn save(server: &Server, informer: Builder<Pod>) {
    let informer = run(informer);
    informer.caught_up(server).await;
    informer.stop().await;
}

fn started(informer: &Running) -> String {
    match informer.pods.status().get().warm_start {
        Some(WarmStart::Warm {
            objects, revision, ..
        }) => format!("warm: {objects}@{revision}"),
        Some(cold) => cold.to_string(),
        None => "undecided".to_owned(),
    }
}

/// Returns the requests after the first `before` ones, and sets `before` to the number of all requests.
fn asked(server: &Server, before: &mut usize) -> String {
    let all = requests(server);
    let new = all.lines().skip(*before).map(|line| format!("{line}\n"));
    let new: String = new.collect();
    *before = all.lines().count();
    new
}

#[tokio::test(start_paused = true)]
async fn a_warm_start_sends_no_full_list_and_delivers_the_changes_since_the_save() {
    let server = Server::builder()
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    let path = file("meanwhile");
    save(&server, warm(&server, &path)).await;
    let mut before = 0;
    expect![[r#"
        list - limit=500: 200
        watch 3: 200
    "#]]
    .assert_eq(&asked(&server, &mut before));

    server.update(labelled("a", "new")).unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    server.create(pod("d")).unwrap();
    let informer = run(warm(&server, &path));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    assert_eq!(started(&informer), "warm: 3@3");
    expect![[r#"
        add default/a@1 (initial)
        add default/b@2 (initial)
        add default/c@3 (initial)
        update default/a@1 → 4
        delete default/b@5
        add default/d@6
        synced
    "#]]
    .assert_eq(&trace.take());
    expect![[r#"
        list 3 limit=1: 200
        watch 3: 200
    "#]]
    .assert_eq(&asked(&server, &mut before));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_warm_start_without_changes_syncs_after_a_second() {
    let server = Server::builder().seed([pod("a")]).build();
    let path = file("quiet");
    save(&server, warm(&server, &path)).await;
    for queue in ["in order", "delta fifo"] {
        let mut informer = warm(&server, &path);
        if queue == "delta fifo" {
            informer = informer.queue(DeltaFifo::new());
        }
        let informer = run(informer);
        let waiting = informer.pods.wait_for_sync();
        // The server sends its own bookmark after a minute.
        waiting.deadline(Duration::from_secs(2)).await.unwrap();
        assert_eq!(started(&informer), "warm: 1@1");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_age_of_a_saved_store_is_reported() {
    let server = Server::builder().seed([pod("a")]).build();
    let path = file("age");
    let at = |hours: u64| {
        let clock = move || UNIX_EPOCH + Duration::from_secs(3600 * hours);
        builder(&server).warm_start(SavedStore::in_file(&path, "1").clock(clock))
    };
    save(&server, at(10)).await;
    for (hours, expected) in [(13, 3), (9, 0)] {
        let (pods, controller) = at(hours).build();
        let synced = async { pods.wait_for_sync().await.unwrap() };
        controller.run(synced).await.unwrap();
        let Some(WarmStart::Warm { age, .. }) = pods.status().get().warm_start else {
            panic!("not a warm start");
        };
        assert_eq!(age, Duration::from_secs(3600 * expected), "at {hours}");
        save(&server, at(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_cache_has_the_saved_objects_before_the_server_responds_and_is_not_synced() {
    let server = Server::builder().seed([pod("a")]).build();
    let path = file("unanswered");
    save(&server, warm(&server, &path)).await;
    server
        .faults()
        .answer(Match::watch("pods"), 429)
        .times(u64::MAX);
    let informer = run(warm(&server, &path));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(informer.pods.indexer().len(), 1);
    assert_eq!(trace.take(), "add default/a@1 (initial)\n");
    let status = informer.pods.status().get().to_string();
    assert_eq!(informer.pods.status().get().revision().as_u64(), Some(1));
    let unconfirmed =
        "not synced (the cache has the saved objects, which the server has not confirmed), ";
    assert!(status.starts_with(unconfirmed), "{status}");
    assert!(matches!(
        informer.pods.save().await,
        Err(SaveError::NotSynced)
    ));
    server.faults().clear_answers();
    informer.caught_up(&server).await;
    assert_eq!(trace.take(), "synced\n");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_warm_start_syncs_while_its_handler_is_behind() {
    let server = Server::builder().seed([pod("a")]).build();
    let path = file("busy");
    save(&server, warm(&server, &path)).await;
    for n in 0..10 {
        server.update(labelled("a", &n.to_string())).unwrap();
    }
    let informer = run(warm(&server, &path));
    let stuck = informer.pods.on_update(|_, _| std::future::pending());
    stuck
        .buffer(ListenerBuffer::Block(1.try_into().unwrap()))
        .register()
        .unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(started(&informer), "warm: 1@1");
    assert!(informer.pods.status().get().synced);
    informer.kill().await;
}
