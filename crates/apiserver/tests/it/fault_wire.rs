//! Tests the bytes that a client receives over TCP when the server injects a fault.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use kube_informer_apiserver::Listening;

use crate::ask::{builder, pod};

/// Starts a server that contains the pod `a` and injects the faults of `plan`.
async fn listening(plan: &str) -> Listening {
    let server = builder().seed([pod("a")]).faults(plan).unwrap().build();
    server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

/// Sends a GET request, and returns all bytes received until the connection closes.
async fn talk(listening: &Listening, uri: &str) -> String {
    let mut stream = TcpStream::connect(listening.local_addr()).await.unwrap();
    let head = format!("GET {uri} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A reset also ends the connection. The bytes before the reset are returned.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).unwrap()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head").1
}

#[tokio::test]
async fn a_split_body_is_sent_in_http_chunks_of_that_size() {
    let listening = listening("list *: split every 16 bytes").await;
    let answer = talk(&listening, "/api/v1/pods").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        body(&answer).starts_with("10\r\n{\"kind\":\"PodList\r\n10\r\n\",\"apiVersion\":\"\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n0\r\n\r\n"), "{answer}");
    listening.shutdown().await;
}

#[tokio::test]
async fn a_cut_body_has_a_last_chunk_and_a_broken_one_has_none() {
    let plan = "list *: cut after 16 bytes x1; list *: break after 16 bytes";
    let listening = listening(plan).await;
    let cut = talk(&listening, "/api/v1/pods").await;
    assert_eq!(body(&cut), "10\r\n{\"kind\":\"PodList\r\n0\r\n\r\n");
    let broken = talk(&listening, "/api/v1/pods").await;
    assert_eq!(
        body(&broken),
        "10\r\n{\"kind\":\"PodList\r\n",
        "the bytes before the break are received"
    );
    listening.shutdown().await;
}

#[tokio::test]
async fn a_reset_closes_the_connection_without_a_response() {
    let listening = listening("* *: reset x1").await;
    assert_eq!(talk(&listening, "/api/v1/pods").await, "");
    assert!(talk(&listening, "/api/v1/pods").await.contains(" 200 OK"));
    listening.shutdown().await;
}

#[tokio::test]
async fn the_plain_response_of_flow_control_is_text() {
    let listening = listening("list *: 429 plain retry-after=2").await;
    let answer = talk(&listening, "/api/v1/pods").await;
    assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"));
    assert!(answer.contains("\r\ncontent-type: text/plain; charset=utf-8\r\n"));
    assert!(answer.contains("\r\nretry-after: 2\r\n"), "{answer}");
    assert_eq!(
        body(&answer),
        "Too many requests, please try again later.\n"
    );
    listening.shutdown().await;
}

#[tokio::test]
async fn a_watch_is_cut_in_the_middle_of_an_event() {
    let listening = listening("watch pods: cut after 25 bytes").await;
    let answer = talk(&listening, "/api/v1/pods?watch=1").await;
    assert_eq!(
        body(&answer),
        "19\r\n{\"type\":\"ADDED\",\"object\":\r\n0\r\n\r\n"
    );
    listening.shutdown().await;
}

#[tokio::test]
async fn a_port_is_open_again_after_the_time_of_refused_connections() {
    let server = builder().seed([pod("a")]).build();
    let loopback = "127.0.0.1:0".parse().unwrap();
    let listening = server.listen(loopback).await.unwrap();
    let address = listening.local_addr();
    server.faults().inject("refuse connections").unwrap();
    while TcpStream::connect(address).await.is_ok() {}
    server
        .faults()
        .inject("refuse connections for 1ms")
        .unwrap();
    while TcpStream::connect(address).await.is_err() {}
    assert!(talk(&listening, "/api/v1/pods").await.contains(" 200 OK"));
    listening.shutdown().await;
}
