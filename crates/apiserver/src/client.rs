//! A `kube_client::Client` on the server, without a socket.
//!
//! Guarantees: the client has none of kube's own layers, so each of its calls is one request, and no refusal is retried unseen.

use kube_client::Client;

use crate::server::Server;

impl Server {
    /// A client of this server, in namespace `default`; it carries the token of this handle, if it [has one](Server::with_token).
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime: the client spawns the task of its buffer.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }
}
