//! Starts the servers that run the cases, and connects to them.
//!
//! Guarantees: each server serves the custom kind `Thing` of `cases.example.com/v1`, which is namespaced.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use http::Request;
use kube_client::{Client, Config, config::AuthInfo};
use kube_informer_apiserver::{Kind, Listening, Scope, Server, User};
use kube_informer_realserver::{Binaries, ControlPlane};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// The servers that can run the cases.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Target {
    /// The embedded server of this project
    Embedded,
    /// A real kube-apiserver with etcd (needs Go; the first build takes about 8 minutes)
    Apiserver,
}

/// A running server and a client, which sends requests as they are. Dropping it ends the server.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// Bearer token of the user `admin`, who is in the group `system:masters`.
    pub(crate) token: String,
    _server: Running,
}

/// Keeps a server running.
enum Running {
    Embedded { _port: Listening },
    Real { _server: Box<ControlPlane> },
}

/// Start of the version of kube-apiserver whose responses the cases contain.
const VERSION: &str = "v1.36.";

/// API group of the custom kind.
const GROUP: &str = "cases.example.com";

/// Time within which kube-apiserver serves a new custom kind. It usually takes less than 1 s.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

/// Interval between two requests for the custom kind.
const ASK: Duration = Duration::from_millis(100);

/// Bearer token of the embedded server.
const TOKEN: &str = "admin-token";

impl Target {
    /// Starts the server and connects to it.
    pub(crate) async fn start(self) -> Result<Connection> {
        match self {
            Self::Embedded => embedded().await,
            Self::Apiserver => real().await,
        }
    }
}

async fn embedded() -> Result<Connection> {
    let admin = User::new("admin").in_group("system:masters");
    let server = Server::builder()
        .enforce_namespaces(true)
        .token(TOKEN, admin)
        .kind(Kind::custom(
            GROUP,
            "v1",
            "Thing",
            "things",
            Scope::Namespaced,
        ))
        .build();
    let port = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
    let url = format!("http://{}", port.local_addr()).parse()?;
    Ok(Connection {
        client: client(Config::new(url))?,
        token: TOKEN.to_owned(),
        _server: Running::Embedded { _port: port },
    })
}

async fn real() -> Result<Connection> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| harness::report::workspace().join("target"), Into::into);
    let binaries = Binaries::get(&target)?;
    let (_, version) = &binaries.versions()[0];
    ensure!(
        version.starts_with(VERSION),
        "the cases have the responses of kube-apiserver {VERSION}x, and this is {version}"
    );
    let server = Box::new(ControlPlane::start(&binaries).await?);
    let mut config = server.config().await?;
    define(Client::try_from(config.clone())?).await?;
    // Each request has its own Authorization header.
    config.auth_info = AuthInfo::default();
    Ok(Connection {
        client: client(config)?,
        token: server.token().to_owned(),
        _server: Running::Real { _server: server },
    })
}

/// Creates the definition of the custom kind, and waits until the server serves the kind.
async fn define(client: Client) -> Result<()> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = Request::post(path).body(serde_json::to_vec(&definition())?)?;
    client.request_text(request).await?;
    let served = async {
        loop {
            let request = Request::get(format!("/apis/{GROUP}/v1/things")).body(Vec::new())?;
            if client.request_text(request).await.is_ok() {
                return anyhow::Ok(());
            }
            sleep(ASK).await;
        }
    };
    let served = timeout(SERVED_WITHIN, served).await;
    served.context("the custom kind is not served in time")?
}

/// Returns the definition of the custom kind.
///
/// Its objects have a status, and may have any field. The field `spec.color` is a string, and selectable.
fn definition() -> Value {
    let any = "x-kubernetes-preserve-unknown-fields";
    let color = json!({"type": "object", any: true, "properties": {"color": {"type": "string"}}});
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", any: true, "properties": {"spec": color}}},
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": ".spec.color"}],
    });
    json!({
        "metadata": {"name": format!("things.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    })
}

/// Returns a client that sends each request once. By default it repeats a request after 429, 503 and 504.
fn client(mut config: Config) -> Result<Client> {
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}
