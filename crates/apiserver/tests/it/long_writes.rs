//! Tests that writes of many objects leave watchers time to read.
//!
//! Each test runs on one thread, so a watcher reads only while the write yields. The server closes a watcher
//! whose queue is full. Each test writes more objects than such a queue can hold.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower_service::Service as _;

use crate::ask::{Reply, Watch, builder, delete, request, with};
use crate::wire::{connect, loopback};

/// Number of written objects, five times the default length of a watcher's queue.
const OBJECTS: usize = 5_000;

const CONFIG_MAPS: &str = "/api/v1/namespaces/many/configmaps";

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}})
}

fn config_maps(count: usize) -> impl Iterator<Item = Value> {
    (0..count).map(|nth| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": "many", "name": format!("m{nth:04}")},
        })
    })
}

/// Reads a watch, and returns the number of received events of a type and whether the watch has ended.
async fn count_events(mut watch: Watch, event_type: &str) -> (usize, bool) {
    let trace = watch.trace().await;
    let events = trace.lines().filter(|line| line.starts_with(event_type));
    (events.count(), trace.ends_with("end\n"))
}

/// Starts a server with [`OBJECTS`] config maps, watches the config maps, and deletes `path`.
///
/// Returns the server, the response, the number of `DELETED` events, and whether the watch has ended.
async fn deleted(path: &str) -> (Server, Reply, (usize, bool)) {
    let server = builder().seed(config_maps(OBJECTS)).build();
    let uri = format!("{CONFIG_MAPS}?watch=1&resourceVersion={OBJECTS}");
    let events = count_events(Watch::open(&server, &uri).await, "DELETED");
    let (reply, events) = tokio::join!(delete(&server, path), events);
    (server, reply, events)
}

#[tokio::test(start_paused = true)]
async fn a_watcher_receives_every_deletion_of_a_collection() {
    let (_, reply, events) = deleted(CONFIG_MAPS).await;
    assert_eq!((reply.code, events), (200, (OBJECTS, false)));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_receives_every_deletion_of_a_namespace() {
    let (server, reply, events) = deleted("/api/v1/namespaces/many").await;
    assert_eq!(reply.json["status"]["phase"], "Terminating");
    assert!(server.get("v1", "namespaces", "many").is_none());
    assert_eq!(events, (OBJECTS, false));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_receives_every_object_of_a_bulk_create() {
    let server = builder().seed([namespace()]).build();
    let watch = Watch::open(&server, &format!("{CONFIG_MAPS}?watch=1")).await;
    let events = count_events(watch, "ADDED");
    let created = server.create_all(config_maps(OBJECTS));
    assert_eq!(
        tokio::join!(created, events),
        (Ok(OBJECTS), (OBJECTS, false))
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_is_shorter_than_a_short_queue() {
    let server = builder().watcher_buffer(8).seed([namespace()]).build();
    let watch = Watch::open(&server, &format!("{CONFIG_MAPS}?watch=1")).await;
    let events = count_events(watch, "ADDED");
    let created = server.create_all(config_maps(100));
    assert_eq!(tokio::join!(created, events), (Ok(100), (100, false)));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_does_not_read_is_closed_and_delays_the_write_only_briefly() {
    let server = builder().seed([namespace()]).build();
    let mut watch = Watch::open(&server, &format!("{CONFIG_MAPS}?watch=1")).await;
    let began = Instant::now();
    assert_eq!(server.create_all(config_maps(OBJECTS)).await, Ok(OBJECTS));
    assert!(began.elapsed() < Duration::from_millis(200));
    let trace = watch.trace().await;
    assert_eq!(trace.lines().count(), 1_000 + 1);
    assert!(trace.ends_with("end\n"));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_deleted_completely_although_its_client_disconnects() {
    let server = builder().seed(config_maps(OBJECTS)).build();
    let delete = request("DELETE", "/api/v1/namespaces/many");
    let mut response = server
        .clone()
        .call(delete.body(Full::<Bytes>::default()).unwrap());
    assert!(
        response.as_mut().now_or_never().is_none(),
        "the deletion yields"
    );
    let is_begun = |server: &Server| server.list("v1", "configmaps").len() < OBJECTS;
    assert!(is_begun(&server) && !server.list("v1", "configmaps").is_empty());
    drop(response);
    assert!(server.list("v1", "configmaps").is_empty());
    assert!(server.get("v1", "namespaces", "many").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_the_last_pods_of_a_namespace_deletes_the_rest() {
    let mut pod = crate::ask::pod("many/p");
    pod["metadata"]["finalizers"] = json!(["example.com/x"]);
    let server = builder().seed(config_maps(3).chain([pod])).build();
    delete(&server, "/api/v1/namespaces/many").await;
    assert_eq!(server.list("v1", "configmaps").len(), 3);
    let patch = json!({"metadata": {"finalizers": null}});
    let pod = "/api/v1/namespaces/many/pods/p";
    assert_eq!(with(&server, "PATCH", pod, &patch).await.code, 200);
    assert!(server.list("v1", "configmaps").is_empty());
    assert!(server.get("v1", "namespaces", "many").is_none());
}

#[cfg(feature = "persistence")]
#[tokio::test(start_paused = true)]
async fn a_watcher_receives_every_deletion_of_a_stored_collection() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("long_writes");
    drop(std::fs::remove_dir_all(&directory));
    let server = builder().open(&directory).unwrap();
    server.create(namespace()).unwrap();
    assert_eq!(server.create_all(config_maps(OBJECTS)).await, Ok(OBJECTS));
    let from = server.revision();
    let uri = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
    let events = count_events(Watch::open(&server, &uri).await, "DELETED");
    let (reply, events) = tokio::join!(delete(&server, CONFIG_MAPS), events);
    assert_eq!((reply.code, events), (200, (OBJECTS, false)));
}

#[tokio::test]
async fn a_watcher_receives_large_objects_over_a_slow_connection() {
    const COUNT: usize = 2_000;
    let server = builder().seed([namespace()]).build();
    let listening = server.listen(loopback()).await.unwrap();
    let mut tasks = JoinSet::new();
    let mut connection = connect(listening.local_addr(), &mut tasks).await;
    let watch = request("GET", &format!("{CONFIG_MAPS}?watch=1")).header("host", "localhost");
    let watch = watch.body(Full::default()).unwrap();
    let mut events = connection.send_request(watch).await.unwrap().into_body();
    let large = config_maps(COUNT).map(|mut object| {
        object["data"] = json!({"text": "x".repeat(20_000)});
        object
    });
    let created = async { server.create_all(large).await };
    let received = async {
        let mut lines = 0;
        while lines < COUNT {
            let frame = events.frame().await.expect("the watch stays open").unwrap();
            lines += memchr::memchr_iter(b'\n', &frame.into_data().unwrap()).count();
        }
        lines
    };
    assert_eq!(tokio::join!(created, received), (Ok(COUNT), COUNT));
}
