//! Connects an example to a cluster.
//!
//! The arguments of the program specify the cluster. Without arguments, the module starts an embedded API
//! server. This server listens on a free loopback port, so the example uses real HTTP.

pub(crate) mod args;

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use kube_client::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_informer_apiserver::{Listening, Server};
use tokio::time::timeout;

/// Maximum time to wait for the cluster's first response. A distant cluster needs about a second.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client for the example's cluster, and the handle of the embedded API server if there is one.
pub(crate) struct Cluster {
    client: Client,
    embedded: Option<Listening>,
}

impl Cluster {
    /// Connects to the cluster that the program's arguments specify.
    ///
    /// Without arguments, starts `server` on a free port and connects to it. With `--context` but without
    /// `--kubeconfig`, reads the same kubeconfig files as kubectl: `$KUBECONFIG`, or `~/.kube/config` if the
    /// variable is not set.
    ///
    /// # Errors
    /// Returns an error if an argument is unknown, the kubeconfig is invalid, or the cluster does not
    /// respond.
    pub(crate) async fn from_args(server: Server) -> anyhow::Result<Self> {
        let (config, embedded) = match args::parse()? {
            (None, None) => {
                let listening = server.listen("127.0.0.1:0".parse()?).await?;
                let url = format!("http://{}", listening.local_addr()).parse()?;
                (Config::new(url), Some(listening))
            }
            (kubeconfig, context) => (config(kubeconfig, context).await?, None),
        };
        let url = config.cluster_url.clone();
        let client = kube_informer::client::connect(config)?;
        let version = timeout(TIMEOUT, client.apiserver_version()).await;
        let response = version.with_context(|| format!("{url} does not respond"))?;
        response.with_context(|| format!("{url} is not usable"))?;
        Ok(Self { client, embedded })
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Shuts down the embedded server. Does nothing if the example did not start one.
    pub(crate) async fn close(self) {
        if let Some(listening) = self.embedded {
            listening.shutdown().await;
        }
    }
}

async fn config(kubeconfig: Option<PathBuf>, context: Option<String>) -> anyhow::Result<Config> {
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    Ok(match kubeconfig {
        Some(file) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await?
        }
        None => Config::from_kubeconfig(&options).await?,
    })
}
