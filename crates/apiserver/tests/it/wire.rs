//! Tests the server over TCP: HTTP/1.1 and HTTP/2 connections, shutdown, and the limits for requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use kube_informer_apiserver::{Server, User};

use crate::ask::{builder, get, pod, pods, request};

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) async fn connect(
    address: SocketAddr,
    tasks: &mut JoinSet<()>,
) -> http1::SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    sender
}

fn ask(uri: &str) -> http::Request<Full<Bytes>> {
    request("GET", uri)
        .header("host", "localhost")
        .body(Full::default())
        .unwrap()
}

async fn json(body: hyper::body::Incoming) -> Value {
    serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap()
}

pub(crate) async fn next_event(body: &mut hyper::body::Incoming) -> Value {
    let frame = body.frame().await.expect("an event").unwrap();
    serde_json::from_slice(&frame.into_data().unwrap()).unwrap()
}

#[tokio::test]
async fn one_http1_connection_serves_many_requests_and_chunked_watches() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let mut tasks = JoinSet::new();
    let mut connection = connect(listening.local_addr(), &mut tasks).await;
    for _ in 0..3 {
        let response = connection.send_request(ask("/api/v1/pods")).await.unwrap();
        assert_eq!(
            json(response.into_body()).await["items"][0]["metadata"]["name"],
            "a"
        );
    }
    let watch = ask("/api/v1/pods?watch=1&resourceVersion=1");
    let response = connection.send_request(watch).await.unwrap();
    assert_eq!(
        response.headers()["transfer-encoding"],
        "chunked",
        "headers are sent before any event"
    );
    let mut body = response.into_body();
    server.create(pod("b")).unwrap();
    assert_eq!(
        next_event(&mut body).await["object"]["metadata"]["name"],
        "b"
    );
    server.faults().cut_watches();
    assert!(body.frame().await.is_none(), "a cut is a clean end");
    let again = connection.send_request(ask("/version")).await.unwrap();
    assert_eq!(
        again.status(),
        200,
        "the connection stays open after the watch"
    );
    listening.shutdown().await;
}

#[tokio::test]
async fn a_hundred_watches_share_one_http2_connection() {
    let server = pods(&[]);
    let listening = server.listen(loopback()).await.unwrap();
    let mut tasks = JoinSet::new();
    let stream = TcpStream::connect(listening.local_addr()).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tasks.spawn(async move { drop(connection.await) });
    let uri = format!("http://{}/api/v1/pods?watch=1", listening.local_addr());
    let mut bodies = Vec::new();
    let watch = || request("GET", &uri).body(Full::<Bytes>::default()).unwrap();
    for _ in 0..100 {
        bodies.push(sender.send_request(watch()).await.unwrap().into_body());
    }
    let mut further = Box::pin(sender.send_request(watch()));
    assert!(further.as_mut().now_or_never().is_none());
    server.create(pod("a")).unwrap();
    for body in &mut bodies {
        assert_eq!(next_event(body).await["type"], "ADDED");
    }
    // A stream that the server accepted before these events would have a response now.
    let early = further.as_mut().now_or_never();
    assert!(early.is_none(), "kube-apiserver accepts 100 streams");
    drop(bodies.pop());
    let mut body = further.await.unwrap().into_body();
    assert_eq!(next_event(&mut body).await["type"], "ADDED");
    listening.shutdown().await;
}

#[tokio::test]
async fn a_broken_watch_is_an_error_for_its_reader() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let mut tasks = JoinSet::new();
    let mut connection = connect(listening.local_addr(), &mut tasks).await;
    let response = connection
        .send_request(ask("/api/v1/pods?watch=1&resourceVersion=1"))
        .await
        .unwrap();
    let mut body = response.into_body();
    server.faults().break_watches();
    assert!(body.frame().await.expect("the end is not clean").is_err());
    listening.shutdown().await;
}

#[tokio::test]
async fn a_closed_port_can_be_reused_at_once() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let address = listening.local_addr();
    let mut tasks = JoinSet::new();
    let mut connection = connect(address, &mut tasks).await;
    let response = connection
        .send_request(ask("/api/v1/pods?watch=1&resourceVersion=1"))
        .await
        .unwrap();
    let mut watch = response.into_body();
    listening.shutdown().await;
    assert!(
        watch.frame().await.is_none_or(|frame| frame.is_err()),
        "its watches have ended"
    );
    assert!(
        TcpStream::connect(address).await.is_err(),
        "the port is closed"
    );

    let again = server.listen(address).await.unwrap();
    let mut connection = connect(address, &mut tasks).await;
    let response = connection.send_request(ask("/api/v1/pods")).await.unwrap();
    assert_eq!(
        json(response.into_body()).await["metadata"]["resourceVersion"],
        "1"
    );
    drop(again);
}

#[tokio::test]
async fn a_server_that_refuses_connections_closes_its_port() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let address = listening.local_addr();
    let mut tasks = JoinSet::new();
    let mut kept = connect(address, &mut tasks).await;
    server.faults().refuse_connections(true);
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(
        kept.send_request(ask("/api/v1/pods")).await.is_err(),
        "open connections are refused too"
    );
    server.faults().refuse_connections(false);
    while TcpStream::connect(address).await.is_err() {
        tokio::task::yield_now().await;
    }
    let mut connection = connect(address, &mut tasks).await;
    assert_eq!(
        connection
            .send_request(ask("/api/v1/pods"))
            .await
            .unwrap()
            .status(),
        200
    );
    listening.shutdown().await;
}

#[tokio::test]
async fn only_loopback_addresses_are_allowed_by_default() {
    let everywhere: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let error = pods(&[]).listen(everywhere).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    let allowed = Server::builder().allow_remote(true).build();
    allowed.listen(everywhere).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_port_in_use_is_an_error() {
    let listening = pods(&[]).listen(loopback()).await.unwrap();
    let error = pods(&[]).listen(listening.local_addr()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn no_task_is_left_after_a_shutdown() {
    let server = pods(&["a"]);
    let answered = Arc::new(AtomicUsize::new(0));
    let listening = server.listen(loopback()).await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..5 {
        let mut connection = connect(listening.local_addr(), &mut tasks).await;
        let response = connection
            .send_request(ask("/api/v1/pods?watch=1"))
            .await
            .unwrap();
        let mut body = response.into_body();
        next_event(&mut body).await;
        let answered = Arc::clone(&answered);
        tasks.spawn(async move {
            while body.frame().await.is_some_and(|frame| frame.is_ok()) {}
            answered.fetch_add(1, Ordering::Relaxed);
            drop(connection);
        });
    }
    listening.shutdown().await;
    while tasks.join_next().await.is_some() {}
    assert_eq!(
        answered.load(Ordering::Relaxed),
        5,
        "every peer received its end"
    );
    let handle = tokio::runtime::Handle::current();
    assert_eq!(handle.metrics().num_alive_tasks(), 0);
}

#[tokio::test]
async fn a_body_over_3_mebibytes_receives_413_also_without_a_length() {
    let listening = pods(&[]).listen(loopback()).await.unwrap();
    let mut tasks = JoinSet::new();
    let post = || {
        let request = request("POST", "/api/v1/namespaces/default/configmaps");
        request.header("host", "localhost")
    };
    for (bytes, code) in [
        (3 * 1024 * 1024, 400),
        (3 * 1024 * 1024 + 1, 413),
        (8_000_000, 413),
    ] {
        let mut connection = connect(listening.local_addr(), &mut tasks).await;
        let sized = post().body(Full::from(vec![b'x'; bytes])).unwrap();
        let response = connection.send_request(sized).await.unwrap();
        assert_eq!(response.status(), code, "{bytes} bytes");
        let status = json(response.into_body()).await;
        assert_eq!(status["code"], code);

        let stream = TcpStream::connect(listening.local_addr()).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tasks.spawn(async move { drop(connection.await) });
        let pieces = (0..bytes / 1024)
            .map(|_| Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(&[b'x'; 1024]))));
        let rest = Frame::data(Bytes::from(vec![b'x'; bytes % 1024]));
        let chunks = StreamBody::new(stream::iter(pieces.chain([Ok(rest)])));
        let response = sender
            .send_request(post().body(chunks).unwrap())
            .await
            .unwrap();
        assert_eq!(response.status(), code, "{bytes} bytes in chunks");
    }
    listening.shutdown().await;
}

#[tokio::test]
async fn connections_do_not_inherit_the_token_of_the_listening_handle() {
    let server = builder().token("secret", User::new("jane")).build();
    let handle = server.with_token("secret");
    assert_eq!(get(&handle, "/version").await.code, 200);
    let listening = handle.listen(loopback()).await.unwrap();
    let mut tasks = JoinSet::new();
    let mut connection = connect(listening.local_addr(), &mut tasks).await;
    let response = connection.send_request(ask("/version")).await.unwrap();
    assert_eq!(response.status(), 401);
    listening.shutdown().await;
}
