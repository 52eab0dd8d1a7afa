//! Tests how a watch starts: its initial events, the revision from which it continues, and rejected options.

use expect_test::{Expect, expect};

use kube_informer_apiserver::{Server, WatchCache};

use crate::ask::{Watch, builder, get, pod, pods};

const WATCH: &str = "/api/v1/pods?watch=1&timeoutSeconds=600";
const STREAMING: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

/// Returns a server with pods `b` and `a`, created at revisions 1 and 2.
///
/// Pod `c` was created at revision 3 and deleted at revision 4.
fn server() -> Server {
    let server = pods(&["b", "a"]);
    server.create(pod("c")).unwrap();
    server.delete("v1", "pods", "default/c").unwrap();
    server
}

/// Opens a watch, creates pod `z`, and asserts the watch events.
///
/// In `trace`, the line `--` separates the events before the creation from the events after it.
async fn check(query: &str, trace: &Expect) {
    let server = server();
    let mut watch = Watch::open(&server, &format!("{WATCH}&{query}")).await;
    let mut shown = watch.trace().await;
    server.create(pod("z")).unwrap();
    shown.push_str("--\n");
    shown.push_str(&watch.trace().await);
    trace.assert_eq(&shown);
}

#[tokio::test(start_paused = true)]
async fn without_a_revision_all_objects_come_first() {
    let objects = expect![[r"
        ADDED a 2
        ADDED b 1
        --
        ADDED z 5
    "]];
    check("", &objects).await;
    check("resourceVersion=0", &objects).await;
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_follows_the_initial_objects_if_bookmarks_are_enabled() {
    let closed = expect![[r"
        ADDED a 2
        ADDED b 1
        BOOKMARK 4 end
        --
        ADDED z 5
    "]];
    check("allowWatchBookmarks=true", &closed).await;
    for revision in [
        "",
        "&resourceVersion=0",
        "&resourceVersion=2",
        "&resourceVersion=4",
    ] {
        check(
            &format!("{STREAMING}&allowWatchBookmarks=true{revision}"),
            &closed,
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_without_bookmarks_has_no_closing_bookmark() {
    let open = expect![[r"
        ADDED a 2
        ADDED b 1
        --
        ADDED z 5
    "]];
    check(STREAMING, &open).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_revision_receives_all_later_events() {
    let after_two = expect![[r"
        ADDED c 3
        DELETED c 4
        --
        ADDED z 5
    "]];
    check("resourceVersion=2", &after_two).await;
    check(
        "resourceVersion=2&sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
        &after_two,
    )
    .await;
    let after_one = expect![[r"
        ADDED a 2
        ADDED c 3
        DELETED c 4
        --
        ADDED z 5
    "]];
    check("resourceVersion=1", &after_one).await;
}

#[tokio::test(start_paused = true)]
async fn without_initial_events_the_watch_starts_now() {
    let now = expect![[r"
        --
        ADDED z 5
    "]];
    let query = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    check(query, &now).await;
    check(&format!("{query}&resourceVersion=0"), &now).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_future_revision_receives_only_later_events() {
    let server = server();
    let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion=6")).await;
    assert_eq!(watch.trace().await, "");
    for name in ["five", "six", "seven"] {
        server.create(pod(name)).unwrap();
    }
    assert_eq!(watch.trace().await, "ADDED seven 7\n");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_of_a_future_revision_waits_and_then_fails() {
    let server = server();
    let uri = format!("{WATCH}&{STREAMING}&resourceVersion=9");
    let began = tokio::time::Instant::now();
    let mut watch = Watch::open(&server, &uri).await;
    assert_eq!(began.elapsed().as_secs(), 3);
    assert_eq!(
        watch.trace().await,
        "ERROR 504 Timeout: Timeout: Too large resource version: 9, current: 4\nend\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_an_expired_revision_receives_one_error() {
    let server = server();
    server.faults().expire_history();
    let mut old = Watch::open(&server, &format!("{WATCH}&resourceVersion=3")).await;
    assert_eq!(
        old.trace().await,
        "ERROR 410 Expired: too old resource version: 3 (4)\nend\n"
    );
    let mut present = Watch::open(&server, &format!("{WATCH}&resourceVersion=4")).await;
    assert_eq!(present.trace().await, "");
    server.create(pod("z")).unwrap();
    assert_eq!(present.trace().await, "ADDED z 5\n");
}

#[tokio::test(start_paused = true)]
async fn a_window_of_two_events_serves_watches_two_events_back() {
    let server = builder()
        .watch_cache_for("pods", WatchCache::Size(2))
        .seed(["a", "b", "c", "d"].map(pod))
        .build();
    let mut in_reach = Watch::open(&server, &format!("{WATCH}&resourceVersion=2")).await;
    assert_eq!(in_reach.trace().await, "ADDED c 3\nADDED d 4\n");
    let mut too_old = Watch::open(&server, &format!("{WATCH}&resourceVersion=1")).await;
    assert_eq!(
        too_old.trace().await,
        "ERROR 410 Expired: too old resource version: 1 (2)\nend\n"
    );
    let exact = get(
        &server,
        "/api/v1/pods?resourceVersion=1&resourceVersionMatch=Exact",
    )
    .await;
    assert_eq!(
        exact.names(),
        ["a"],
        "storage keeps more history than the watch cache"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_cache_watches_start_from_any_revision_in_storage() {
    let server = builder()
        .watch_cache(WatchCache::Off)
        .seed(["a", "b", "c"].map(pod))
        .build();
    let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion=1")).await;
    assert_eq!(watch.trace().await, "ADDED b 2\nADDED c 3\n");
    server.faults().expire_history();
    let mut old = Watch::open(&server, &format!("{WATCH}&resourceVersion=1")).await;
    assert_eq!(
        old.trace().await,
        "ERROR 410 Expired: The resourceVersion for the provided watch is too old.\nend\n"
    );
}

#[tokio::test(start_paused = true)]
async fn contradictory_watch_options_are_rejected_before_the_stream() {
    let server = builder().build();
    let older = builder().watch_list(false).build();
    let invalid =
        |body: &str| format!("422 Invalid: ListOptions.meta.k8s.io \"\" is invalid: {body}");
    for (server, query, expected) in [
        (&server, "sendInitialEvents=true", invalid("resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")),
        (&server, "resourceVersionMatch=NotOlderThan", invalid("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")),
        (&server, "sendInitialEvents=true&resourceVersionMatch=Exact", invalid("[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]")),
        (&server, "continue=abc", invalid("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided")),
        (&older, STREAMING, invalid("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")),
        (&server, "resourceVersion=x", "500 -: resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax".to_owned()),
        (&server, "fieldSelector=nope%3D1", "400 BadRequest: field label not supported: nope".to_owned()),
    ] {
        assert_eq!(get(server, &format!("{WATCH}&{query}")).await.refusal(), expected, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_server_still_sends_all_objects_first_but_no_closing_bookmark() {
    let server = builder().watch_list(false).seed([pod("a")]).build();
    let mut watch = Watch::open(&server, &format!("{WATCH}&allowWatchBookmarks=true")).await;
    assert_eq!(watch.trace().await, "ADDED a 1\n");
}
