//! Serves a [`Server`] on a TCP port: HTTP/1.1, HTTP/2 with prior knowledge, and both over TLS.
//!
//! Guarantees:
//! - the other modules do not depend on this module;
//! - [`Listening`] owns every task of the port: [`Listening::shutdown`] waits until all tasks have ended, and
//!   dropping the value ends the tasks without waiting;
//! - after the shutdown the port can be bound again immediately.

mod connection;
mod connection_stall;
mod kubeconfig;
mod stream_stall;
mod web_socket;

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

use connection::{Alive, Security, Settings, accept};
pub use kubeconfig::Kubeconfig;

/// Maximum number of open connections per port: two for each of 10,000 nodes.
const CONNECTIONS_MAX: usize = 20_000;

/// Pause after a failure to accept a connection or to bind the port.
const PAUSE: Duration = Duration::from_millis(50);

/// TCP port on which a server listens until this value is shut down or dropped.
#[must_use = "dropping it closes the port"]
pub struct Listening {
    address: SocketAddr,
    security: Security,
    /// The task of the accept loop. If this task is aborted, the tasks of the connections are aborted too.
    tasks: JoinSet<()>,
    /// Receives no messages, and closes when the last task of the port has ended.
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Listens on an address. If the port is 0, the operating system selects a free port.
    ///
    /// On a loopback address, a server without tokens protects itself from web pages in a browser: like
    /// `kubectl proxy`, it responds with 403 if the header `Host` or `Origin` names another machine.
    /// [`Builder::allow_remote`](crate::Builder::allow_remote) disables this check.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is not a loopback address and the builder does not allow remote
    /// clients.
    /// Returns an error if the address can't be bound, for example because the port is in use.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the port.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Listening> {
        self.listen_with(address, Security::Plain).await
    }

    /// Listens on an address like [`Server::listen`], but over TLS. ALPN prefers HTTP/2 to HTTP/1.1.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Server::listen`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the port.
    #[cfg(feature = "tls")]
    pub async fn listen_tls(&self, address: SocketAddr, tls: &Tls) -> io::Result<Listening> {
        self.listen_with(address, Security::Tls(tls.clone())).await
    }

    async fn listen_with(&self, address: SocketAddr, security: Security) -> io::Result<Listening> {
        if !is_loopback(address.ip()) {
            if !self.shared().settings.allow_remote {
                let message = format!(
                    "{address} is not a loopback address; to listen on it, set allow_remote"
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
            if self.shared().gate.is_open() {
                tracing::warn!(%address, "every client that reaches the port may do everything: no tokens or rules are configured");
            }
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (alive, ended) = Alive::new();
        let accepting = Accepting {
            // Without the token of this handle, which does not apply to peers.
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
    /// Returns [`OwnMachine`] for a loopback address without TLS, unless `allow_remote` is set.
    ///
    /// Unless the server requires a token, such a port rejects requests from web pages of other hosts.
    fn is_for_own_machine(&self, address: SocketAddr, security: &Security) -> Option<OwnMachine> {
        // A web page can't send requests for the name in a certificate.
        let is_plain = matches!(security, Security::Plain);
        let is_own = is_plain && is_loopback(address.ip()) && !self.shared().settings.allow_remote;
        is_own.then_some(OwnMachine)
    }
}

impl Listening {
    /// Returns the address and the port on which the server listens.
    ///
    /// If port 0 was requested, the returned port is the one that the operating system selected.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns a kubeconfig with which clients connect to this port.
    ///
    /// The kubeconfig contains no credentials.
    pub fn kubeconfig(&self) -> Kubeconfig {
        Kubeconfig::new(self.address, &self.security)
    }

    /// Closes the port and every connection immediately, and waits until all tasks have ended.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the port and the connections are closed, but the tasks may end later.
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

/// State of the accept loop.
struct Accepting {
    server: Server,
    address: SocketAddr,
    security: Security,
    own_machine: Option<OwnMachine>,
    alive: Alive,
}

impl Accepting {
    /// Accepts and serves connections until this future is dropped, which closes the connections.
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
                        let settings = Settings {
                            server: self.server.clone(),
                            security: self.security.clone(),
                            own_machine: self.own_machine,
                            alive: self.alive.clone(),
                        };
                        connections.spawn(accept(stream, settings));
                    }
                }
            }
        }
    }
}

/// Accepts a connection, or returns `None` after a pause if no connection can be accepted.
///
/// The pause ends at `refused`, the end of a fault that refuses connections. Without such a fault, the pause
/// lasts for [`PAUSE`].
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
            Err(error) => tracing::warn!(%error, "failed to accept a connection"),
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
        assert!(
            accepted.nodelay().unwrap(),
            "small segments are sent without delay"
        );
        drop(connected);
    }

    #[tokio::test(start_paused = true)]
    async fn no_connection_is_accepted_above_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _waiting = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        assert!(next(Some(&listener), CONNECTIONS_MAX, None).await.is_none());
        let below = CONNECTIONS_MAX - 1;
        assert!(
            next(Some(&listener), below, None).await.is_some(),
            "the waiting connection is accepted"
        );
    }
}
