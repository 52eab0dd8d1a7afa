//! Serves one connection: the TLS handshake, HTTP/1.1 or HTTP/2, and limits for slow or hostile peers.
//!
//! Guarantees:
//! - a connection ends if its peer needs more than [`HEADER_TIMEOUT`] for the TLS handshake or for the head
//!   of the first request;
//! - on HTTP/1.1, this limit applies to the head of every request, so an idle connection ends after
//!   [`HEADER_TIMEOUT`];
//! - a request head over [`HEADER_BYTES_MAX`] on HTTP/2, or over hyper's limit of about 400 KiB on HTTP/1.1,
//!   receives 431 or ends the connection;
//! - an HTTP/2 connection without open streams and without new requests ends after one to two times
//!   [`IDLE_MAX`];
//! - an HTTP/2 connection ends if its peer does not answer a ping within [`PING_TIMEOUT`];
//! - a connection whose peer stops reading ends after
//!   [`STALL_TIMEOUT`](super::connection_stall::STALL_TIMEOUT);
//! - an HTTP/2 stream whose peer stops reading the response is reset ([`stream_stall`](super::stream_stall));
//! - the streams of an HTTP/2 connection are tasks that end with the connection;
//! - a connection that becomes a [WebSocket](super::web_socket) is served by the same task.
//!
//! This module does not limit the following floods, because the h2 crate limits them:
//! - streams that the peer resets repeatedly;
//! - request heads that are split into many frames;
//! - pings and settings frames that require a response.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::TryFutureExt as _;
use futures_util::future::{Either, MapOk};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tower_service::Service as _;

use crate::access::{OwnMachine, Peer, User};
use crate::body::{Body, BoxError};
use crate::server::Server;
#[cfg(feature = "tls")]
use crate::tls::Tls;

use super::connection_stall::StallTimeout;
use super::stream_stall::{ResetOnStall, TrackedBody};
use super::web_socket::{Handshake, WebSocket};

/// Maximum number of concurrent HTTP/2 streams per connection. Each watch needs one stream.
///
/// The value is `MaxConcurrentStreams` in Kubernetes' `secure_serving.go`. A client that needs more streams
/// must open another connection.
const STREAMS_MAX: u32 = 100;

/// Maximum time for the TLS handshake, and maximum time in which the head of a request must arrive.
///
/// On HTTP/1.1, the limit applies to the head of every request. On HTTP/2, it applies only to the first
/// request.
///
/// The value is the `ReadHeaderTimeout` in Kubernetes' `secure_serving.go`.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// Interval between checks for open HTTP/2 streams.
///
/// The connection ends if two consecutive checks find no open stream, and no request arrives between them.
///
/// The value is the `IdleTimeout` in Kubernetes' `secure_serving.go`.
const IDLE_MAX: Duration = Duration::from_secs(90);

/// Interval between HTTP/2 pings, as in client-go (`ReadIdleTimeout`).
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum size in bytes of an HTTP/2 request head.
///
/// The value is the sum of 32 KiB for the URL, 32 KiB for a bearer token and 32 KiB for all other headers.
/// The parts have no limits of their own.
const HEADER_BYTES_MAX: u32 = 96 * 1024;

/// Future that completes with the server's response to one request.
type Answering = <Server as tower_service::Service<Request<Incoming>>>::Future;

/// Future that completes with the response to a request for a WebSocket.
type Upgrading = Pin<Box<dyn Future<Output = Result<Response<TrackedBody>, BoxError>> + Send>>;

/// Transport of a listener's connections: plain TCP or TLS.
#[derive(Clone)]
pub(super) enum Security {
    Plain,
    #[cfg(feature = "tls")]
    Tls(Tls),
}

/// Settings shared by all connections of a listener.
pub(super) struct Settings {
    pub(super) server: Server,
    pub(super) security: Security,
    pub(super) own_machine: Option<OwnMachine>,
    pub(super) alive: Alive,
}

/// Token of a running task; [`super::Listening::shutdown`] waits until all tokens are dropped.
#[derive(Clone)]
pub(super) struct Alive {
    _until_dropped: mpsc::Sender<()>,
}

/// hyper service that passes the requests of one connection to the server.
struct Requests {
    server: Server,
    /// User of the peer's client certificate, if the peer sent one.
    peer: Option<Peer>,
    /// Request extension that marks each request of a loopback connection without TLS.
    own_machine: Option<OwnMachine>,
    /// Notified by each request that arrives on the connection.
    asked: Arc<Notify>,
    /// What the connection becomes after its last response.
    web_socket: Arc<Mutex<Option<WebSocket>>>,
}

/// Executor that spawns the tasks of one HTTP/2 connection's streams.
///
/// When the last clone of the executor is dropped, the tasks are aborted.
#[derive(Clone)]
struct Streams {
    tasks: Arc<Mutex<JoinSet<()>>>,
    /// Whether any stream was ever opened on the connection.
    any: Arc<AtomicBool>,
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

/// Performs the TLS handshake, if TLS is configured, and serves the connection until it ends.
pub(super) async fn accept(stream: TcpStream, settings: Settings) {
    match settings.security.clone() {
        Security::Plain => serve_http(stream, None, settings).await,
        #[cfg(feature = "tls")]
        Security::Tls(tls) => {
            match tokio::time::timeout(HEADER_TIMEOUT, tls.accept(stream)).await {
                Ok(Ok((stream, user))) => serve_http(stream, user, settings).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake timed out"),
            }
        }
    }
}

/// Serves HTTP/1.1 or HTTP/2 on a connection; `user` is the client certificate's user.
async fn serve_http<I>(io: I, user: Option<Arc<User>>, settings: Settings)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let streams = Streams {
        tasks: Arc::default(),
        any: Arc::default(),
        alive: settings.alive,
    };
    let mut builder = auto::Builder::new(streams.clone());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX);
    let asked = Arc::new(Notify::new());
    let requests = Requests {
        server: settings.server,
        peer: user.map(Peer),
        own_machine: settings.own_machine,
        asked: Arc::clone(&asked),
        web_socket: Arc::default(),
    };
    let web_socket = Arc::clone(&requests.web_socket);
    let io = TokioIo::new(StallTimeout::new(io));
    let mut connection = Box::pin(builder.serve_connection_with_upgrades(io, requests));
    // hyper's timeouts do not run until the peer's first bytes identify the protocol.
    let mut wait = HEADER_TIMEOUT;
    let mut quiet_looks = 0;
    let ended = loop {
        let next_request = tokio::time::timeout(wait, asked.notified());
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            asked = next_request => match asked {
                // On HTTP/1.1 nothing else needs to be checked when an event wakes this task.
                Ok(()) if streams.are_none() => break connection.as_mut().await,
                Ok(()) => (wait, quiet_looks) = (IDLE_MAX, 0),
                Err(_) if streams.are_busy() => quiet_looks = 0,
                Err(_) if streams.are_none() || quiet_looks == 2 => {
                    return tracing::debug!("closed a connection without a request");
                }
                Err(_) => {
                    // A stream that was open at the first check may have ended just before it.
                    quiet_looks += 1;
                    if quiet_looks == 2 {
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
        }
    };
    if let Err(error) = ended {
        return tracing::debug!(%error, "connection ended");
    }
    // A connection that has ended holds the promise of an upgrade, for which the WebSocket would wait.
    drop(connection);
    let web_socket = web_socket.lock().take();
    if let Some(web_socket) = web_socket {
        web_socket.run().await;
    }
}

impl Streams {
    /// Returns whether no HTTP/2 stream was ever opened on the connection.
    fn are_none(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// Returns whether any HTTP/2 stream of the connection is open.
    fn are_busy(&self) -> bool {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        !tasks.is_empty()
    }
}

impl hyper::service::Service<Request<Incoming>> for Requests {
    type Response = Response<TrackedBody>;
    type Error = BoxError;
    type Future = Either<MapOk<Answering, fn(Response<Body>) -> Response<TrackedBody>>, Upgrading>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.asked.notify_one();
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(peer.clone());
        }
        if let Some(own_machine) = self.own_machine {
            request.extensions_mut().insert(own_machine);
        }
        let tracked = |response: Response<Body>| response.map(TrackedBody::new);
        let Some(handshake) = Handshake::of(&mut request) else {
            let tracked = tracked as fn(Response<Body>) -> Response<TrackedBody>;
            return Either::Left(self.server.clone().call(request).map_ok(tracked));
        };
        let answering = self.server.clone().call(request);
        let slot = Arc::clone(&self.web_socket);
        Either::Right(Box::pin(async move {
            let (response, web_socket) = handshake.answer(answering.await?);
            *slot.lock() = web_socket;
            Ok(tracked(response))
        }))
    }
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.any.store(true, Ordering::Relaxed);
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        let alive = self.alive.clone();
        tasks.spawn(async move {
            ResetOnStall::new(stream).await;
            drop(alive);
        });
    }
}

#[cfg(test)]
mod tests;
