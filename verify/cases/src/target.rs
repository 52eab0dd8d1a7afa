//! Starts the embedded server or a real kube-apiserver for the test cases, and connects to the server.
//!
//! Guarantees: each server serves the custom kind `Thing` of `cases.example.com/v1`, which is namespaced.

use std::{cell::RefCell, net::Ipv4Addr, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use http::{Request, header::CONTENT_TYPE};
use kube_client::{Client, Config, config::AuthInfo};
use kube_informer_apiserver::{Authorization, Listening, Rule, Server, User};
use kube_informer_realserver::{Binaries, ControlPlane};
use serde_json::{Value, json};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

/// The servers that the cases can test.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Target {
    /// The embedded server of this project
    Embedded,
    /// A real kube-apiserver with etcd (needs Go; the first build takes about 8 minutes)
    Apiserver,
}

/// A running server and a client that sends requests unchanged. Dropping this value ends the server.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// Bearer token of the user `admin`, who is in the group `system:masters`.
    pub(crate) token: String,
    /// Bearer token of the user `guest`, who has no permissions at first.
    guest_token: String,
    /// Configuration without a user, for clients of informers.
    pub(crate) config: Config,
    server: Running,
}

/// Keeps a server running.
enum Running {
    Embedded {
        server: Server,
        /// The rules that cases have added.
        rules: RefCell<Vec<Rule>>,
        _port: Listening,
    },
    Real {
        server: Mutex<Box<ControlPlane>>,
    },
}

/// Required prefix of kube-apiserver's version. The cases contain the responses of this minor version.
const VERSION: &str = "v1.36.";

/// API group of roles.
const RBAC: &str = "rbac.authorization.k8s.io";

/// API group of the custom kind.
const GROUP: &str = "cases.example.com";

/// Maximum time to wait until kube-apiserver serves a new custom kind. Usually, this takes less than 1 s.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

/// The controllers of kube-controller-manager that a case can start.
const CONTROLLERS: [&str; 2] = ["namespace-controller", "garbage-collector-controller"];

/// Maximum time from the start of the controllers until they have deleted the objects of
/// [`deleted_by_controllers`].
const CONTROLLED_WITHIN: Duration = Duration::from_secs(120);

/// Interval between two requests that check whether a server or a controller has completed an operation.
const ASK: Duration = Duration::from_millis(100);

/// Bearer token of the user `admin` of the embedded server.
const TOKEN: &str = "admin-token";

/// Bearer token of the user `guest` of the embedded server.
const GUEST_TOKEN: &str = "guest-token";

/// Bearer token that both servers reject.
const UNKNOWN_TOKEN: &str = "unknown-token";

/// Name of the user without permissions.
const GUEST: &str = "guest";

impl Target {
    pub(crate) async fn start(self) -> Result<Connection> {
        match self {
            Self::Embedded => embedded(false).await,
            Self::Apiserver => real().await,
        }
    }

    /// Starts an embedded server that collects garbage, for cases with controllers.
    ///
    /// Returns `None` for a real server: the server of all cases runs its controllers during such a case.
    pub(crate) async fn start_collecting(self) -> Result<Option<Connection>> {
        match self {
            Self::Embedded => Ok(Some(embedded(true).await?)),
            Self::Apiserver => Ok(None),
        }
    }

    /// Builds kube-controller-manager if this server needs it for controllers.
    pub(crate) fn prepare_controllers(self) -> Result<()> {
        match self {
            Self::Embedded => Ok(()),
            Self::Apiserver => binaries()?.prepare_controllers(),
        }
    }
}

impl Connection {
    /// Returns the bearer token of a user: `admin`, `guest` or `unknown`.
    ///
    /// The embedded server and kube-apiserver reject the token of `unknown`.
    pub(crate) fn token(&self, user: &str) -> Result<&str> {
        match user {
            "admin" => Ok(&self.token),
            GUEST => Ok(&self.guest_token),
            "unknown" => Ok(UNKNOWN_TOKEN),
            _ => bail!("there is no user {user}"),
        }
    }

    /// Makes all revisions before the current one too old for lists and new watches.
    ///
    /// Exception: kube-apiserver still accepts these revisions for watches served from its watch cache.
    ///
    /// All cases use the same server, so this affects every case that runs at this time.
    pub(crate) async fn compact(&self) -> Result<()> {
        match &self.server {
            Running::Embedded { server, .. } => server.faults().expire_history(),
            Running::Real { server } => {
                let address = server.lock().await.etcd_address();
                let url = format!("http://{address}").parse()?;
                let etcd = client(Config::new(url))?;
                let all = json!({"key": "AA==", "range_end": "AA==", "count_only": true});
                let found = post(&etcd, "/v3/kv/range", &all).await?;
                let revision = found["header"]["revision"].clone();
                ensure!(revision.is_string(), "etcd has no revision: {found}");
                let compaction = json!({"revision": revision, "physical": true});
                post(&etcd, "/v3/kv/compaction", &compaction).await?;
            }
        }
        Ok(())
    }

    /// Allows `user` to list and watch `resource` in `namespace`. `resource` is the plural name of a
    /// resource in the core API group, such as `configmaps`.
    pub(crate) async fn allow(&self, user: &str, resource: &str, namespace: &str) -> Result<()> {
        let verbs = ["list", "watch"];
        match &self.server {
            Running::Embedded { server, rules, .. } => {
                let rule = Rule::allow(verbs, [resource]).in_namespaces([namespace]);
                rules.borrow_mut().push(rule.for_user(user));
                server.access().replace_rules(rules.borrow().clone());
            }
            Running::Real { server } => {
                let admin = Client::try_from(server.lock().await.config().await?)?;
                let path = format!("/apis/{RBAC}/v1/namespaces/{namespace}");
                let rule = json!({"apiGroups": [""], "resources": [resource], "verbs": verbs});
                let metadata = json!({"name": format!("{user}-{resource}")});
                let allowed = json!({"metadata": metadata, "rules": [rule]});
                post(&admin, &format!("{path}/roles"), &allowed).await?;
                let binding = json!({
                    "metadata": metadata,
                    "subjects": [{"kind": "User", "name": user}],
                    "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": metadata["name"]},
                });
                post(&admin, &format!("{path}/rolebindings"), &binding).await?;
            }
        }
        Ok(())
    }

    /// Starts the two [`CONTROLLERS`] of a real server, and waits until each has deleted a test object.
    ///
    /// The controllers run until [`stop_controllers`](Self::stop_controllers). For the embedded server, the
    /// method does nothing, because this server deletes the contents of namespaces itself, and
    /// [`Target::start_collecting`] starts one that collects garbage.
    pub(crate) async fn start_controllers(&self) -> Result<()> {
        let Running::Real { server } = &self.server else {
            return Ok(());
        };
        let admin = {
            let mut server = server.lock().await;
            server.start_controllers(&CONTROLLERS)?;
            Client::try_from(server.config().await?)?
        };
        let work = timeout(CONTROLLED_WITHIN, deleted_by_controllers(&admin)).await;
        server.lock().await.check_alive()?;
        work.context("the controllers do nothing")?
    }

    pub(crate) async fn stop_controllers(&self) {
        if let Running::Real { server } = &self.server {
            server.lock().await.stop_controllers();
        }
    }
}

/// Creates a namespace with one object whose owner does not exist.
///
/// Waits until the garbage collector has deleted the object. Then deletes the namespace, and waits until the
/// namespace controller has removed it.
async fn deleted_by_controllers(client: &Client) -> Result<()> {
    let path = "/api/v1/namespaces";
    let namespace = json!({"metadata": {"name": "controllers-work"}});
    post(client, path, &namespace).await?;
    let owner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "uid": "missing"});
    let path = format!("{path}/controllers-work");
    let object = json!({"metadata": {"name": "owned", "ownerReferences": [owner]}});
    post(client, &format!("{path}/configmaps"), &object).await?;
    until_missing(client, &format!("{path}/configmaps/owned")).await?;
    client
        .request_text(Request::delete(&path).body(Vec::new())?)
        .await?;
    until_missing(client, &path).await
}

async fn until_missing(client: &Client, path: &str) -> Result<()> {
    loop {
        let request = Request::get(path).body(Vec::new())?;
        match client.request_text(request).await {
            Ok(_) => sleep(ASK).await,
            Err(kube_client::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

async fn post(client: &Client, path: &str, body: &Value) -> Result<Value> {
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let response = client.request_text(request.body(serde_json::to_vec(body)?)?);
    Ok(serde_json::from_str(&response.await?)?)
}

async fn embedded(collects_garbage: bool) -> Result<Connection> {
    let mut admin = User::new("admin").in_group("system:masters");
    "admin".clone_into(&mut admin.uid);
    let mut guest = User::new(GUEST);
    GUEST.clone_into(&mut guest.uid);
    let server = Server::builder()
        .enforce_namespaces(true)
        .garbage_collection(collects_garbage)
        .token(TOKEN, admin)
        .token(GUEST_TOKEN, guest)
        .authorization(Authorization::Rbac)
        .crd(definition())
        .build();
    let port = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
    let config = Config::new(format!("http://{}", port.local_addr()).parse()?);
    Ok(Connection {
        client: client(config.clone())?,
        token: TOKEN.to_owned(),
        guest_token: GUEST_TOKEN.to_owned(),
        config,
        server: Running::Embedded {
            server,
            rules: RefCell::default(),
            _port: port,
        },
    })
}

fn binaries() -> Result<Binaries> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| harness::report::workspace().join("target"), Into::into);
    Binaries::get(&target)
}

async fn real() -> Result<Connection> {
    let binaries = binaries()?;
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
        client: client(config.clone())?,
        token: server.token().to_owned(),
        guest_token: server.guest_token().to_owned(),
        config,
        server: Running::Real {
            server: Mutex::new(server),
        },
    })
}

/// Creates the definition of the custom kind, and waits until the server serves the kind.
async fn define(client: Client) -> Result<()> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(&client, path, &definition()).await?;
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
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    })
}

/// Returns a client that sends each request once. kube's default client repeats a request after the responses
/// 429, 503 and 504.
fn client(mut config: Config) -> Result<Client> {
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}
