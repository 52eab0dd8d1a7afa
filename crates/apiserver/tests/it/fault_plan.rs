//! Tests fault plans. A fault plan is text that states which faults the server injects into which requests.
//!
//! This file tests faults of requests and of open watches. The submodules test faults of response bodies and
//! of watch events.

mod body;
mod events;

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use expect_test::expect;
use http_body_util::{BodyExt, Full};
use tower_service::Service;

use kube_informer_apiserver::{Body, Server};

use crate::ask::{Watch, builder, get, pod, pods, request, send};

const PODS: &str = "/api/v1/pods";
const WATCH: &str = "/api/v1/pods?watch=1&resourceVersion=1&allowWatchBookmarks=true";
const STREAMED: &str = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// Returns a server with pod `a` at revision 1 and the faults of `plan`.
fn planned(plan: &str) -> Server {
    let builder = builder().seed([pod("a")]);
    builder.faults(plan).expect("a plan").build()
}

/// Watches from revision 1, creates the pods `names`, and returns the received events as text.
async fn created_trace(server: &Server, names: &[&str]) -> String {
    let mut watch = Watch::open(server, WATCH).await;
    let mut trace = String::new();
    for name in names {
        server.create(pod(name)).unwrap();
        trace.push_str(&watch.trace().await);
    }
    trace
}

async fn open(server: &Server, uri: &str) -> Body {
    let request = request("GET", uri).body(Full::<Bytes>::default()).unwrap();
    let mut server = server.clone();
    server.call(request).await.expect("a response").into_body()
}

/// Reads chunks until the body ends or stalls for 10 ms. Returns the chunks, and whether the body has ended.
async fn chunks(body: &mut Body) -> (Vec<Bytes>, bool) {
    let mut chunks = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(10), body.frame()).await {
            Err(_) => return (chunks, false),
            Ok(None) => return (chunks, true),
            Ok(Some(frame)) => chunks.push(frame.unwrap().into_data().unwrap()),
        }
    }
}

/// Returns the injected faults of each logged request, in order of arrival.
fn hits(server: &Server) -> Vec<String> {
    let log = server.requests();
    log.iter().map(|it| it.faults.join(", ")).collect()
}

#[tokio::test(start_paused = true)]
async fn fault_statuses_equal_those_of_kubernetes() {
    let server = planned(
        "list pods: 429 plain x1; list pods: 429 retry-after=7 x1; list pods: 503 plain retry-after=3 x1; list pods: 504 too-large retry-after=1 x1",
    );
    let mut shown = String::new();
    for _ in 0..4 {
        let reply = get(&server, PODS).await;
        let header = |name: &str| reply.headers.get(name).map(|value| value.to_str().unwrap());
        writeln!(
            shown,
            "{} {:?} {:?} {:?}\n{}",
            reply.code,
            header("content-type"),
            header("retry-after"),
            header("x-content-type-options"),
            reply.text.trim_end()
        )
        .unwrap();
    }
    expect![[r#"
        429 Some("text/plain; charset=utf-8") Some("1") Some("nosniff")
        Too many requests, please try again later.
        429 Some("application/json") Some("7") None
        {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Too many requests, please try again later.","reason":"TooManyRequests","details":{"retryAfterSeconds":7},"code":429}
        503 Some("text/plain; charset=utf-8") Some("3") Some("nosniff")
        the server is currently unable to handle the request
        504 Some("application/json") Some("1") None
        {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 2, current: 1","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}
    "#]].assert_eq(&shown);
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_reset_request_fails_without_a_response_and_changes_nothing() {
    let mut server = planned("create pods: reset x1");
    let post = || {
        let post = request("POST", "/api/v1/namespaces/default/pods");
        post.body(Full::from(pod("b").to_string())).unwrap()
    };
    let error = server.call(post()).await.expect_err("no response");
    let error = error.downcast_ref::<std::io::Error>().expect("an io error");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(server.revision(), 1);
    assert_eq!(hits(&server), ["reset"]);
    assert_eq!(send(&server, post()).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_can_be_rejected_at_run_time() {
    let server = planned("watch pods: refuse streaming");
    assert_eq!(
        get(&server, STREAMED).await.refusal(),
        "422 Invalid: ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    );
    let mut plain = Watch::open(&server, WATCH).await;
    assert_eq!(plain.trace().await, "", "other watches are served");
    server.faults().clear();
    let mut streamed = Watch::open(&server, STREAMED).await;
    assert_eq!(streamed.trace().await, "ADDED a 1\nBOOKMARK 1 end\n");
}

#[tokio::test(start_paused = true)]
async fn chances_depend_on_the_seed_and_the_printed_plan_reproduces_them() {
    let names: Vec<String> = (0..200).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let plan = "list *: 500 chance=50%; watch pods: drop 25% of events";
    let life = async |server: &Server| {
        let mut codes = Vec::new();
        for _ in 0..100 {
            codes.push(get(server, PODS).await.code);
        }
        (codes, created_trace(server, &names).await)
    };
    let first = planned(plan);
    let printed = first.faults().plan();
    let (codes, trace) = life(&first).await;
    let refused = codes.iter().filter(|code| **code == 500).count();
    let lost = 200 - trace.lines().count();
    assert!((30..70).contains(&refused), "{refused} of 100");
    assert!((25..75).contains(&lost), "{lost} of 200");

    let other = builder().rng_seed(2).seed([pod("a")]).build();
    other.faults().inject(&printed).unwrap();
    assert_eq!(life(&other).await, (codes.clone(), trace), "the same seed");
    let different = planned(&format!("seed 99; {plan}"));
    assert_ne!(life(&different).await.0, codes, "another seed");
}

#[tokio::test(start_paused = true)]
async fn the_printed_plan_shows_how_often_each_fault_still_applies() {
    let server = planned("list pods: 500 x3; list nodes: 500 x1; watch *: drop bookmarks");
    server
        .faults()
        .inject("freeze watch pods from agent; refuse connections for 5s")
        .unwrap();
    server.faults().inject("accept connections").unwrap();
    get(&server, PODS).await;
    get(&server, "/api/v1/nodes").await;
    server.faults().inject("refuse connections for 5s").unwrap();
    expect![[r#"
        seed 1
        list pods: 500 x3  # 2 left
        list nodes: 500 x1  # used up
        watch *: drop bookmarks
        freeze watch pods from agent
        refuse connections for 5s
    "#]]
    .assert_eq(&server.faults().plan());
    server.faults().clear();
    assert_eq!(server.faults().plan(), "seed 1\n");
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_plan_with_an_error_has_no_effect() {
    let server = pods(&["a"]);
    let error = server.faults().inject("list pods: 500\nlist pods: 6oo");
    let error = error.expect_err("an error");
    assert_eq!((error.line(), error.column()), (2, 12));
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn actions_affect_only_the_watches_that_they_name() {
    let server = builder().build();
    let mut pods = Watch::open(&server, "/api/v1/pods?watch=1").await;
    let mut nodes = Watch::open(&server, "/api/v1/nodes?watch=1&allowWatchBookmarks=1").await;
    let faults = server.faults();
    faults
        .inject("freeze watch pods; send \"x\\n\" to watch nodes; send bookmarks to watch nodes")
        .unwrap();
    server.create(pod("a")).unwrap();
    assert_eq!(pods.trace().await, "");
    assert_eq!(
        nodes.trace().await,
        "BOOKMARK 1 end\nundecodable x\nBOOKMARK 1\n"
    );
    let mut later = Watch::open(&server, "/api/v1/pods?watch=1").await;
    assert_eq!(later.trace().await, "", "a later watch is frozen too");
    faults.inject("thaw watch nodes").unwrap();
    assert_eq!(pods.trace().await, "");
    let mut still = Watch::open(&server, "/api/v1/pods?watch=1").await;
    assert_eq!(still.trace().await, "", "the thaw was for other watches");
    faults.inject("thaw watch pods; cut watch nodes").unwrap();
    assert_eq!(pods.trace().await, "ADDED a 2\n");
    assert_eq!(later.trace().await, "ADDED a 2\n");
    let mut healthy = Watch::open(&server, "/api/v1/pods?watch=1").await;
    assert_eq!(healthy.trace().await, "ADDED a 2\n", "the freeze is over");
    drop(healthy);
    assert_eq!(nodes.trace().await, "end\n");
    faults.inject("break watch pods in default").unwrap();
    assert_eq!(pods.trace().await, "", "this watch covers all namespaces");
    faults.inject("break watch pods").unwrap();
    assert_eq!(
        pods.trace().await,
        "broken: the response was broken by a fault\nend\n"
    );
    assert_eq!(
        hits(&server),
        ["freeze, break", "cut", "freeze, break", "freeze, break", ""],
        "a closed watch is not affected"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_closed_as_slow_ends_after_its_pending_events() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, WATCH).await;
    let mut other = Watch::open(&server, "/api/v1/nodes?watch=1&resourceVersion=1").await;
    server.create(pod("b")).unwrap();
    server.faults().inject("close watch pods").unwrap();
    server.create(pod("c")).unwrap();
    assert_eq!(watch.trace().await, "ADDED b 2\nend\n");
    assert_eq!(other.trace().await, "");
    server.faults().close_slow_watches();
    assert_eq!(other.trace().await, "end\n");
    assert_eq!(hits(&server), ["close", "close"]);
}

#[tokio::test(start_paused = true)]
async fn connections_are_refused_for_a_limited_time() {
    let mut server = planned("refuse connections for 5s");
    let list = || request("GET", PODS).body(Full::<Bytes>::default()).unwrap();
    assert!(server.call(list()).await.is_err());
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn cleared_faults_no_longer_affect_open_watches_and_no_event_is_lost() {
    let server = planned("watch pods: swap event 1; watch pods: drop event 3");
    let mut watch = Watch::open(&server, WATCH).await;
    server.create(pod("b")).unwrap();
    assert_eq!(
        watch.trace().await,
        "",
        "it waits for the event to swap with"
    );
    server.faults().clear();
    assert_eq!(watch.trace().await, "ADDED b 2\n");
    server.create(pod("c")).unwrap();
    server.create(pod("d")).unwrap();
    assert_eq!(watch.trace().await, "ADDED c 3\nADDED d 4\n");
}

#[tokio::test(start_paused = true)]
async fn a_plan_injected_again_has_the_same_random_outcome() {
    let server = pods(&["a"]);
    let codes = async |plan: &str| {
        server.faults().clear();
        server.faults().inject(plan).unwrap();
        let mut codes = Vec::new();
        for _ in 0..50 {
            codes.push(get(&server, PODS).await.code);
        }
        codes
    };
    let first = codes("list *: 500 chance=50%").await;
    assert_eq!(codes("list *: 500 chance=50%").await, first);
    let behind = "list nodes: 500 x1; seed 1; list *: 500 chance=50%";
    assert_eq!(
        codes(behind).await,
        first,
        "a seed restarts the random numbers"
    );
}

#[tokio::test(start_paused = true)]
async fn only_requests_that_a_fault_can_affect_are_counted() {
    let server = planned("* pods: cut after 1 event x1; * *: refuse streaming x1");
    assert_eq!(get(&server, PODS).await.code, 200);
    let mut cut = Watch::open(&server, WATCH).await;
    server.create(pod("b")).unwrap();
    server.create(pod("c")).unwrap();
    assert_eq!(cut.trace().await, "ADDED b 2\nend\n");
    assert_eq!(get(&server, STREAMED).await.code, 422);
    let refused = planned("list pods: 500; list pods: cut x1; list pods: 503 x1");
    assert_eq!(
        get(&refused, PODS).await.code,
        500,
        "the first of two faults applies"
    );
    assert_eq!(hits(&refused), ["500"], "a fault status has no body to cut");
}
