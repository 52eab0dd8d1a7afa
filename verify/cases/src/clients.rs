//! Provides the Kubernetes client of one informer. A case can change the bearer token, and so the user.
//!
//! Guarantees: each request has the current token. An open watch keeps the token with which it was opened.

use futures_util::{FutureExt as _, future::BoxFuture};
use kube_client::{Client, Config};
use kube_informer::{
    client::{self, ClientSource},
    transport::{Class, Error},
};
use parking_lot::Mutex;

/// A client, which is replaced when the token changes.
pub(crate) struct Clients {
    config: Config,
    state: Mutex<State>,
}

struct State {
    token: String,
    /// `None` until the first request with the token.
    client: Option<Client>,
}

impl Clients {
    pub(crate) fn new(config: Config, token: &str) -> Self {
        let token = token.to_owned();
        let client = None;
        Self {
            config,
            state: Mutex::new(State { token, client }),
        }
    }

    /// Sets the bearer token of all later requests.
    pub(crate) fn set_token(&self, token: &str) {
        *self.state.lock() = State {
            token: token.to_owned(),
            client: None,
        };
    }

    /// Closes the connections that no request uses.
    pub(crate) fn close(&self) {
        self.state.lock().client = None;
    }

    fn current(&self) -> Result<Client, Error> {
        let mut state = self.state.lock();
        if let Some(client) = &state.client {
            return Ok(client.clone());
        }
        let mut config = self.config.clone();
        config.auth_info.token = Some(state.token.clone().into());
        let client = client::connect(config).map_err(|error| {
            Error::new(Class::Invalid, "the client can't be built").with_source(error)
        })?;
        state.client = Some(client.clone());
        Ok(client)
    }
}

impl ClientSource for Clients {
    fn client(&self) -> BoxFuture<'_, Result<Client, Error>> {
        std::future::ready(self.current()).boxed()
    }
}
