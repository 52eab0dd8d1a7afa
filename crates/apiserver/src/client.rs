//! Creates a `kube_client::Client` for the server, without a socket.
//!
//! Guarantees: the client has none of kube's layers, so each call is one request, and no error is retried.

use kube_client::Client;

use crate::server::Server;

impl Server {
    /// Returns a client of this server whose default namespace is `default`.
    ///
    /// The client sends the token of this handle, if the handle [has one](Server::with_token).
    ///
    /// # Panics
    ///
    /// Panics outside a Tokio runtime, because the client spawns a task for its buffer.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }
}
