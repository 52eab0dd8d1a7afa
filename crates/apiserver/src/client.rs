//! Creates a `kube_client::Client` that calls the server in process, without a socket.
//!
//! Guarantees: each call of the client is exactly one request, and no failed request is retried.

use kube_client::Client;

use crate::server::Server;

impl Server {
    /// Returns a client that calls this server in process. The default namespace of the client is `default`.
    ///
    /// If this `Server` handle [has a token](Server::with_token), each request of the client contains the
    /// token.
    ///
    /// # Panics
    ///
    /// Panics outside a Tokio runtime, because `kube_client` spawns a task for each client.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }
}
