//! A `kube_client::Client` for the server, without a socket.
//!
//! Guarantees: the client has none of kube's layers, so each call is one request, and no error is retried.

use kube_client::Client;

use crate::server::Server;

impl Server {
    /// Returns a client of this server in namespace `default`, with the token of this handle if it [has
    /// one](Server::with_token).
    ///
    /// # Panics
    ///
    /// Panics outside a Tokio runtime: the client spawns the task of its buffer.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }
}
