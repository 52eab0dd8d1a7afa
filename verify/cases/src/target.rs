//! Starts the servers that run the cases, and connects to them.

use std::net::Ipv4Addr;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use kube_client::{Client, Config};
use kube_informer_apiserver::{Listening, Server, User};
use kube_informer_realserver::{Binaries, ControlPlane};

/// The servers that can run the cases.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Target {
    /// The embedded server of this project
    Embedded,
    /// A real kube-apiserver with etcd (needs Go; the first build takes about 8 minutes)
    Apiserver,
}

/// A running server. Dropping it ends the server.
pub(crate) enum Running {
    Embedded,
    Real(Box<ControlPlane>),
}

/// A connection to a server, which sends requests as they are.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// Bearer token of the user `admin`, who is in the group `system:masters`.
    pub(crate) token: String,
    /// Keeps the port of an embedded server open.
    _listening: Option<Listening>,
}

/// Start of the version of kube-apiserver whose responses the cases contain.
const VERSION: &str = "v1.36.";

/// Bearer token of the embedded server.
const TOKEN: &str = "admin-token";

impl Target {
    pub(crate) async fn start(self) -> Result<Running> {
        match self {
            Self::Embedded => Ok(Running::Embedded),
            Self::Apiserver => {
                let target = std::env::var_os("CARGO_TARGET_DIR")
                    .map_or_else(|| harness::report::workspace().join("target"), Into::into);
                let binaries = Binaries::get(&target)?;
                let (_, version) = &binaries.versions()[0];
                ensure!(
                    version.starts_with(VERSION),
                    "the cases have the responses of kube-apiserver {VERSION}x, and this is {version}"
                );
                let started = ControlPlane::start(&binaries).await?;
                Ok(Running::Real(Box::new(started)))
            }
        }
    }
}

impl Running {
    /// Connects to the server. For the embedded server, each connection has a new, empty server.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        match self {
            Self::Embedded => {
                let mut admin = User::new("admin");
                admin.groups.push("system:masters".to_owned());
                let server = Server::builder()
                    .enforce_namespaces(true)
                    .token(TOKEN, admin)
                    .build();
                let listening = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
                let url = format!("http://{}", listening.local_addr()).parse()?;
                Ok(Connection {
                    client: client(Config::new(url))?,
                    token: TOKEN.to_owned(),
                    _listening: Some(listening),
                })
            }
            Self::Real(server) => {
                let mut config = server.config().await?;
                // Each request has its own Authorization header.
                config.auth_info = kube_client::config::AuthInfo::default();
                Ok(Connection {
                    client: client(config)?,
                    token: server.token().to_owned(),
                    _listening: None,
                })
            }
        }
    }
}

/// Returns a client that sends each request once. By default it repeats a request after 429, 503 and 504.
fn client(mut config: Config) -> Result<Client> {
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}
