//! The same over real TCP, where heads, redirections and discovery are.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use k8s_openapi::api::core::v1::Pod;
use kube_client::Config;
use kube_informer::{
    SharedInformerFactory, client,
    client::ListWatch,
    transport::{Class, Error, ListOptions, ListerWatcher},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Says the same to every connection, and then something else for as long as anybody reads it.
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
        answer.err().expect("it is refused")
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
async fn a_head_without_end_is_a_failed_connection() {
    let server = Endless::listen("HTTP/1.1 200 OK\r\n", "X-More: and more\r\n").await;
    let error = server.list().await;
    assert_eq!(error.class(), Class::Connection, "{error}");
    let server = Endless::listen("HTTP/1.1 200 OK\r\nX-More: ", "and more ").await;
    let error = server.list().await;
    assert_eq!(error.class(), Class::Connection, "{error}");
}

#[tokio::test]
async fn a_refusal_without_end_says_what_its_status_code_says() {
    let begin = "HTTP/1.1 403 Forbidden\r\n\r\n{\"message\":\"";
    let server = Endless::listen(begin, "no, no, no, ").await;
    let error = server.list().await;
    assert_eq!(error.class(), Class::Forbidden);
    assert_eq!(error.to_string(), "the server answered 403");
}

#[tokio::test]
async fn a_redirection_is_a_failure_and_is_not_followed() {
    let elsewhere = Endless::listen("HTTP/1.1 200 OK\r\n\r\n", "").await;
    for code in [301, 302, 303, 307, 308] {
        let begin = format!(
            "HTTP/1.1 {code} Over there\r\nLocation: http://{}/\r\nContent-Length: 0\r\n\r\n",
            elsewhere.address
        );
        let server = Endless::listen(&begin, "").await;
        let error = server.list().await;
        assert_eq!(error.class(), Class::Protocol, "{error}");
        assert_eq!(error.to_string(), format!("the server answered {code}"));
        assert_eq!(server.connections.load(Ordering::Relaxed), 1);
    }
    assert_eq!(elsewhere.connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn discovery_without_end_is_given_up_at_a_number_of_bytes() {
    let begin = "HTTP/1.1 200 OK\r\n\r\n{\"items\":[";
    let server = Endless::listen(begin, "{\"metadata\":{\"name\":\"group\"}},").await;
    let factory = SharedInformerFactory::builder(server.client()).build();
    let error = factory.discover("widgets").await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        cause,
        "the answer to discovery is larger than 33554432 bytes"
    );
}
