//! Tests watches through web sockets.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use kube_informer_apiserver::{Listening, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::ask::{pod, pods};
use crate::wire::loopback;

const WATCH: &str = "/api/v1/namespaces/default/pods?watch=1";

const HANDSHAKE: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://localhost\r\n";

/// Sends a request and returns the connection and the head of the response.
async fn ask(listening: &Listening, path: &str, headers: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(listening.local_addr()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(head).unwrap())
}

async fn open(listening: &Listening, path: &str, headers: &str) -> WebSocketStream<TcpStream> {
    let (stream, head) = ask(listening, path, &format!("{HANDSHAKE}{headers}")).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // The hash of this key is that of RFC 6455, section 1.3.
    let accepted = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    assert!(head.contains(accepted), "{head}");
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

/// Returns the type of the next event, and the name of its object.
async fn next(socket: &mut WebSocketStream<TcpStream>) -> (String, String) {
    let message = socket.next().await.unwrap().unwrap();
    let text = message.into_text().unwrap();
    assert!(text.ends_with("}\n"), "{text}");
    let event: Value = serde_json::from_str(&text).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (
        text(&event["type"]),
        text(&event["object"]["metadata"]["name"]),
    )
}

fn event(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

async fn close_code(socket: &mut WebSocketStream<TcpStream>) -> u16 {
    match socket.next().await.unwrap().unwrap() {
        Message::Close(Some(frame)) => frame.code.into(),
        other => panic!("{other:?} is no close"),
    }
}

#[tokio::test]
async fn each_event_is_a_message_until_the_watch_ends() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let mut socket = open(&listening, WATCH, "").await;
    assert_eq!(next(&mut socket).await, event("ADDED", "a"));
    let long = "x".repeat(200_000);
    let mut large = pod("b");
    large["metadata"]["annotations"] = json!({ "long": long });
    server.create(large).unwrap();
    server.create(pod("c")).unwrap();
    server.delete("v1", "pods", "default/a").unwrap();
    assert_eq!(next(&mut socket).await, event("ADDED", "b"));
    assert_eq!(next(&mut socket).await, event("ADDED", "c"));
    socket.send(Message::Ping("hi".into())).await.unwrap();
    socket.send(Message::Text("ignored".into())).await.unwrap();
    let mut last = [
        socket.next().await.unwrap().unwrap(),
        socket.next().await.unwrap().unwrap(),
    ];
    last.sort_by_key(Message::is_text);
    assert_eq!(last[0], Message::Pong("hi".into()));
    assert!(
        last[1]
            .to_text()
            .unwrap()
            .starts_with("{\"type\":\"DELETED\"")
    );
    server.faults().cut_watches();
    server.create(pod("d")).unwrap();
    // A cut watch ends without an end, as a cut connection does.
    while let Some(Ok(message)) = socket.next().await {
        assert!(!message.is_text(), "{message}");
    }
    let mut short = open(&listening, &format!("{WATCH}&timeoutSeconds=1"), "").await;
    for name in ["b", "c", "d"] {
        assert_eq!(next(&mut short).await, event("ADDED", name));
    }
    assert_eq!(close_code(&mut short).await, 1000);
    listening.shutdown().await;
}

#[tokio::test]
async fn events_in_protobuf_are_those_of_a_stream_without_their_lengths() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let accept = "Accept: application/vnd.kubernetes.protobuf\r\n";
    let path = format!("{WATCH}&timeoutSeconds=1");
    let mut socket = open(&listening, &path, accept).await;
    let message = socket.next().await.unwrap().unwrap();
    assert!(message.is_binary());
    let (mut stream, head) =
        ask(&listening, &path, &format!("{accept}Connection: close\r\n")).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let mut body = Vec::new();
    stream.read_to_end(&mut body).await.unwrap_or_default();
    // The size of the chunk, a line break, and the length of the event.
    let begin = body.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2 + 4;
    let event = message.into_data();
    assert!(body[begin..].starts_with(&event));
    assert_eq!(
        body[begin - 4..begin],
        u32::try_from(event.len()).unwrap().to_be_bytes()
    );
    listening.shutdown().await;
}

#[tokio::test]
async fn handshakes_are_checked_after_the_watch_was_accepted() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let without = |name: &str| -> String {
        let lines = HANDSHAKE.split_inclusive("\r\n");
        lines.filter(|line| !line.starts_with(name)).collect()
    };
    let bad = "/api/v1/namespaces/default/pods?watch=1&labelSelector=%3D";
    let list = "/api/v1/namespaces/default/pods";
    let version_8 = HANDSHAKE.replace("Version: 13", "Version: 8");
    let protocols = format!("{HANDSHAKE}Sec-WebSocket-Protocol: a, b\r\n");
    for (path, headers, code) in [
        (WATCH, without("Origin"), "403"),
        (WATCH, without("Sec-WebSocket-Key"), "400"),
        (WATCH, version_8, "400"),
        (WATCH, protocols, "400"),
        // Not a handshake.
        (WATCH, without("Upgrade"), "200"),
        // Not a watch that begins.
        (bad, HANDSHAKE.to_owned(), "400"),
        (list, HANDSHAKE.to_owned(), "200"),
    ] {
        let (_, head) = ask(&listening, path, &headers).await;
        assert_eq!(head.split(' ').nth(1).unwrap(), code, "{headers}{head}");
    }
    listening.shutdown().await;
}

#[tokio::test]
async fn a_page_of_another_site_opens_no_web_socket_of_a_server_that_pages_can_reach() {
    let server = Server::builder().allow_remote(true).build();
    let listening = server.listen(loopback()).await.unwrap();
    for (origin, code) in [
        ("http://localhost:8080", "101"),
        ("http://127.0.0.1", "101"),
        ("http://[::1]:3000", "101"),
        ("https://evil.example", "403"),
        ("https://localhost.evil.example", "403"),
        ("null", "403"),
        ("https://evil.example\r\nAuthorization: Bearer x", "101"),
    ] {
        let headers = HANDSHAKE.replace("http://localhost", origin);
        let (_, head) = ask(&listening, WATCH, &headers).await;
        assert_eq!(head.split(' ').nth(1).unwrap(), code, "{headers}{head}");
    }
    // The name of the server, for example behind a proxy.
    let headers = HANDSHAKE.replace("http://localhost", "https://api.example");
    let mut stream = TcpStream::connect(listening.local_addr()).await.unwrap();
    let request = format!("GET {WATCH} HTTP/1.1\r\nHost: api.example:6443\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    listening.shutdown().await;
}

#[tokio::test]
async fn the_watch_of_a_client_that_leaves_or_sends_too_much_ends() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let mut leaves = open(&listening, WATCH, "").await;
    let mut shouts = open(&listening, WATCH, "").await;
    for socket in [&mut leaves, &mut shouts] {
        assert_eq!(next(socket).await, event("ADDED", "a"));
    }
    leaves.close(None).await.unwrap();
    assert!(leaves.next().await.unwrap().unwrap().is_close());
    let _ = shouts
        .send(Message::Text("x".repeat(1_000_000).into()))
        .await;
    for socket in [leaves, shouts] {
        assert_ends(socket).await;
    }
    listening.shutdown().await;
}

/// Reads until the server closes the connection, or resets it because it has not read everything.
async fn assert_ends(socket: WebSocketStream<TcpStream>) {
    let mut stream = socket.into_inner();
    let mut rest = Vec::new();
    let ended = stream.read_to_end(&mut rest);
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
    assert!(ended.is_ok(), "the connection stays open");
}

#[tokio::test]
async fn a_shutdown_ends_web_sockets() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let mut socket = open(&listening, WATCH, "").await;
    assert_eq!(next(&mut socket).await, event("ADDED", "a"));
    listening.shutdown().await;
    assert_ends(socket).await;
}
