//! What each sentence of a fault plan does on the wire.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use expect_test::expect;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tokio::time::Instant;
use tower_service::Service;

use kube_informer_apiserver::{Body, Server};

use crate::ask::{Watch, builder, get, pod, pods, request, send};

const PODS: &str = "/api/v1/pods";
const WATCH: &str = "/api/v1/pods?watch=1&resourceVersion=1&allowWatchBookmarks=true";
const STREAMED: &str = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// A server at revision 1 with this plan; pod `a` exists.
fn planned(plan: &str) -> Server {
    let builder = builder().seed([pod("a")]);
    builder.faults(plan).expect("a plan").build()
}

/// What a watch from revision 1 is told of `b`, `c`, … one after the other.
async fn told(server: &Server, names: &[&str]) -> String {
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
    server.call(request).await.expect("an answer").into_body()
}

/// The chunks that come until there is silence, and whether the end did.
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

/// The faults of each request, in the order of arrival.
fn hits(server: &Server) -> Vec<String> {
    let log = server.requests();
    log.iter().map(|it| it.faults.join(", ")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_cut_broken_or_frozen_behind_so_many_events() {
    let server = planned(
        "watch pods: cut after 2 events x1; watch pods: break after 1 events skip=1 x1; watch pods: freeze after 1 events skip=2 x1",
    );
    assert_eq!(
        told(&server, &["b", "c"]).await,
        "ADDED b 2\nADDED c 3\nend\n"
    );
    let mut broken = Watch::open(&server, WATCH).await;
    assert_eq!(
        broken.trace().await,
        "ADDED b 2\nbroken: the response was broken by a fault\nend\n"
    );
    let mut frozen = Watch::open(&server, WATCH).await;
    assert_eq!(frozen.trace().await, "ADDED b 2\n");
    server.faults().thaw_watches();
    assert_eq!(frozen.trace().await, "ADDED c 3\n");
    let mut healthy = Watch::open(&server, WATCH).await;
    assert_eq!(healthy.trace().await, "ADDED b 2\nADDED c 3\n");
    assert_eq!(
        hits(&server),
        [
            "cut after 2 events",
            "break after 1 events",
            "freeze after 1 events",
            ""
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_ends_behind_so_many_bytes_in_the_middle_of_an_object() {
    let server = planned("list pods: cut after 30 bytes; watch *: cut after 90 bytes");
    let list = get(&server, PODS).await;
    assert_eq!(
        (list.code, list.text.as_str()),
        (200, r#"{"kind":"PodList","apiVersion""#)
    );
    server.create(pod("b")).unwrap();
    let (sent, ended) = chunks(&mut open(&server, WATCH).await).await;
    assert_eq!((sent.concat().len(), ended), (90, true));
    assert!(sent.concat().starts_with(b"{\"type\":\"ADDED\""));
}

#[tokio::test(start_paused = true)]
async fn a_frozen_list_goes_on_when_everything_is_cleared() {
    let server = planned("list pods: freeze after 10 bytes");
    let mut body = open(&server, PODS).await;
    let (start, ended) = chunks(&mut body).await;
    assert_eq!((start.concat().len(), ended), (10, false));
    server.faults().clear();
    let (rest, ended) = chunks(&mut body).await;
    assert!(ended);
    let list = [start.concat(), rest.concat()].concat();
    let list: Value = serde_json::from_slice(&list).expect("nothing is lost");
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_body_is_split_where_it_is_asked_for_and_stays_the_same() {
    let whole = get(&pods(&["a"]), PODS).await.text;
    let sizes = |chunks: &[Bytes]| -> Vec<usize> { chunks.iter().map(Bytes::len).collect() };

    let (sent, _) = chunks(&mut open(&planned("* *: split every 7 bytes"), PODS).await).await;
    assert_eq!(sent.concat(), whole.as_bytes());
    let (last, others) = sizes(&sent)
        .split_last()
        .map(|(l, o)| (*l, o.to_vec()))
        .unwrap();
    assert!(
        last <= 7 && others.iter().all(|size| *size == 7),
        "{others:?}"
    );

    let (sent, _) = chunks(&mut open(&planned("* *: split at 1,20"), PODS).await).await;
    assert_eq!(sent.concat(), whole.as_bytes());
    assert_eq!(sizes(&sent), [1, 19, whole.len() - 20]);

    let server = planned("* *: split randomly");
    let (sent, _) = chunks(&mut open(&server, PODS).await).await;
    assert_eq!(sent.concat(), whole.as_bytes());
    assert!(sent.len() > whole.len() / 64, "{:?}", sizes(&sent));
    assert_eq!(hits(&server), ["split randomly"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_split_within_its_events_and_told_in_full() {
    let server = planned("watch pods: split every 11 bytes");
    assert_eq!(told(&server, &["b", "c"]).await, "ADDED b 2\nADDED c 3\n");
    let (sent, ended) = chunks(&mut open(&server, WATCH).await).await;
    assert!(!ended && sent.iter().all(|chunk| chunk.len() <= 11));
}

#[tokio::test(start_paused = true)]
async fn answers_first_bytes_and_events_are_delayed() {
    let server =
        planned("list *: delay 5s; watch *: delay first byte 2s; watch *: delay each event 3s");
    let start = Instant::now();
    assert_eq!(get(&server, PODS).await.code, 200);
    assert_eq!(start.elapsed(), Duration::from_secs(5));

    server.create(pod("b")).unwrap();
    server.create(pod("c")).unwrap();
    let start = Instant::now();
    let mut body = open(&server, WATCH).await;
    assert_eq!(start.elapsed(), Duration::ZERO, "headers come at once");
    let mut at = Vec::new();
    for _ in 0..2 {
        body.frame().await.expect("an event").unwrap();
        at.push(start.elapsed().as_secs());
    }
    assert_eq!(at, [5, 8]);
    server.faults().cut_watches();
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cut_does_not_wait_for_a_delay() {
    let server = planned("watch *: delay each event 1h");
    let mut watch = Watch::open(&server, WATCH).await;
    server.create(pod("b")).unwrap();
    assert_eq!(watch.trace().await, "");
    server.faults().cut_watches();
    assert_eq!(watch.trace().await, "end\n");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_those_of_kubernetes() {
    let server = planned(
        "list pods: 429 plain x1; list pods: 429 retry-after=7 x1; list pods: 503 plain retry-after=3 x1; list pods: 504 too-large retry-after=1 x1",
    );
    let mut told = String::new();
    for _ in 0..4 {
        let reply = get(&server, PODS).await;
        let header = |name: &str| reply.headers.get(name).map(|value| value.to_str().unwrap());
        writeln!(
            told,
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
        {"apiVersion":"v1","code":429,"details":{"retryAfterSeconds":7},"kind":"Status","message":"Too many requests, please try again later.","metadata":{},"reason":"TooManyRequests","status":"Failure"}
        503 Some("text/plain; charset=utf-8") Some("3") Some("nosniff")
        the server is currently unable to handle the request
        504 Some("application/json") Some("1") None
        {"apiVersion":"v1","code":504,"details":{"causes":[{"message":"Too large resource version","reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1},"kind":"Status","message":"Timeout: Too large resource version: 2, current: 1","metadata":{},"reason":"Timeout","status":"Failure"}
    "#]].assert_eq(&told);
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_an_error_instead_of_an_answer_and_nothing_is_done() {
    let mut server = planned("create pods: reset x1");
    let post = || {
        let post = request("POST", "/api/v1/namespaces/default/pods");
        post.body(Full::from(pod("b").to_string())).unwrap()
    };
    let error = server.call(post()).await.expect_err("no answer");
    let error = error.downcast_ref::<std::io::Error>().expect("an io error");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(server.revision(), 1);
    assert_eq!(hits(&server), ["reset"]);
    assert_eq!(send(&server, post()).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn streamed_lists_can_be_refused_at_run_time() {
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
async fn bookmarks_are_dropped_all_or_the_closing_one_only() {
    let server = planned("watch pods: drop end-bookmark x1; watch pods: drop bookmarks");
    let mut unended = Watch::open(&server, STREAMED).await;
    assert_eq!(unended.trace().await, "ADDED a 1\n");
    let server = planned("watch pods: drop end-bookmark");
    let mut unended = Watch::open(&server, STREAMED).await;
    server.faults().send_bookmarks();
    assert_eq!(unended.trace().await, "ADDED a 1\nBOOKMARK 1\n");
    let server = planned("watch pods: drop bookmarks");
    let mut without = Watch::open(&server, WATCH).await;
    server.faults().send_bookmarks();
    server.create(pod("b")).unwrap();
    assert_eq!(
        without.trace_for(Duration::from_secs(300)).await,
        "ADDED b 2\n"
    );
    assert_eq!(hits(&server), ["drop bookmarks"]);
}

#[tokio::test(start_paused = true)]
async fn events_are_dropped_doubled_swapped_and_spoilt_where_it_is_said() {
    let names = ["b", "c", "d", "e"];
    for (plan, expected) in [
        ("drop event 2", "ADDED b 2\nADDED d 4\nADDED e 5\n"),
        (
            "duplicate every 2 events",
            "ADDED b 2\nADDED c 3\nADDED c 3\nADDED d 4\nADDED e 5\nADDED e 5\n",
        ),
        (
            "swap event 2",
            "ADDED b 2\nADDED d 4\nADDED c 3\nADDED e 5\n",
        ),
        (
            "swap events",
            "ADDED c 3\nADDED b 2\nADDED e 5\nADDED d 4\n",
        ),
        (
            "retype event 1",
            "MOVED b 2\nADDED c 3\nADDED d 4\nADDED e 5\n",
        ),
        (
            "send \"garbage\\n\" after 1 event",
            "ADDED b 2\nundecodable garbage\nADDED c 3\nADDED d 4\nADDED e 5\n",
        ),
        ("drop 100% of events", ""),
    ] {
        let server = planned(&format!("watch pods: {plan}"));
        assert_eq!(told(&server, &names).await, expected, "{plan}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_garbled_event_is_half_a_line() {
    let whole = planned("watch nodes: drop events");
    let garbled = planned("watch pods: garble event 1");
    for server in [&whole, &garbled] {
        server.create(pod("b")).unwrap();
    }
    let (whole, _) = chunks(&mut open(&whole, WATCH).await).await;
    let (garbled, _) = chunks(&mut open(&garbled, WATCH).await).await;
    let half = [&whole.concat()[..whole.concat().len() / 2], b"\n"].concat();
    assert_eq!(garbled.concat(), half);
}

#[tokio::test(start_paused = true)]
async fn a_spoilt_object_keeps_its_name_and_cannot_be_decoded() {
    let server = planned("watch pods: spoil event 1");
    server.create(pod("b")).unwrap();
    let (sent, _) = chunks(&mut open(&server, WATCH).await).await;
    assert!(
        sent.concat()
            .starts_with(b"{\"type\":\"ADDED\",\"object\":")
    );
    let event: Value = serde_json::from_slice(&sent.concat()).expect("it is JSON");
    let object = &event["object"];
    assert_eq!(object["metadata"]["name"], "b");
    assert_eq!(object["metadata"]["resourceVersion"], "2");
    let decoded = serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object.clone());
    assert!(decoded.is_err());
}

#[tokio::test(start_paused = true)]
async fn chances_are_drawn_from_the_seed_and_the_printed_plan_repeats_them() {
    let names: Vec<String> = (0..200).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let plan = "list *: 500 chance=50%; watch pods: drop 25% of events";
    let life = async |server: &Server| {
        let mut codes = Vec::new();
        for _ in 0..100 {
            codes.push(get(server, PODS).await.code);
        }
        (codes, told(server, &names).await)
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
async fn the_plan_in_force_says_what_is_left() {
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
async fn a_plan_with_a_mistake_has_no_effect() {
    let server = pods(&["a"]);
    let error = server.faults().inject("list pods: 500\nlist pods: 6oo");
    let error = error.expect_err("a mistake");
    assert_eq!((error.line(), error.column()), (2, 12));
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn actions_are_for_the_watches_they_name() {
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
    assert_eq!(
        later.trace().await,
        "",
        "one that opens later is frozen too"
    );
    faults.inject("thaw watch nodes").unwrap();
    assert_eq!(pods.trace().await, "");
    let mut still = Watch::open(&server, "/api/v1/pods?watch=1").await;
    assert_eq!(still.trace().await, "", "the thaw was for others");
    faults.inject("thaw watch pods; cut watch nodes").unwrap();
    assert_eq!(pods.trace().await, "ADDED a 2\n");
    assert_eq!(later.trace().await, "ADDED a 2\n");
    let mut healthy = Watch::open(&server, "/api/v1/pods?watch=1").await;
    assert_eq!(healthy.trace().await, "ADDED a 2\n", "the freeze is over");
    drop(healthy);
    assert_eq!(nodes.trace().await, "end\n");
    faults.inject("break watch pods in default").unwrap();
    assert_eq!(pods.trace().await, "", "its watch is of all namespaces");
    faults.inject("break watch pods").unwrap();
    assert_eq!(
        pods.trace().await,
        "broken: the response was broken by a fault\nend\n"
    );
    assert_eq!(
        hits(&server),
        ["freeze, break", "cut", "freeze, break", "freeze, break", ""],
        "a watch that is gone is hit no more"
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_is_closed_on_demand_behind_what_waits_for_it() {
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
async fn connections_are_refused_for_a_time() {
    let mut server = planned("refuse connections for 5s");
    let list = || request("GET", PODS).body(Full::<Bytes>::default()).unwrap();
    assert!(server.call(list()).await.is_err());
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn clearing_takes_faults_off_open_watches_and_loses_nothing() {
    let server = planned("watch pods: swap event 1; watch pods: drop event 3");
    let mut watch = Watch::open(&server, WATCH).await;
    server.create(pod("b")).unwrap();
    assert_eq!(watch.trace().await, "", "it waits to be overtaken");
    server.faults().clear();
    assert_eq!(watch.trace().await, "ADDED b 2\n");
    server.create(pod("c")).unwrap();
    server.create(pod("d")).unwrap();
    assert_eq!(watch.trace().await, "ADDED c 3\nADDED d 4\n");
}

#[tokio::test(start_paused = true)]
async fn a_plan_injected_again_draws_the_same_chances_again() {
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
    assert_eq!(codes(behind).await, first, "a seed starts anew");
}

#[tokio::test(start_paused = true)]
async fn only_requests_that_a_fault_can_hit_are_counted() {
    let server = planned("* pods: cut after 1 event x1; * *: refuse streaming x1");
    assert_eq!(get(&server, PODS).await.code, 200);
    let mut cut = Watch::open(&server, WATCH).await;
    server.create(pod("b")).unwrap();
    server.create(pod("c")).unwrap();
    assert_eq!(cut.trace().await, "ADDED b 2\nend\n");
    assert_eq!(get(&server, STREAMED).await.code, 422);
    let refused = planned("list pods: 500; list pods: cut x1; list pods: 503 x1");
    assert_eq!(get(&refused, PODS).await.code, 500, "the first of two");
    assert_eq!(hits(&refused), ["500"], "an answer leaves nothing to cut");
}
