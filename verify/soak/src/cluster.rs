//! The servers of a run: etcd, one or two kube-apiservers, and the proxies before them.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, ensure};
use harness::report::{say, workspace};
use k8s_openapi::api::core::v1::Namespace;
use kube_client::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
};
use kube_informer::client::connect;
use kube_informer_realserver::{Binaries, ControlPlane};

use crate::{
    audit::{FILES, Logs, POLICY},
    object::NAMESPACES,
    proxy::{Backends, Proxy},
};

/// Maximum time of a request of the run's own clients.
const REQUEST_MAX: Duration = Duration::from_secs(20);

pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
    /// The proxy of the informers, which disturbs connections.
    pub(crate) proxy: Proxy,
    /// The proxy of the run's own clients.
    direct: Proxy,
    pub(crate) backends: Backends,
    pub(crate) logs: Logs,
    config: Config,
    pub(crate) policy: Policy,
}

impl Cluster {
    /// Starts the servers, and creates the namespaces.
    ///
    /// # Errors
    /// Returns an error if a server can't be built or started.
    pub(crate) async fn start() -> Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| workspace().join("target"), PathBuf::from);
        let binaries = Binaries::get(&target)?;
        for (name, version) in binaries.versions() {
            say(&format!("{name} {version}"));
        }
        binaries.prepare_snapshots()?;
        let policy = Policy::write()?;
        let plane = ControlPlane::start_with(&binaries, &policy.flags(0)).await?;
        let backends = Backends::default();
        backends.set(&[plane.api_server_port()]);
        let cluster = Self {
            proxy: Proxy::start(backends.clone()).await?,
            direct: Proxy::start(backends.clone()).await?,
            backends,
            logs: Logs::new(plane.folder()),
            config: plane.config().await?,
            plane,
            policy,
        };
        let api: Api<Namespace> = Api::all(cluster.own_client()?);
        for name in NAMESPACES {
            let namespace = Namespace {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    ..ObjectMeta::default()
                },
                ..Namespace::default()
            };
            api.create(&PostParams::default(), &namespace).await?;
        }
        Ok(cluster)
    }

    /// Returns a client of the run itself, whose connections are never disturbed.
    ///
    /// # Errors
    /// Returns an error if the client can't be built.
    pub(crate) fn own_client(&self) -> Result<Client> {
        let mut config = self.config_of(&self.direct)?;
        config.read_timeout = Some(REQUEST_MAX);
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// Returns a client for informers.
    ///
    /// If `shares_connection` is `true`, all requests of the client share one HTTP/2 connection. Otherwise,
    /// each watch has its own HTTP/1.1 connection.
    ///
    /// # Errors
    /// Returns an error if the client can't be built.
    pub(crate) fn client(&self, shares_connection: bool) -> Result<Client> {
        let mut config = self.config_of(&self.proxy)?;
        if shares_connection {
            return Ok(connect(config)?);
        }
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    fn config_of(&self, proxy: &Proxy) -> Result<Config> {
        let mut config = self.config.clone();
        config.cluster_url = format!("https://127.0.0.1:{}", proxy.port()).parse()?;
        Ok(config)
    }

    /// Ends the servers and the proxies, removes their files, and checks the result.
    ///
    /// # Errors
    /// Returns an error if kube-apiserver or etcd still runs, or if the folder of the servers or the file
    /// with the audit policy still exists. Does not check a second kube-apiserver.
    pub(crate) fn end(self) -> Result<()> {
        let folder = self.plane.folder().to_owned();
        let policy = self.policy.0.clone();
        let processes = [self.plane.api_server_id(), self.plane.etcd_id()];
        drop(self);
        for path in [folder, policy] {
            ensure!(!path.exists(), "{} remains", path.display());
        }
        for process in processes {
            let remains = fs::exists(format!("/proc/{process}"))?;
            ensure!(!remains, "process {process} remains");
        }
        Ok(())
    }
}

/// The file with the audit policy, which is removed on drop.
pub(crate) struct Policy(PathBuf);

impl Policy {
    fn write() -> Result<Self> {
        let name = format!("kube-informer-soak-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, POLICY).context("can't write the audit policy")?;
        Ok(Self(path))
    }

    /// Returns the flags of kube-apiserver number `index`.
    pub(crate) fn flags(&self, index: usize) -> Vec<String> {
        vec![
            format!("--audit-policy-file={}", self.0.display()),
            format!("--audit-log-path={}", FILES[index]),
            // One file, in MiB.
            "--audit-log-maxsize=100000".to_owned(),
        ]
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
