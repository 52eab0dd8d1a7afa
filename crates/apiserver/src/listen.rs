//! The server on a TCP port: HTTP/1.1, and HTTP/2 with prior knowledge.
//!
//! Guarantees:
//! - everything works without this file; it adds nothing but the wire;
//! - every task belongs to the [`Listening`]: none is left after its shutdown or drop;
//! - the port can be listened on again at once, with this server or another.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::fault::Orders;
use crate::server::Server;

/// Connections at a time; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 10_000;

/// HTTP/2 streams per connection: a process with an informer per kind and some to spare, each holding one.
const STREAMS_MAX: u32 = 1_000;

/// How long a client may take over the head of an HTTP/1.1 request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after a failed accept or bind, so that running out of sockets is not a busy loop.
const PAUSE: Duration = Duration::from_millis(50);

/// A server on a port, until this is shut down or dropped.
#[must_use = "dropping it closes the port"]
pub struct Listening {
    address: SocketAddr,
    /// The accept loop, which owns the connections' tasks.
    tasks: JoinSet<()>,
}

impl Server {
    /// Listens on an address; port 0 is any free one.
    ///
    /// # Errors
    ///
    /// If the address is not a loopback one, unless the builder allowed that; if it can't be bound, because the port is in use, say.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the port again.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Listening> {
        if !is_loopback(address.ip()) {
            if !self.shared().settings.allow_remote {
                let message =
                    format!("{address} is not a loopback address; allow_remote allows it");
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
            if self.shared().gate.is_open() {
                tracing::warn!(%address, "whoever reaches the port may do everything: there are neither tokens nor rules");
            }
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        let orders = self.shared().faults.orders();
        // Without the token of this handle, which is not the peers'.
        let server = Server::new(Arc::clone(self.shared()));
        tasks.spawn(accept(server, listener, address, orders));
        Ok(Listening { address, tasks })
    }
}

impl Listening {
    /// Where it listens, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and every connection at once, as the end of the process would, and waits until all tasks are gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes everything too, without waiting.
    pub async fn shutdown(mut self) {
        self.tasks.shutdown().await;
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Accepts connections until it is dropped, and with it they are.
async fn accept(
    server: Server,
    listener: TcpListener,
    address: SocketAddr,
    mut orders: watch::Receiver<Orders>,
) {
    let mut connections = JoinSet::new();
    let mut listener = Some(listener);
    loop {
        let refusing = orders.borrow_and_update().refusing;
        if refusing {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
        }
        let open = connections.len();
        tokio::select! {
            biased;
            changed = orders.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            Some(_) = connections.join_next() => {}
            accepted = next(listener.as_ref(), open, refusing) => {
                if let Some(stream) = accepted {
                    connections.spawn(converse(server.clone(), stream));
                }
            }
        }
    }
}

/// The next connection, or none after a pause.
async fn next(listener: Option<&TcpListener>, open: usize, refusing: bool) -> Option<TcpStream> {
    match listener {
        Some(listener) if open < CONNECTIONS_MAX => match listener.accept().await {
            Ok((stream, _)) => return Some(stream),
            Err(error) => tracing::warn!(%error, "a connection could not be accepted"),
        },
        None if refusing => return std::future::pending().await,
        _ => {}
    }
    tokio::time::sleep(PAUSE).await;
    None
}

/// Answers the requests of one connection.
async fn converse(server: Server, stream: TcpStream) {
    // Events are small and must not wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX);
    let service = TowerToHyperService::new(server);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended");
    }
}
