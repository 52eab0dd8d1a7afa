//! Tests of hostile HTTP responses from a TCP server on the loopback interface.
//!
//! Examples are responses that never end, invalid header fields, and redirects.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube_client::Config;
use kube_informer::{
    InitialList, SharedInformer, client,
    client::ListWatch,
    limits::Limits,
    transport::{Class, Error, ListOptions, ListerWatcher},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::setting::{factory_builder, run};

/// A TCP server that sends the start of a response, and then repeats a text forever.
struct Endless {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Endless {
    async fn listen(begin: &str, more: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (begin, count) = (begin.to_owned(), Arc::clone(&connections));
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                open.spawn(answer(stream, begin.clone(), more.repeat(1000)));
            }
        });
        Self {
            address,
            connections,
            _task: task,
        }
    }

    fn client(&self) -> kube_client::Client {
        let uri = format!("http://{}", self.address).parse().unwrap();
        client::connect(Config::new(uri)).unwrap()
    }

    async fn list(&self) -> Error {
        let source = ListWatch::<Pod>::new(self.client());
        let answer = source.list(&ListOptions::default()).await;
        answer.expect_err("it is refused")
    }
}

async fn answer(mut stream: TcpStream, begin: String, more: String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let mut written = stream.write_all(begin.as_bytes()).await;
    while written.is_ok() && !more.is_empty() {
        written = stream.write_all(more.as_bytes()).await;
    }
}

#[tokio::test]
async fn a_response_head_without_end_is_a_connection_error() {
    let server = Endless::listen("HTTP/1.1 200 OK\r\n", "X-More: and more\r\n").await;
    let error = server.list().await;
    assert_eq!(error.class(), Class::Connection, "{error}");
    let server = Endless::listen("HTTP/1.1 200 OK\r\nX-More: ", "and more ").await;
    let error = server.list().await;
    assert_eq!(error.class(), Class::Connection, "{error}");
}

#[tokio::test]
async fn informational_responses_without_end_fail_at_the_time_limit_of_a_list() {
    let server = Endless::listen("", "HTTP/1.1 100 Continue\r\n\r\n").await;
    let limits = Limits {
        list_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let builder = SharedInformer::builder(ListWatch::<Pod>::new(server.client()));
    let informer = run(builder.limits(limits).initial_list(InitialList::List));
    let mut status = informer.pods.status();
    let failed = status.wait_for(|status| status.last_error().is_some());
    let error = failed.await.unwrap().last_error().unwrap().to_string();
    assert_eq!(
        error,
        "the list took longer than 200ms; to allow more time, raise Limits::list_time"
    );
    informer.stop().await;
}

#[tokio::test]
async fn a_retry_after_that_is_not_a_number_of_seconds_is_ignored() {
    let day = 24 * 60 * 60;
    for (asked_for, read) in [
        ("3", Some(3)),
        ("1000000000000000000", Some(1_000_000_000_000_000_000)),
        ("99999999999999999999", None),
        ("-5", None),
        ("1.5", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        (&day.to_string(), Some(day)),
    ] {
        let head = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0";
        let begin = format!("{head}\r\nRetry-After: {asked_for}\r\n\r\n");
        let server = Endless::listen(&begin, "").await;
        let error = server.list().await;
        assert_eq!(error.class(), Class::TooManyRequests, "{error}");
        assert_eq!(error.retry_after(), read.map(Duration::from_secs));
    }
}

/// Returns an HTTP/2 frame without flags.
#[cfg(feature = "http2")]
fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, 0, 0, 0, 0, stream];
    [&head, payload].concat()
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn header_fields_without_end_are_a_connection_error_on_http2() {
    const PREFACE: usize = 24;
    let (settings, headers, continuation) = (4, 1, 9);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let mut task = JoinSet::new();
    task.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; PREFACE]).await.unwrap();
        stream.write_all(&frame(settings, 0, &[])).await.unwrap();
        // The request.
        stream.read_u8().await.unwrap();
        let status = [0x88];
        let mut written = stream.write_all(&frame(headers, 1, &status)).await;
        // A header field without indexing: `a: b`.
        let more = frame(continuation, 1, &[0, 1, b'a', 1, b'b'].repeat(3000));
        while written.is_ok() {
            written = stream.write_all(&more).await;
        }
    });
    let client = client::connect_with_prior_knowledge(Config::new(uri.parse().unwrap())).unwrap();
    let answer = ListWatch::<Pod>::new(client);
    let answer = answer.list(&ListOptions::default()).await;
    let error = answer.expect_err("it is refused");
    assert_eq!(error.class(), Class::Connection, "{error}");
    while task.join_next().await.is_some() {}
}

#[tokio::test]
async fn the_content_type_of_a_response_is_that_of_its_header() {
    for content_type in [
        "application/vnd.kubernetes.protobuf",
        "application/json",
        "",
    ] {
        let field = match content_type {
            "" => String::new(),
            _ => format!("Content-Type: {content_type}\r\n"),
        };
        let head = format!("HTTP/1.1 200 OK\r\n{field}Content-Length: 0\r\n\r\n");
        let server = Endless::listen(&head, "").await;
        let source = ListWatch::<Pod>::new(server.client());
        let response = source.list(&ListOptions::default()).await.unwrap();
        assert_eq!(response.content_type(), content_type);
    }
}

#[tokio::test]
async fn an_error_body_without_end_is_reported_by_its_status_code() {
    let begin = "HTTP/1.1 403 Forbidden\r\n\r\n{\"message\":\"";
    let server = Endless::listen(begin, "no, no, no, ").await;
    let error = server.list().await;
    assert_eq!(error.class(), Class::Forbidden);
    assert_eq!(
        error.to_string(),
        "the server responded with status 403 and no readable message"
    );
}

#[tokio::test]
async fn a_redirect_is_an_error_and_is_not_followed() {
    let elsewhere = Endless::listen("HTTP/1.1 200 OK\r\n\r\n", "").await;
    for code in [301, 302, 303, 307, 308] {
        let begin = format!(
            "HTTP/1.1 {code} Over there\r\nLocation: http://{}/\r\nContent-Length: 0\r\n\r\n",
            elsewhere.address
        );
        let server = Endless::listen(&begin, "").await;
        let error = server.list().await;
        assert_eq!(error.class(), Class::Protocol, "{error}");
        assert_eq!(
            error.to_string(),
            format!("the server responded with status {code} and no readable message")
        );
        assert_eq!(server.connections.load(Ordering::Relaxed), 1);
    }
    assert_eq!(elsewhere.connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_discovery_response_that_exceeds_the_byte_limit_fails() {
    let begin = "HTTP/1.1 200 OK\r\n\r\n{\"items\":[";
    let server = Endless::listen(begin, "{\"metadata\":{\"name\":\"group\"}},").await;
    let factory = factory_builder(server.client()).build();
    let error = factory.discover("widgets").await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        cause,
        "the discovery response is larger than 33554432 bytes"
    );
}
