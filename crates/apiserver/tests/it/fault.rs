//! Tests that the methods of `Server::faults` affect matching requests and watches, and no others.

use std::io;

use bytes::Bytes;
use http_body_util::Full;
use serde_json::json;
use tower_service::Service;

use kube_informer_apiserver::{Match, Verb};

use crate::ask::{Watch, builder, get, pod, pods, request, send, with};

const PODS: &str = "/api/v1/pods";
const WATCH: &str = "/api/v1/pods?watch=1&resourceVersion=1&allowWatchBookmarks=true";

#[tokio::test(start_paused = true)]
async fn a_cut_ends_watches_cleanly_and_drops_pending_events() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, WATCH).await;
    server.create(pod("b")).unwrap();
    server.faults().cut_watches();
    server.create(pod("c")).unwrap();
    assert_eq!(watch.trace().await, "end\n");
    let mut next = Watch::open(&server, WATCH).await;
    assert_eq!(
        next.trace().await,
        "ADDED b 2\nADDED c 3\n",
        "later watches are not cut"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cut_ends_a_watch_that_still_sends_initial_events() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, &format!("{PODS}?watch=1")).await;
    server.faults().cut_watches();
    assert_eq!(watch.trace().await, "end\n");
}

#[tokio::test(start_paused = true)]
async fn a_break_resets_the_connection() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, WATCH).await;
    server.faults().break_watches();
    assert_eq!(
        watch.trace().await,
        "broken: the response was broken by a fault\nend\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_frozen_watch_sends_nothing_until_the_thaw_and_then_everything() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, &format!("{WATCH}&timeoutSeconds=5")).await;
    server.faults().freeze_watches();
    server.create(pod("b")).unwrap();
    let mut frozen_from_the_start = Watch::open(&server, WATCH).await;
    let long = std::time::Duration::from_secs(30);
    assert_eq!(
        watch.trace_for(long).await,
        "",
        "the deadline does not end it"
    );
    assert_eq!(frozen_from_the_start.trace().await, "");
    server.faults().thaw_watches();
    assert_eq!(frozen_from_the_start.trace().await, "ADDED b 2\n");
    assert_eq!(watch.trace().await, "end\n", "its deadline has passed");
}

#[tokio::test(start_paused = true)]
async fn a_frozen_watch_can_be_cut() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, WATCH).await;
    server.faults().freeze_watches();
    assert_eq!(watch.trace().await, "");
    server.faults().cut_watches();
    assert_eq!(watch.trace().await, "end\n");
}

#[tokio::test(start_paused = true)]
async fn expired_history_does_not_affect_open_watches() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, WATCH).await;
    server.create(pod("b")).unwrap();
    server.faults().expire_history();
    server.create(pod("c")).unwrap();
    assert_eq!(watch.trace().await, "ADDED b 2\nADDED c 3\n");
    let mut late = Watch::open(&server, WATCH).await;
    assert_eq!(
        late.trace().await,
        "ERROR 410 Expired: too old resource version: 1 (2)\nend\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fault_status_is_returned_its_number_of_times_to_matching_requests() {
    let server = pods(&["a"]);
    server.faults().answer(Match::list("pods"), 500).times(2);
    assert_eq!(get(&server, "/api/v1/nodes").await.code, 200);
    assert_eq!(
        get(&server, PODS).await.refusal(),
        "500 InternalError: Internal error occurred: injected by a fault"
    );
    assert_eq!(get(&server, PODS).await.code, 500);
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn fault_statuses_have_a_reason_and_retry_after() {
    let server = pods(&["a"]);
    for (code, reason) in [
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (410, "Expired"),
        (429, "TooManyRequests"),
        (503, "ServiceUnavailable"),
    ] {
        server.faults().answer(Match::any(), code).retry_after(7);
        let reply = get(&server, PODS).await;
        assert_eq!(
            (reply.code, reply.json["reason"].as_str()),
            (code, Some(reason))
        );
        assert_eq!(reply.headers["retry-after"], "7");
        assert_eq!(reply.json["details"]["retryAfterSeconds"], 7);
        assert_eq!(reply.json["kind"], "Status");
    }
    server
        .faults()
        .answer(Match::watch("pods"), 504)
        .too_large_revision();
    let reply = get(&server, WATCH).await;
    assert_eq!(
        reply.refusal(),
        "504 Timeout: Timeout: Too large resource version: 2, current: 1"
    );
    assert_eq!(
        reply.json["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
}

#[tokio::test(start_paused = true)]
async fn matches_distinguish_verbs_names_and_clients() {
    let server = pods(&["a", "b"]);
    let faults = server.faults();
    faults.answer(Match::verb(Verb::Get, "pods").named("b"), 500);
    faults.answer(Match::any().from_user_agent("agent/"), 503);
    let object = "/api/v1/namespaces/default/pods";
    assert_eq!(get(&server, &format!("{object}/a")).await.code, 200);
    assert_eq!(get(&server, &format!("{object}/b")).await.code, 500);
    let agent = request("GET", PODS).header("user-agent", "node-agent/1");
    assert_eq!(
        send(&server, agent.body(Full::default()).unwrap())
            .await
            .code,
        503
    );
    faults.answer(Match::any(), 500).times(9);
    faults.clear_answers();
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_write_rejected_by_a_fault_changes_nothing() {
    let server = pods(&["a"]);
    server
        .faults()
        .answer(Match::verb(Verb::Create, "pods"), 503);
    let reply = with(
        &server,
        "POST",
        "/api/v1/namespaces/default/pods",
        &pod("b"),
    )
    .await;
    assert_eq!((reply.code, server.revision()), (503, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_is_an_error_and_not_a_logged_request() {
    let mut server = pods(&["a"]);
    server.faults().refuse_connections(true);
    let request = request("GET", PODS).body(Full::<Bytes>::default()).unwrap();
    let error = server
        .call(request)
        .await
        .expect_err("the connection is refused");
    let error = error.downcast_ref::<io::Error>().expect("an io error");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    assert!(server.requests().is_empty());
    server.faults().refuse_connections(false);
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn any_bytes_can_be_sent_to_a_watch() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, WATCH).await;
    server.create(pod("b")).unwrap();
    server
        .faults()
        .send_raw_to_watches("{\"type\":\"MOVED\",\"object\":{\"metadata\":{\"name\":\"x\"}}}\n");
    server.faults().send_raw_to_watches("garbage\n");
    server.create(pod("c")).unwrap();
    assert_eq!(
        watch.trace().await,
        "ADDED b 2\nMOVED x \nundecodable garbage\nADDED c 3\n"
    );
}

#[tokio::test(start_paused = true)]
async fn faults_do_not_affect_direct_calls() {
    let server = builder().build();
    server.faults().refuse_connections(true);
    server.faults().answer(Match::any(), 500).times(100);
    server.create(pod("a")).unwrap();
    server
        .patch(
            "v1",
            "pods",
            "default/a",
            json!({"status": {"phase": "Running"}}),
        )
        .unwrap();
    assert_eq!(
        server.get("v1", "pods", "default/a").unwrap()["status"]["phase"],
        "Running"
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_ends_watches_and_drops_the_history() {
    let server = pods(&["a"]);
    server.create(pod("b")).unwrap();
    let mut watch = Watch::open(&server, WATCH).await;
    server.faults().restart();
    assert_eq!(watch.trace().await, "end\n");
    let mut late = Watch::open(&server, WATCH).await;
    assert_eq!(
        late.trace().await,
        "ERROR 410 Expired: too old resource version: 1 (2)\nend\n"
    );
    let exact = format!("{PODS}?resourceVersion=1&resourceVersionMatch=Exact");
    assert_eq!(
        get(&server, &exact).await.names(),
        ["a"],
        "storage keeps more history than the watch cache"
    );
    assert_eq!(server.revision(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_continues_at_an_older_revision_without_history() {
    let server = pods(&["a"]);
    server.create(pod("b")).unwrap();
    server.delete("v1", "pods", "default/a").unwrap();
    server
        .patch(
            "v1",
            "pods",
            "default/b",
            json!({"spec": {"nodeName": "n"}}),
        )
        .unwrap();
    let mut watch = Watch::open(&server, &format!("{PODS}?watch=1&resourceVersion=4")).await;
    server.faults().restart_at(2).unwrap();
    assert_eq!(watch.trace().await, "end\n");
    let list = get(&server, PODS).await;
    assert_eq!((list.revision(), list.names()), ("2", vec!["a", "b"]));
    assert_eq!(list.json["items"][1]["spec"].get("nodeName"), None);

    let exact =
        |revision: u64| format!("{PODS}?resourceVersion={revision}&resourceVersionMatch=Exact");
    assert_eq!(get(&server, &exact(1)).await.code, 410);
    assert_eq!(get(&server, &exact(2)).await.names(), ["a", "b"]);
    assert_eq!(
        get(&server, &format!("{PODS}?resourceVersion=4"))
            .await
            .refusal(),
        "504 Timeout: Timeout: Too large resource version: 4, current: 2"
    );
    let mut late = Watch::open(&server, WATCH).await;
    assert_eq!(
        late.trace().await,
        "ERROR 410 Expired: too old resource version: 1 (2)\nend\n"
    );
    let mut ahead = Watch::open(&server, &format!("{PODS}?watch=1&resourceVersion=4")).await;
    server.create(pod("c")).unwrap();
    assert_eq!(server.revision(), 3, "a revision is used again");
    assert_eq!(
        ahead.trace().await,
        "",
        "the event is older than the start of this watch"
    );
    let path = format!("{PODS}?watch=1&resourceVersion=4&allowWatchBookmarks=true");
    let mut bookmarked = Watch::open(&server, &path).await;
    server.faults().send_bookmarks();
    server.create(pod("d")).unwrap();
    server.faults().send_bookmarks();
    assert_eq!(
        bookmarked.trace().await,
        "BOOKMARK 4\n",
        "no bookmark has a lower revision"
    );
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_cannot_be_restored_changes_nothing() {
    let server = pods(&["a"]);
    server.create(pod("b")).unwrap();
    let mut watch = Watch::open(&server, WATCH).await;
    let future = server.faults().restart_at(9).unwrap_err();
    assert_eq!(future.code(), 504);
    server.faults().inject("expire history").unwrap();
    let past = server.faults().restart_at(1).unwrap_err();
    assert_eq!(past.code(), 410);
    assert_eq!(watch.trace().await, "ADDED b 2\n", "the watch continues");
    server.faults().inject("restart back 0").unwrap();
    assert_eq!(
        (watch.trace().await.as_str(), server.revision()),
        ("end\n", 2)
    );
}
