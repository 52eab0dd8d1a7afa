//! Tests the log messages of a server that listens on a port.
//!
//! Warnings must be logged, and bearer tokens must not be logged.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_informer_apiserver::{Rule, User};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::ask::{builder, request};
use crate::wire::loopback;

/// Captures the log messages of the current thread until dropped.
pub(crate) struct Log {
    text: Text,
    _guard: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn capture(level: LevelFilter) -> Log {
        let text = Text::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(text.clone())
            .finish();
        Log {
            text,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.0.lock()).into_owned()
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Text {
    type Writer = Text;

    fn make_writer(&self) -> Text {
        self.clone()
    }
}

#[tokio::test]
async fn an_unprotected_port_is_logged_as_a_warning() {
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let remote = || builder().allow_remote(true);
    for (server, address, warned) in [
        (remote().build(), everywhere, true),
        (remote().build(), loopback(), false),
        (
            remote().token("t", User::new("u")).build(),
            everywhere,
            false,
        ),
        (
            remote().rules([Rule::allow(["get"], ["*"])]).build(),
            everywhere,
            false,
        ),
    ] {
        let log = Log::capture(LevelFilter::WARN);
        server.listen(address).await.unwrap().shutdown().await;
        let text = log.text();
        assert_eq!(
            text.contains("every client that reaches the port"),
            warned,
            "{text}"
        );
    }
}

#[tokio::test]
async fn no_log_of_either_protocol_contains_a_token() {
    const TOKEN: &str = "very-secret-token";
    let log = Log::capture(LevelFilter::TRACE);
    let server = builder().token(TOKEN, User::new("u")).build();
    let listening = server.listen(loopback()).await.unwrap();
    let address = listening.local_addr();
    let mut tasks = JoinSet::new();
    let ask = |token: &str| {
        let uri = format!("http://{address}/version");
        let request = request("GET", &uri).header("host", "localhost");
        let request = request.header("authorization", format!("Bearer {token}"));
        request.body(Full::<Bytes>::default()).unwrap()
    };

    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    for (token, code) in [(TOKEN, 200), ("very-wrong-token", 401)] {
        assert_eq!(
            sender.send_request(ask(token)).await.unwrap().status(),
            code
        );
    }

    let stream = TcpStream::connect(address).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    for (token, code) in [(TOKEN, 200), ("very-wrong-token", 401)] {
        assert_eq!(
            sender.send_request(ask(token)).await.unwrap().status(),
            code
        );
    }
    listening.shutdown().await;

    let text = log.text();
    assert!(text.contains("h2"), "the protocols write logs");
    for token in [TOKEN, "very-wrong-token"] {
        let line = text.lines().find(|line| line.contains(token));
        assert_eq!(line, None);
    }
}
