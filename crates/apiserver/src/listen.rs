//! The server on a TCP port: HTTP/1.1, HTTP/2 with prior knowledge, and both over TLS.
//!
//! Guarantees:
//! - everything works without this file; it adds nothing but the wire;
//! - every task belongs to the [`Listening`]: after its shutdown none is left, and after its drop they end by themselves;
//! - the port can be listened on again at once, with this server or another.

mod connection;
mod connection_stall;
mod kubeconfig;
mod stream_stall;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::access::OwnMachine;
use crate::fault::Connections;
use crate::server::Server;
#[cfg(feature = "tls")]
use crate::tls::Tls;

use connection::{Alive, Door, Security, converse};
pub use kubeconfig::Kubeconfig;

/// Connections at a time: two for each node of a cluster of 10,000, one of them for watches; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 20_000;

/// The pause after a failed accept or bind, so that running out of sockets is not a busy loop.
const PAUSE: Duration = Duration::from_millis(50);

/// A server on a port, until this is shut down or dropped.
#[must_use = "dropping it closes the port"]
pub struct Listening {
    address: SocketAddr,
    security: Security,
    /// The accept loop, which owns the connections' tasks.
    tasks: JoinSet<()>,
    /// Closed when the last task is gone.
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Listens on an address; port 0 is any free one.
    ///
    /// On loopback, a server without tokens answers only requests that name no other host (`Host`) and come from no page of another (`Origin`), as `kubectl proxy` does: a page in a browser is refused with 403.
    /// [`Builder::allow_remote`](crate::Builder::allow_remote) takes that back, for a port that is reached by other names.
    ///
    /// # Errors
    ///
    /// If the address is not a loopback one, unless the builder allowed that; if it can't be bound, because the port is in use, say.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the port again.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Listening> {
        self.listen_with(address, Security::Plain).await
    }

    /// As [`Server::listen`], over TLS; HTTP/2 is offered first (ALPN `h2`), then HTTP/1.1.
    ///
    /// # Errors
    ///
    /// As [`Server::listen`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the port again.
    #[cfg(feature = "tls")]
    pub async fn listen_tls(&self, address: SocketAddr, tls: &Tls) -> io::Result<Listening> {
        self.listen_with(address, Security::Tls(tls.clone())).await
    }

    async fn listen_with(&self, address: SocketAddr, security: Security) -> io::Result<Listening> {
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
        let (alive, ended) = Alive::new();
        let accepting = Accepting {
            // Without the token of this handle, which is not the peers'.
            server: Server::new(Arc::clone(self.shared())),
            address,
            own_machine: self.is_for_own_machine(address, &security),
            security: security.clone(),
            alive,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(accepting.run(listener, self.shared().faults.connections()));
        Ok(Listening {
            address,
            security,
            tasks,
            ended,
        })
    }
}

impl Server {
    /// Marks what comes in where nobody from elsewhere can, unless the builder says that they may.
    fn is_for_own_machine(&self, address: SocketAddr, security: &Security) -> Option<OwnMachine> {
        // The name in a certificate is none that a page could come by.
        let is_plain = matches!(security, Security::Plain);
        let is_own = is_plain && is_loopback(address.ip()) && !self.shared().settings.allow_remote;
        is_own.then_some(OwnMachine)
    }
}

impl Listening {
    /// Where it listens, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig that leads here, without credentials.
    pub fn kubeconfig(&self) -> Kubeconfig {
        Kubeconfig::new(self.address, &self.security)
    }

    /// Closes the port and every connection at once, as the end of the process would, and waits until all tasks are gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes everything too, without waiting.
    pub async fn shutdown(mut self) {
        self.tasks.shutdown().await;
        while self.ended.recv().await.is_some() {}
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

/// The accept loop.
struct Accepting {
    server: Server,
    address: SocketAddr,
    security: Security,
    own_machine: Option<OwnMachine>,
    alive: Alive,
}

impl Accepting {
    /// Accepts connections until it is dropped, and with it they are.
    async fn run(self, listener: TcpListener, mut faults: watch::Receiver<Connections>) {
        let mut connections = JoinSet::new();
        let mut listener = Some(listener);
        loop {
            let refused = faults.borrow_and_update().refused_until();
            if refused.is_some() {
                listener = None;
            } else if listener.is_none() {
                listener = TcpListener::bind(self.address).await.ok();
            }
            let open = connections.len();
            tokio::select! {
                biased;
                changed = faults.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                Some(_) = connections.join_next() => {}
                accepted = next(listener.as_ref(), open, refused) => {
                    if let Some(stream) = accepted {
                        let door = Door {
                            server: self.server.clone(),
                            security: self.security.clone(),
                            own_machine: self.own_machine,
                            alive: self.alive.clone(),
                        };
                        connections.spawn(converse(stream, door));
                    }
                }
            }
        }
    }
}

/// The next connection, or none after a pause.
async fn next(
    listener: Option<&TcpListener>,
    open: usize,
    refused: Option<Instant>,
) -> Option<TcpStream> {
    match listener {
        Some(listener) if open < CONNECTIONS_MAX => match listener.accept().await {
            Ok((stream, _)) => {
                // Events are small and must not wait for an acknowledgement.
                let _ = stream.set_nodelay(true);
                return Some(stream);
            }
            Err(error) => tracing::warn!(%error, "a connection could not be accepted"),
        },
        _ => {}
    }
    let pause = Instant::now() + PAUSE;
    tokio::time::sleep_until(refused.unwrap_or(pause)).await;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_accepted_connection_sends_without_delay() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, connected) =
            tokio::join!(next(Some(&listener), 0, None), TcpStream::connect(address));
        let accepted = accepted.expect("a connection was made");
        assert!(accepted.nodelay().unwrap(), "an event waits for nothing");
        drop(connected);
    }

    #[tokio::test(start_paused = true)]
    async fn no_connection_is_accepted_above_the_bound() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _waiting = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        assert!(next(Some(&listener), CONNECTIONS_MAX, None).await.is_none());
        let below = CONNECTIONS_MAX - 1;
        assert!(
            next(Some(&listener), below, None).await.is_some(),
            "it has waited"
        );
    }
}
