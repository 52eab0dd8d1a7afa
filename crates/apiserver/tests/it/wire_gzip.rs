//! Tests gzip compression of responses, in process and over TCP.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, Method};
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::{Match, Server};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower_service::Service;

use crate::ask::{builder, pod, request};
use crate::wire::{connect, loopback};

/// Length in bytes up to which the server does not compress a response.
const THRESHOLD: usize = 128 * 1024;

const MAP: &str = "/api/v1/namespaces/default/configmaps/m";

fn map(bytes: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "m", "namespace": "default"},
        "data": {"a": "x".repeat(bytes)},
    })
}

async fn ask(server: &Server, method: Method, uri: &str, encoding: &str) -> (HeaderMap, Bytes) {
    let request = request(method.as_str(), uri).header("accept-encoding", encoding);
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let response = server.clone().call(request).await.unwrap();
    let (parts, body) = response.into_parts();
    (parts.headers, body.collect().await.unwrap().to_bytes())
}

async fn get(server: &Server, uri: &str, encoding: &str) -> (HeaderMap, Bytes) {
    ask(server, Method::GET, uri, encoding).await
}

fn unzip(gzip: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut plain).unwrap();
    plain
}

/// Returns a server whose uncompressed GET response for config map `m` has `bytes` bytes.
async fn with_answer_of(bytes: usize) -> Server {
    let server = builder().seed([map(bytes)]).build();
    let (_, plain) = get(&server, MAP, "identity").await;
    let around = plain.len() - bytes;
    server.update(map(bytes - around)).unwrap();
    server
}

fn many_pods() -> Server {
    let pods = (0..2_000).map(|n| pod(&format!("p{n:04}")));
    builder().seed(pods).build()
}

#[tokio::test(start_paused = true)]
async fn the_threshold_is_128_kibibytes() {
    for (bytes, compressed) in [(THRESHOLD, false), (THRESHOLD + 1, true)] {
        let server = with_answer_of(bytes).await;
        let (headers, plain) = get(&server, MAP, "identity").await;
        assert_eq!(plain.len(), bytes);
        assert!(!headers.contains_key("content-encoding"));
        let (headers, answer) = get(&server, MAP, "deflate, gzip").await;
        let encoding = headers.get("content-encoding");
        assert_eq!(
            encoding.is_some_and(|it| it == "gzip"),
            compressed,
            "{bytes}"
        );
        assert_eq!(headers.contains_key("vary"), compressed, "{bytes}");
        if compressed {
            assert!(answer.len() < THRESHOLD);
            assert!(unzip(&answer) == plain, "the same object");
        } else {
            assert!(answer == plain);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_compressed_for_the_bare_token_only() {
    let server = many_pods();
    let (_, plain) = get(&server, "/api/v1/pods", "").await;
    assert!(plain.len() > 3 * THRESHOLD);
    for encoding in ["identity", "gzip;q=1", "GZIP", "*", "deflate"] {
        let (headers, answer) = get(&server, "/api/v1/pods", encoding).await;
        assert!(!headers.contains_key("content-encoding"), "{encoding}");
        assert!(answer == plain, "{encoding}");
    }
    let (headers, answer) = get(&server, "/api/v1/pods", "gzip").await;
    assert_eq!(headers["vary"], "Accept-Encoding");
    assert!(answer.len() < plain.len() / 5);
    assert!(unzip(&answer) == plain);
    let (_, again) = get(&server, "/api/v1/pods", "gzip").await;
    assert!(again == answer, "the same list gives the same bytes");
}

#[tokio::test(start_paused = true)]
async fn no_watch_is_compressed_at_any_length() {
    let server = many_pods();
    let uri = "/api/v1/pods?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let (headers, events) = get(&server, uri, "gzip").await;
    assert!(!headers.contains_key("content-encoding"));
    assert!(events.starts_with(b"{\"type\":\"ADDED\""));
    assert!(events.len() > 3 * THRESHOLD);
}

#[tokio::test(start_paused = true)]
async fn rejections_and_short_responses_are_not_compressed() {
    let server = many_pods();
    server.faults().answer(Match::list("pods"), 503);
    for uri in ["/api/v1/pods", "/api/v1/pods?limit=10", "/apis"] {
        let (headers, body) = get(&server, uri, "gzip").await;
        assert!(!headers.contains_key("content-encoding"), "{uri}");
        serde_json::from_slice::<Value>(&body).expect("plain JSON");
    }
}

#[tokio::test(start_paused = true)]
async fn the_response_of_a_write_is_compressed_too() {
    let server = with_answer_of(2 * THRESHOLD).await;
    let query = "?propagationPolicy=Foreground";
    let (headers, answer) = ask(&server, Method::DELETE, &format!("{MAP}{query}"), "gzip").await;
    assert_eq!(headers["content-encoding"], "gzip");
    let shown: Value = serde_json::from_slice(&unzip(&answer)).unwrap();
    assert!(
        shown["metadata"]["deletionTimestamp"].is_string(),
        "it waits for the deletion of its dependents"
    );
}

#[tokio::test]
async fn compressed_responses_are_the_same_over_tcp() {
    let server = many_pods();
    let (_, expected) = get(&server, "/api/v1/pods", "gzip").await;
    let listening = server.listen(loopback()).await.unwrap();
    let mut tasks = JoinSet::new();
    let mut connection = connect(listening.local_addr(), &mut tasks).await;
    let request = request("GET", "/api/v1/pods")
        .header("host", "localhost")
        .header("accept-encoding", "gzip");
    let request = request.body(Full::default()).unwrap();
    let response = connection.send_request(request).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.headers()["transfer-encoding"], "chunked");
    let answer = response.into_body().collect().await.unwrap().to_bytes();
    assert!(answer == expected);
    listening.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn faults_apply_to_the_compressed_bytes() {
    let server = many_pods();
    let (_, whole) = get(&server, "/api/v1/pods", "gzip").await;
    server
        .faults()
        .inject("list pods: cut after 1000 bytes")
        .unwrap();
    let (headers, cut) = get(&server, "/api/v1/pods", "gzip").await;
    assert_eq!(headers["content-encoding"], "gzip");
    assert_eq!(cut, whole[..1000]);
}
