//! Tests the events of an open watch: their order, selectors, bookmarks, and the end of the watch.

use std::time::Duration;

use serde_json::json;

use crate::ask::{Watch, builder, get, labelled, pod, pods};

const WATCH: &str = "/api/v1/pods?watch=1";

#[tokio::test(start_paused = true)]
async fn writes_are_sent_in_order_with_the_stored_object() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion=1")).await;
    server.create(pod("b")).unwrap();
    server
        .patch("v1", "pods", "default/a", json!({"spec": {"x": 1}}))
        .unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    server.create(pod("b")).unwrap();
    assert_eq!(
        watch.trace().await,
        "ADDED b 2\nMODIFIED a 3\nDELETED b 4\nADDED b 5\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_event_has_the_last_state_at_the_revision_of_the_deletion() {
    let server = builder().seed([labelled("a", "app", "web")]).build();
    let stored = server.get("v1", "pods", "default/a").unwrap();
    server.delete("v1", "pods", "default/a").unwrap();
    let line = get(
        &server,
        &format!("{WATCH}&resourceVersion=1&timeoutSeconds=1"),
    )
    .await
    .json;
    let mut expected = stored;
    expected["metadata"]["resourceVersion"] = json!("2");
    assert_eq!(line, json!({"type": "DELETED", "object": expected}));
}

#[tokio::test(start_paused = true)]
async fn selectors_turn_updates_into_additions_and_deletions() {
    let server = builder().seed([labelled("a", "app", "web")]).build();
    let selected = format!("{WATCH}&resourceVersion=1&labelSelector=app%3Dweb");
    let mut live = Watch::open(&server, &selected).await;
    let label = |value: &str, other: &str| {
        let labels = json!({"metadata": {"labels": {"app": value, "other": other}}});
        server.patch("v1", "pods", "default/a", labels).unwrap();
    };
    label("web", "1");
    label("db", "2");
    label("db", "3");
    label("web", "4");
    label("db", "5");
    server.delete("v1", "pods", "default/a").unwrap();
    let expected = "MODIFIED a 2\nDELETED a 3\nADDED a 5\nDELETED a 6\n";
    assert_eq!(live.trace().await, expected);
    let mut replayed = Watch::open(&server, &selected).await;
    assert_eq!(
        replayed.trace().await,
        expected,
        "a replay has the same events"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_stops_matching_is_deleted_with_its_last_matching_state() {
    let server = builder().seed([labelled("a", "app", "web")]).build();
    server
        .patch(
            "v1",
            "pods",
            "default/a",
            json!({"metadata": {"labels": {"app": "db"}}}),
        )
        .unwrap();
    let query = "resourceVersion=1&labelSelector=app%3Dweb&timeoutSeconds=1";
    let line = get(&server, &format!("{WATCH}&{query}")).await.json;
    assert_eq!(line["type"], "DELETED");
    assert_eq!(
        line["object"]["metadata"]["labels"]["app"], "web",
        "the previous content"
    );
    assert_eq!(
        line["object"]["metadata"]["resourceVersion"], "2",
        "the event's revision"
    );
}

#[tokio::test(start_paused = true)]
async fn a_field_selector_on_the_node_matches_a_pod_once_it_is_bound() {
    let server = pods(&["a", "b"]);
    let mut node = Watch::open(
        &server,
        &format!("{WATCH}&fieldSelector=spec.nodeName%3Dn1"),
    )
    .await;
    assert_eq!(node.trace().await, "");
    for (pod, node) in [("default/a", "n1"), ("default/b", "n2")] {
        server
            .patch("v1", "pods", pod, json!({"spec": {"nodeName": node}}))
            .unwrap();
    }
    assert_eq!(node.trace().await, "ADDED a 3\n");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_namespace_receives_no_events_of_others() {
    let server = builder().enforce_namespaces(false).build();
    let mut watch = Watch::open(&server, "/api/v1/namespaces/one/pods?watch=1").await;
    server.create(pod("one/a")).unwrap();
    server.create(pod("one-more/a")).unwrap();
    assert_eq!(watch.trace().await, "ADDED a 2\n");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_one_object_implies_its_name() {
    let server = pods(&["a", "b"]);
    let path = "/api/v1/watch/namespaces/default/pods/a?resourceVersion=0";
    let mut watch = Watch::open(&server, path).await;
    server
        .patch("v1", "pods", "default/b", json!({"spec": {"x": 1}}))
        .unwrap();
    server
        .patch("v1", "pods", "default/a", json!({"spec": {"x": 1}}))
        .unwrap();
    assert_eq!(watch.trace().await, "ADDED a 1\nMODIFIED a 4\n");
    let other = get(&server, &format!("{path}&fieldSelector=metadata.name%3Db")).await;
    assert_eq!(
        other.refusal(),
        "400 BadRequest: fieldSelector metadata.name doesn't match requested name"
    );
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_sent_every_minute_and_two_seconds_before_the_deadline() {
    let server = pods(&["a"]);
    let began = tokio::time::Instant::now();
    let uri = format!("{WATCH}&resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=130");
    let mut watch = Watch::open(&server, &uri).await;
    for (silence, expected) in [
        (59, ""),
        (2, "BOOKMARK 1\n"),
        (57, ""),
        (5, "BOOKMARK 1\n"),
        (4, "BOOKMARK 1\nend\n"),
    ] {
        let received = watch.trace_for(Duration::from_secs(silence)).await;
        assert_eq!(received, expected, "after {} s", began.elapsed().as_secs());
    }
    assert_eq!(began.elapsed().as_secs(), 130);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_sent_only_on_request() {
    let server = pods(&["a"]);
    let uri = format!("{WATCH}&resourceVersion=1&timeoutSeconds=100");
    let mut watch = Watch::open(&server, &uri).await;
    server.faults().send_bookmarks();
    assert_eq!(watch.trace_for(Duration::from_secs(200)).await, "end\n");
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_has_the_revision_that_the_events_before_it_reached() {
    let server = pods(&["a"]);
    let uri = format!("{WATCH}&resourceVersion=1&allowWatchBookmarks=true");
    let mut watch = Watch::open(&server, &uri).await;
    server.create(pod("b")).unwrap();
    server
        .create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
        .unwrap();
    server.faults().send_bookmarks();
    server.create(pod("c")).unwrap();
    assert_eq!(watch.trace().await, "ADDED b 2\nBOOKMARK 3\nADDED c 4\n");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_timeout_ends_between_30_and_60_minutes() {
    let server = builder().build();
    let mut watch = Watch::open(&server, WATCH).await;
    let began = tokio::time::Instant::now();
    assert_eq!(watch.trace_for(Duration::from_secs(7200)).await, "end\n");
    let minutes = began.elapsed().as_secs() / 60;
    assert!((30..60).contains(&minutes), "{minutes}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_is_closed_without_an_error() {
    let server = builder().watcher_buffer(2).build();
    let mut slow = Watch::open(&server, WATCH).await;
    for name in ["a", "b", "c", "d"] {
        server.create(pod(name)).unwrap();
    }
    assert_eq!(slow.trace().await, "ADDED a 2\nADDED b 3\nend\n");
    let mut again = Watch::open(&server, &format!("{WATCH}&resourceVersion=3")).await;
    assert_eq!(
        again.trace().await,
        "ADDED c 4\nADDED d 5\n",
        "a resumed watch misses no event"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_lose_no_update_and_watchers_miss_no_event() {
    const WRITERS: u64 = 4;
    const WRITES: u64 = 100;
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion=1")).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let server = server.clone();
        writers.spawn(async move {
            for _ in 0..WRITES {
                let path = format!("/api/v1/namespaces/default/pods/a/status?writer={writer}");
                loop {
                    let mut pod = get(&server, &path).await.json;
                    let count = pod["status"]["observedGeneration"].as_u64().unwrap_or(0);
                    pod["status"]["observedGeneration"] = json!(count + 1);
                    if crate::ask::with(&server, "PUT", &path, &pod).await.code == 200 {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    while writers.join_next().await.is_some() {}
    let total = WRITERS * WRITES;
    let pod = server.get("v1", "pods", "default/a").unwrap();
    assert_eq!(
        pod["status"]["observedGeneration"], total,
        "every write was based on the newest state"
    );
    let received = watch.trace().await;
    let received: Vec<&str> = received.lines().collect();
    let expected: Vec<String> = (2..=total + 1)
        .map(|revision| format!("MODIFIED a {revision}"))
        .collect();
    assert_eq!(received, expected);
}
