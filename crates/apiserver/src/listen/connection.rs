//! One connection: the handshake, the protocol that the peer speaks, and its bounds.
//!
//! Guarantees:
//! - a peer that does not send its first request, or on HTTP/1.1 the head of any, within [`HEADER_TIMEOUT`] is disconnected, and so is an HTTP/1.1 connection idle for as long; the TLS handshake has as long;
//! - a head over [`HEADER_BYTES_MAX`] (HTTP/2), or what hyper buffers of HTTP/1.1 (about 400 KiB), is answered with 431; one far over it ends the connection;
//! - the streams of an HTTP/2 connection are tasks that end with it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tower_service::Service as _;

use crate::access::{Peer, User};
use crate::server::Server;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// HTTP/2 streams per connection: a process with an informer per kind and some to spare, each holding one.
const STREAMS_MAX: u32 = 1_000;

/// How long a peer may take over the head of a request (`ReadHeaderTimeout` in `secure_serving.go`).
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// The longest head of a request on HTTP/2: the longest URL, as much again for a token, and other headers.
const HEADER_BYTES_MAX: u32 = 96 * 1024;

/// What lies between TCP and HTTP.
#[derive(Clone)]
pub(super) enum Security {
    Plain,
    #[cfg(feature = "tls")]
    Tls(Tls),
}

/// Held by every task of a [`super::Listening`]: when the last is dropped, the receiver hears the end.
#[derive(Clone)]
pub(super) struct Alive {
    _until_dropped: mpsc::Sender<()>,
}

/// The requests of one connection.
struct Requests {
    server: Server,
    /// Whom the peer's certificate names.
    peer: Option<Peer>,
    /// Told of every request.
    asked: Arc<Notify>,
}

/// Runs the streams of one HTTP/2 connection, and ends them when it is dropped.
#[derive(Clone)]
struct Streams {
    tasks: Arc<Mutex<JoinSet<()>>>,
    alive: Alive,
}

impl Alive {
    pub(super) fn new() -> (Alive, mpsc::Receiver<()>) {
        let (sender, ended) = mpsc::channel(1);
        let alive = Alive {
            _until_dropped: sender,
        };
        (alive, ended)
    }
}

/// Answers the requests of one connection, until the peer or the listener ends it.
pub(super) async fn converse(server: Server, stream: TcpStream, security: Security, alive: Alive) {
    match security {
        Security::Plain => speak(server, stream, None, alive).await,
        #[cfg(feature = "tls")]
        Security::Tls(tls) => {
            match tokio::time::timeout(HEADER_TIMEOUT, tls.accept(stream)).await {
                Ok(Ok((stream, user))) => speak(server, stream, user, alive).await,
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            }
        }
    }
}

/// Speaks HTTP on a connection.
async fn speak<I>(server: Server, io: I, user: Option<Arc<User>>, alive: Alive)
where
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let streams = Streams {
        tasks: Arc::default(),
        alive,
    };
    let mut builder = auto::Builder::new(streams);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX);
    let asked = Arc::new(Notify::new());
    let requests = Requests {
        server,
        peer: user.map(Peer),
        asked: Arc::clone(&asked),
    };
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), requests));
    // Until a peer's first bytes have told the protocol, no time-out of hyper runs.
    let first_request = tokio::time::timeout(HEADER_TIMEOUT, asked.notified());
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        asked = first_request => match asked {
            // Nothing else is looked at any more when an event wakes this task.
            Ok(()) => connection.await,
            Err(_) => return tracing::debug!("a connection without a request was closed"),
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

impl hyper::service::Service<Request<Incoming>> for Requests {
    type Response = <Server as tower_service::Service<Request<Incoming>>>::Response;
    type Error = <Server as tower_service::Service<Request<Incoming>>>::Error;
    type Future = <Server as tower_service::Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.asked.notify_one();
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(peer.clone());
        }
        self.server.clone().call(request)
    }
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        let alive = self.alive.clone();
        tasks.spawn(async move {
            stream.await;
            drop(alive);
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::time::Instant;

    use super::*;

    /// A connection to a server, and the task that serves it.
    fn connected() -> (DuplexStream, JoinSet<()>) {
        let (client, io) = tokio::io::duplex(1024 * 1024);
        let (alive, _ended) = Alive::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(speak(Server::builder().build(), io, None, alive));
        (client, tasks)
    }

    /// What the server sends before it hangs up, and after how many seconds it does.
    async fn until_hung_up(client: &mut DuplexStream) -> (String, u64) {
        let began = Instant::now();
        let mut answer = Vec::new();
        let hour = Duration::from_secs(3600);
        let reading = tokio::time::timeout(hour, client.read_to_end(&mut answer));
        reading.await.expect("it hangs up some day").unwrap();
        (
            String::from_utf8_lossy(&answer).into_owned(),
            began.elapsed().as_secs(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_sends_a_whole_head_is_disconnected() {
        for start in [
            "",
            "G",
            "PRI",
            "GET /version HTTP/1.1\r\nHost: a\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            let (mut client, _tasks) = connected();
            client.write_all(start.as_bytes()).await.unwrap();
            let (_, seconds) = until_hung_up(&mut client).await;
            assert_eq!(seconds, HEADER_TIMEOUT.as_secs(), "{start:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_sends_its_head_byte_by_byte_gets_no_more_time() {
        let (mut client, _tasks) = connected();
        let (mut read, mut write) = tokio::io::split(&mut client);
        let began = Instant::now();
        let dripping = async {
            for byte in b"GET /version HTTP/1.1\r\nX-Filler: "
                .iter()
                .chain(&[b'x'; 1000])
            {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if write.write_all(&[*byte]).await.is_err() {
                    break;
                }
            }
        };
        let mut answer = Vec::new();
        let ((), read) = tokio::join!(dripping, read.read_to_end(&mut answer));
        read.unwrap();
        let seconds = began.elapsed().as_secs();
        assert!(seconds <= HEADER_TIMEOUT.as_secs() + 2, "after {seconds} s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_no_late_request() {
        let (mut client, _tasks) = connected();
        let watch = "GET /api/v1/pods?watch=1&timeoutSeconds=600 HTTP/1.1\r\nHost: a\r\n\r\n";
        client.write_all(watch.as_bytes()).await.unwrap();
        let (answer, seconds) = until_hung_up(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(seconds >= 600, "ended after {seconds} s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_without_an_end_is_431() {
        let (mut client, _tasks) = connected();
        let head = format!("GET /version HTTP/1.1\r\nX-Filler: {}", "x".repeat(500_000));
        client.write_all(head.as_bytes()).await.unwrap();
        let (answer, seconds) = until_hung_up(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        assert_eq!(seconds, 0);
    }
}
