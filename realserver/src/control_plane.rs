//! Starts and ends a control plane: a kube-apiserver, and the etcd in which
//! kube-apiserver stores objects.
//!
//! Can also restart kube-apiserver alone. Does not build the executables. The module `failures` kills and
//! replaces the processes.

use std::{
    fmt, fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use kube_client::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::time::{Instant, sleep};

use crate::{binaries::Binaries, process::Process};

/// Maximum time to wait until a started kube-apiserver is ready. The start usually takes 15 s on 2 busy
/// cores.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Interval between two readiness probes of kube-apiserver.
const ASK: Duration = Duration::from_millis(100);

/// Folder of etcd's data, in the folder of the control plane.
pub(crate) const DATA: &str = "data";

/// A running kube-apiserver with its own etcd. Dropping this value ends all processes and removes their data.
#[derive(Debug)]
pub struct ControlPlane {
    // The fields are dropped in this order: the processes end before their folder is removed.
    pub(crate) api_server: Process,
    pub(crate) second: Option<Process>,
    pub(crate) controllers: Option<Process>,
    pub(crate) etcd: Process,
    pub(crate) folder: Folder,
    pub(crate) binaries: Binaries,
    pub(crate) addresses: Addresses,
    /// Additional flags of kube-apiserver.
    pub(crate) flags: Vec<String>,
    token: Token,
    guest_token: Token,
}

/// A bearer token, which is not printed.
struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not printed)")
    }
}

/// The loopback ports of one control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) api_server: u16,
    /// Port of a second kube-apiserver, which only the module `failures` starts.
    pub(crate) second: u16,
    pub(crate) etcd: u16,
    etcd_peers: u16,
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver, and returns when `/readyz` responds with 200.
    ///
    /// # Errors
    /// Returns an error if a process can't be started.
    ///
    /// Also returns an error if a process ends, or if kube-apiserver is not ready within two minutes. This
    /// error contains the last line of the log of the process that ended or is not ready.
    pub async fn start(binaries: &Binaries) -> Result<Self> {
        Self::start_with(binaries, &[]).await
    }

    /// Starts etcd and kube-apiserver as [`start`](Self::start) does, and appends `flags` to the command line
    /// of kube-apiserver.
    ///
    /// A flag in `flags` replaces an earlier value of the same flag. If the flag accepts a list, its values
    /// are instead added to the earlier values.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`start`](Self::start). kube-apiserver ends if it does not know
    /// a flag.
    pub async fn start_with(binaries: &Binaries, flags: &[String]) -> Result<Self> {
        let folder = Folder::make()?;
        let addresses = Addresses::free()?;
        let [token, guest_token] = write_access(&folder.0, addresses.api_server)?;
        let etcd = start_etcd(binaries, &folder.0, addresses)?;
        let api_server = start_api_server(binaries, &folder.0, addresses, flags)?;
        let mut started = Self {
            api_server,
            second: None,
            controllers: None,
            etcd,
            folder,
            binaries: binaries.clone(),
            addresses,
            flags: flags.to_vec(),
            token: Token(token),
            guest_token: Token(guest_token),
        };
        started.ready().await?;
        Ok(started)
    }

    /// Stops kube-apiserver and starts a new process with the same data, address, certificate and token.
    ///
    /// The watch cache of the new process is empty at first.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`start`](Self::start).
    pub async fn restart_api_server(&mut self) -> Result<()> {
        self.kill_api_server();
        self.start_api_server().await
    }

    /// Starts kube-controller-manager with the controllers `names`, such as `namespace-controller`.
    ///
    /// If a kube-controller-manager already runs, this method kills it first. The name `*` selects all
    /// controllers that are enabled by default, and `-NAME` disables the controller `NAME`.
    ///
    /// This method does not wait until the controllers work, which takes some seconds. If
    /// kube-controller-manager is not built yet, this method builds it and blocks the thread meanwhile. To
    /// build it in advance, call [`Binaries::prepare_controllers`].
    ///
    /// # Errors
    /// Returns an error if kube-controller-manager can't be built or started. If a name is unknown,
    /// kube-controller-manager ends after its start, and [`check_alive`](Self::check_alive) returns an error.
    pub fn start_controllers(&mut self, names: &[impl AsRef<str>]) -> Result<()> {
        self.stop_controllers();
        let binary = self.binaries.controller_manager()?;
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig().display()),
            format!("--controllers={}", names.join(",")),
            // It serves only metrics and its health.
            "--secure-port=0".to_owned(),
            // One process runs, so there is nothing to elect.
            "--leader-elect=false".to_owned(),
            // `serviceaccount-token-controller` signs with the key that kube-apiserver verifies.
            "--service-account-private-key-file=certs/apiserver.key".to_owned(),
            "--root-ca-file=certs/apiserver.crt".to_owned(),
        ];
        let process = Process::start(
            "kube-controller-manager",
            &binary,
            &arguments,
            &self.folder.0,
        )?;
        self.controllers = Some(process);
        Ok(())
    }

    /// Kills kube-controller-manager, if it runs.
    pub fn stop_controllers(&mut self) {
        self.controllers = None;
    }

    /// Returns the path of the kubeconfig for kube-apiserver. The user of the kubeconfig is in the group
    /// `system:masters`.
    pub fn kubeconfig(&self) -> PathBuf {
        kubeconfig(&self.folder.0)
    }

    /// Returns the client configuration that the [`kubeconfig`](Self::kubeconfig) contains.
    ///
    /// # Errors
    /// Returns an error if the kubeconfig, or the certificate file that the kubeconfig names, can't be read.
    pub async fn config(&self) -> Result<Config> {
        let file = Kubeconfig::read_from(self.kubeconfig())?;
        Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
    }

    /// Returns the bearer token in the [`kubeconfig`](Self::kubeconfig).
    pub fn token(&self) -> &str {
        &self.token.0
    }

    /// Returns the bearer token of the user `guest`, who has only the permissions of every authenticated
    /// user.
    pub fn guest_token(&self) -> &str {
        &self.guest_token.0
    }

    /// Returns the address at which etcd listens for clients, without TLS.
    pub fn etcd_address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.addresses.etcd).into()
    }

    /// Returns the process id of kube-apiserver.
    pub fn api_server_id(&self) -> u32 {
        self.api_server.id()
    }

    /// Returns the process id of etcd.
    pub fn etcd_id(&self) -> u32 {
        self.etcd.id()
    }

    /// Checks that all started processes are still running: etcd, one or two kube-apiservers, and
    /// kube-controller-manager, if it was started.
    ///
    /// # Errors
    /// Returns an error if a process has ended. The error contains the last line of the process's log.
    pub fn check_alive(&mut self) -> Result<()> {
        self.etcd.check_alive()?;
        let others = [&mut self.second, &mut self.controllers];
        for process in others.into_iter().flatten() {
            process.check_alive()?;
        }
        self.api_server.check_alive()
    }

    /// Waits until one of the processes ends. Never returns `Ok`.
    ///
    /// # Errors
    /// Returns an error when a process has ended. The error contains the last line of the process's log.
    pub async fn ended(&mut self) -> Result<()> {
        loop {
            self.check_alive()?;
            sleep(ASK).await;
        }
    }

    pub(crate) async fn ready(&mut self) -> Result<()> {
        self.ready_at(self.addresses.api_server).await
    }

    /// Waits until the kube-apiserver on `port` is ready.
    pub(crate) async fn ready_at(&mut self, port: u16) -> Result<()> {
        let until = Instant::now() + READY_WITHIN;
        loop {
            self.check_alive()?;
            // At first the certificate is missing. After that, connections are refused until the server
            // listens.
            let Err(error) = self.ask_ready(port).await else {
                return Ok(());
            };
            if Instant::now() > until {
                let log = self.api_server.last_line();
                bail!("kube-apiserver is not ready after {READY_WITHIN:?}: {error:#}; {log}");
            }
            sleep(ASK).await;
        }
    }

    async fn ask_ready(&self, port: u16) -> Result<()> {
        let mut config = self.config().await?;
        config.cluster_url = format!("https://127.0.0.1:{port}").parse()?;
        let client = Client::try_from(config)?;
        let request = http::Request::get("/readyz").body(Vec::new())?;
        client.request_text(request).await?;
        Ok(())
    }
}

pub(crate) fn start_etcd(
    binaries: &Binaries,
    folder: &Path,
    addresses: Addresses,
) -> Result<Process> {
    let clients = format!("http://127.0.0.1:{}", addresses.etcd);
    let peers = format!("http://127.0.0.1:{}", addresses.etcd_peers);
    let arguments = [
        format!("--data-dir={DATA}"),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        // Many writes between two compactions, five minutes apart, can fill the default of 2 GiB. 8 GiB is
        // the maximum that etcd's documentation recommends.
        format!("--quota-backend-bytes={}", 8_u64 << 30),
    ];
    Process::start("etcd", &binaries.etcd, &arguments, folder)
}

/// Starts the first kube-apiserver.
fn start_api_server(
    binaries: &Binaries,
    folder: &Path,
    addresses: Addresses,
    flags: &[String],
) -> Result<Process> {
    let arguments = api_server_arguments(addresses, addresses.api_server, flags);
    Process::start("kube-apiserver", &binaries.api_server, &arguments, folder)
}

/// Returns the arguments of a kube-apiserver that listens on `port`.
pub(crate) fn api_server_arguments(
    addresses: Addresses,
    port: u16,
    flags: &[String],
) -> Vec<String> {
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", addresses.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        // Endpoints reject the loopback address, so the reconciler of the service `kubernetes` would retry
        // forever.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--secure-port={port}"),
        // The server generates a CA and a certificate for 127.0.0.1 in this folder, unless they exist.
        "--cert-dir=certs".to_owned(),
        "--token-auth-file=tokens.csv".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        // No pod runs, so tokens of service accounts are not used. The server requires a key, and the key of
        // the certificate exists before this flag is read.
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-account-key-file=certs/apiserver.key".to_owned(),
        "--service-account-signing-key-file=certs/apiserver.key".to_owned(),
        // Without a controller manager, namespaces have no service account, and pods would be rejected.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
    ];
    arguments.extend_from_slice(flags);
    arguments
}

/// Writes a token file for kube-apiserver with new tokens of the users `admin` and `guest`, and a kubeconfig
/// of `admin`. Returns both tokens.
fn write_access(folder: &Path, port: u16) -> Result<[String; 2]> {
    let (token, guest_token) = (drawn_token()?, drawn_token()?);
    let write = |path: PathBuf, text: String| {
        fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
    };
    write(
        folder.join("tokens.csv"),
        format!("{token},admin,admin,system:masters\n{guest_token},guest,guest\n"),
    )?;
    let ca = folder.join("certs").join("apiserver.crt");
    let ca = ca.to_str().context("the path of the folder is not UTF-8")?;
    let text = format!(
        r#"apiVersion: v1
kind: Config
clusters: [{{name: real, cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: "{ca}"}}}}]
users: [{{name: admin, user: {{token: "{token}"}}}}]
contexts: [{{name: real, context: {{cluster: real, user: admin}}}}]
current-context: real
"#
    );
    write(kubeconfig(folder), text)?;
    Ok([token, guest_token])
}

fn kubeconfig(folder: &Path) -> PathBuf {
    folder.join("kubeconfig")
}

/// Returns a random UUID from the kernel, as 32 hexadecimal digits.
fn drawn_token() -> Result<String> {
    let drawn = fs::read_to_string("/proc/sys/kernel/random/uuid");
    let drawn = drawn.context("can't read a random number; Linux with /proc is required")?;
    Ok(drawn.trim().replace('-', ""))
}

impl Addresses {
    /// Returns ports that are free now, but that another program can take before they are used.
    fn free() -> Result<Self> {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        // All sockets are open at the same time, so that the ports differ.
        let sockets = [listen()?, listen()?, listen()?, listen()?];
        let port = |socket: &TcpListener| anyhow::Ok(socket.local_addr()?.port());
        Ok(Self {
            api_server: port(&sockets[0])?,
            etcd: port(&sockets[1])?,
            etcd_peers: port(&sockets[2])?,
            second: port(&sockets[3])?,
        })
    }
}

/// A temporary folder, which is removed with its content on drop.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    fn make() -> Result<Self> {
        let name = format!("kube-informer-realserver-{}", drawn_token()?);
        let path = std::env::temp_dir().join(name);
        // It contains the token, which other users of the machine must not read.
        let mut folder = fs::DirBuilder::new();
        folder.mode(0o700);
        folder
            .create(&path)
            .with_context(|| format!("can't make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kubeconfig_contains_the_address_the_token_and_the_certificate() {
        let folder = Folder::make().unwrap();
        write_access(&folder.0, 6443).unwrap();
        let read = Kubeconfig::read_from(kubeconfig(&folder.0)).unwrap();
        let cluster = read.clusters[0].cluster.clone().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        assert_eq!(cluster.insecure_skip_tls_verify, None);
        let ca = cluster.certificate_authority.unwrap();
        assert!(ca.ends_with("/certs/apiserver.crt"), "{ca}");
        let tokens = fs::read_to_string(folder.0.join("tokens.csv")).unwrap();
        assert!(tokens.contains(",admin,admin,system:masters\n"));
        assert!(tokens.ends_with(",guest,guest\n"));
    }

    #[test]
    fn the_ports_differ() {
        let free = Addresses::free().unwrap();
        let ports = [free.api_server, free.second, free.etcd, free.etcd_peers];
        let distinct: std::collections::BTreeSet<u16> = ports.into();
        assert_eq!(distinct.len(), ports.len());
    }

    #[test]
    fn the_folder_does_not_outlive_its_owner() {
        let folder = Folder::make().unwrap();
        let path = folder.0.clone();
        fs::write(path.join("x"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
