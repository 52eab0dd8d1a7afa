//! Tests the server over HTTP/2: independent streams on one connection, shutdown, and the limits for
//! requests.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_informer_apiserver::Server;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::ask::{builder, pod, pods, request};
use crate::wire::{loopback, next_event};

/// Initial flow-control window of each HTTP/2 stream, in bytes, as the client announces it.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

struct Client {
    requests: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Client {
    async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        let (requests, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        Client {
            requests,
            address,
            _tasks: tasks,
        }
    }

    async fn get(&mut self, path: &str) -> http::Response<Incoming> {
        let uri = format!("http://{}{path}", self.address);
        let request = request("GET", &uri).body(Full::default()).unwrap();
        self.requests.send_request(request).await.unwrap()
    }
}

#[tokio::test]
async fn a_stalled_reader_does_not_delay_other_streams() {
    let big = (0..2_000).map(|n| pod(&format!("p{n:04}")));
    let server = builder().seed(big).build();
    let revision = server.revision();
    let listening = server.listen(loopback()).await.unwrap();
    let mut client = Client::connect(listening.local_addr()).await;
    // The list and the first watch are longer than the stream's window, and the client does not read them.
    let list = client.get("/api/v1/pods").await;
    let stopped = client.get("/api/v1/pods?watch=1").await;
    let watch = client
        .get(&format!("/api/v1/pods?watch=1&resourceVersion={revision}"))
        .await;
    let mut watch = watch.into_body();
    for n in 0..20 {
        server.create(pod(&format!("new{n}"))).unwrap();
        let event = next_event(&mut watch).await;
        assert_eq!(event["object"]["metadata"]["name"], format!("new{n}"));
    }
    let whole = list.into_body().collect().await.unwrap().to_bytes();
    assert!(
        whole.len() > 3 * STREAM_WINDOW as usize,
        "the list continues"
    );
    assert!(whole.ends_with(b"]}\n"));
    drop(stopped);
    listening.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_ends_all_watches_of_a_connection_and_leaves_no_task() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let mut client = Client::connect(listening.local_addr()).await;
    let mut bodies = Vec::new();
    for _ in 0..100 {
        bodies.push(client.get("/api/v1/pods?watch=1").await.into_body());
    }
    for body in &mut bodies {
        assert_eq!(next_event(body).await["type"], "ADDED");
    }
    listening.shutdown().await;
    for body in &mut bodies {
        let end = body.frame().await;
        assert!(
            end.is_none_or(|frame| frame.is_err()),
            "the shutdown ends in bounded time"
        );
    }
    drop((client, bodies));
    let metrics = tokio::runtime::Handle::current().metrics();
    for _ in 0..1_000 {
        // The tasks of the client end only after some polls.
        tokio::task::yield_now().await;
    }
    assert_eq!(metrics.num_alive_tasks(), 0);
}

#[tokio::test]
async fn a_pending_request_ends_with_its_connection() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let mut client = Client::connect(listening.local_addr()).await;
    // The server delays the response until revision 99, which is never reached.
    let uri = format!("http://{}/api/v1/pods?resourceVersion=99", client.address);
    let request = request("GET", &uri).body(Full::default()).unwrap();
    let waiting = client.requests.send_request(request);
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    listening.shutdown().await;
    assert!(waiting.await.is_err());
    assert_eq!(server.requests().iter().next().unwrap().status, None);
}

#[tokio::test]
async fn a_long_url_is_accepted_and_a_head_over_the_limit_receives_431() {
    let server = pods(&["a"]);
    let listening = server.listen(loopback()).await.unwrap();
    let mut client = Client::connect(listening.local_addr()).await;
    let long = format!("/api/v1/pods?labelSelector=a!%3D{}", "x".repeat(60));
    let padded = format!("{long}&pad={}", "y".repeat(30_000));
    assert_eq!(client.get(&padded).await.status(), 200);
    let uri = format!("http://{}/version", listening.local_addr());
    let header = |bytes: usize| {
        let request = request("GET", &uri).header("x-filler", "z".repeat(bytes));
        request.body(Full::<Bytes>::default()).unwrap()
    };
    let passed = client.requests.send_request(header(60_000)).await.unwrap();
    assert_eq!(passed.status(), 200);
    let refused = client.requests.send_request(header(110_000)).await.unwrap();
    assert_eq!(refused.status(), 431);
    listening.shutdown().await;
}

#[tokio::test]
async fn a_body_over_3_mebibytes_receives_413() {
    let server = Server::builder().build();
    let listening = server.listen(loopback()).await.unwrap();
    let mut client = Client::connect(listening.local_addr()).await;
    let uri = format!(
        "http://{}/api/v1/namespaces/default/configmaps",
        client.address
    );
    for (bytes, code) in [(3 * 1024 * 1024, 400), (3 * 1024 * 1024 + 1, 413)] {
        let body = Full::from(vec![b'x'; bytes]);
        let request = request("POST", &uri).body(body).unwrap();
        let response = client.requests.send_request(request).await.unwrap();
        assert_eq!(response.status(), code, "{bytes} bytes");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status["code"], json!(code));
    }
    listening.shutdown().await;
}
