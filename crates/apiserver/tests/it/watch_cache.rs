//! Tests the options that disable the server's watch cache for all kinds or for some kinds.
//!
//! Storage serves the lists and watches of a kind that has no watch cache. The expected responses are those
//! of kube-apiserver 1.36.3 with `--watch-cache=false`.

use std::time::Duration;

use expect_test::expect;
use kube_informer_apiserver::{Server, WatchCache};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::ask::{Watch, builder, get, get_as, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const STREAMING: &str =
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn uncached() -> Server {
    let builder = builder().watch_cache(WatchCache::Off);
    builder.seed(["a", "b", "c"].map(pod)).build()
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_cache_no_list_waits_for_a_revision() {
    let server = uncached();
    let began = Instant::now();
    for uri in [
        format!("{PODS}?resourceVersion=9"),
        format!("{PODS}?resourceVersion=9&limit=1"),
        format!("{PODS}?resourceVersion=9&resourceVersionMatch=Exact"),
        format!("{PODS}/a?resourceVersion=9"),
        format!("{PODS}/gone?resourceVersion=9"),
    ] {
        let reply = get(&server, &uri).await;
        assert_eq!(
            reply.refusal(),
            "504 Timeout: Timeout: Too large resource version: 9, current: 3",
            "{uri}"
        );
        assert_eq!(reply.json["details"]["retryAfterSeconds"], Value::Null);
        assert!(!reply.headers.contains_key("retry-after"));
    }
    let watch = get(
        &server,
        &format!("{PODS}?watch=1&resourceVersion=9&{STREAMING}"),
    )
    .await;
    let status = &watch.json["object"];
    assert_eq!(
        (&watch.json["type"], status["code"].as_u64()),
        (&"ERROR".into(), Some(504))
    );
    let retry = status["details"]["retryAfterSeconds"].as_u64();
    assert!(retry.is_some_and(|seconds| (1..=3).contains(&seconds)));
    assert_eq!(began.elapsed(), Duration::ZERO);

    let mut silent = Watch::open(&server, &format!("{PODS}?watch=1&resourceVersion=4")).await;
    server.create(pod("d")).unwrap();
    server.create(pod("e")).unwrap();
    assert_eq!(silent.trace().await, "ADDED e 5\n", "a plain watch waits");
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_cache_the_closing_bookmark_is_the_only_one() {
    let minutes = Duration::from_secs(600);
    let uri = |query: &str| format!("{PODS}?watch=1&timeoutSeconds=300&{query}");
    let server = uncached();
    let mut streamed = Watch::open(&server, &uri(STREAMING)).await;
    expect![[r"
        ADDED a 1
        ADDED b 2
        ADDED c 3
        BOOKMARK 3 end
        end
    "]]
    .assert_eq(&streamed.trace_for(minutes).await);
    let plain = uri("resourceVersion=2&allowWatchBookmarks=true");
    let mut watch = Watch::open(&server, &plain).await;
    assert_eq!(watch.trace_for(minutes).await, "ADDED c 3\nend\n");
}

async fn is_cached(server: &Server, resource: &str) -> bool {
    let list = format!("/api/v1/{resource}?resourceVersion=0&limit=1");
    get(server, &list).await.continue_token().is_none()
}

#[tokio::test(start_paused = true)]
async fn the_size_of_a_kind_overrides_the_default() {
    let size = WatchCache::Size;
    for (default, pods, expected) in [
        (WatchCache::Adaptive, size(0), [false, true]),
        (size(0), size(100), [true, false]),
        (WatchCache::Off, WatchCache::Adaptive, [true, false]),
        (size(100), WatchCache::Off, [false, true]),
    ] {
        let server = builder()
            .watch_cache_for("pods", pods)
            .watch_cache(default)
            .seed(["a", "b"].map(pod))
            .build();
        let cached = [
            is_cached(&server, "pods").await,
            is_cached(&server, "namespaces").await,
        ];
        assert_eq!(cached, expected, "{default:?} but {pods:?} for pods");
    }
}

#[tokio::test(start_paused = true)]
async fn the_default_size_applies_to_each_kind_separately() {
    let server = builder()
        .watch_cache(WatchCache::Size(2))
        .enforce_namespaces(false)
        .build();
    let first = server.revision();
    server.create(pod("a")).unwrap();
    for nth in 0..5 {
        server.create(pod(&format!("ns{nth}/b"))).unwrap();
        server.delete("v1", "pods", &format!("ns{nth}/b")).unwrap();
    }
    let watch = |resource: &str| format!("/api/v1/{resource}?watch=1&resourceVersion={first}");
    let mut pods = Watch::open(&server, &watch("pods")).await;
    expect![[r"
        ERROR 410 Expired: too old resource version: 1 (10)
        end
    "]]
    .assert_eq(&pods.trace().await);
    let mut namespaces = Watch::open(&server, &watch("namespaces")).await;
    assert_eq!(
        namespaces.trace().await,
        "",
        "events of other kinds do not use its size"
    );
}

#[tokio::test(start_paused = true)]
async fn the_closing_bookmark_of_a_table_is_the_row_of_an_empty_object() {
    let server = builder().watch_cache(WatchCache::Off).build();
    let uri = format!("/api/v1/configmaps?watch=1&{STREAMING}&timeoutSeconds=1");
    let reply = get_as(
        &server,
        &uri,
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    )
    .await;
    let row = &reply.json["object"]["rows"][0];
    assert_eq!(row["cells"], json!(["", 0, "<unknown>"]));
    let metadata =
        json!({"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}});
    assert_eq!(row["object"]["metadata"], metadata, "and nothing else");
}
