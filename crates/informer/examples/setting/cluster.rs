//! Where an example runs: the cluster that its arguments name, or an embedded API server.
//!
//! Guarantees: without arguments it needs nothing. The embedded server listens on a free loopback
//! port, so what goes over the wire is real HTTP.

pub(crate) mod args;

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use kube_client::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_informer_apiserver::{Listening, Server};
use tokio::time::timeout;

/// How long a cluster may take to answer at all; a distant one takes a second.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The cluster that an example talks to.
pub(crate) struct Cluster {
    client: Client,
    embedded: Option<Listening>,
}

impl Cluster {
    /// The cluster of the program's arguments; `server`, on a port of its own, if there are none.
    ///
    /// `--context` alone looks where kubectl does: `$KUBECONFIG`, then `~/.kube/config`.
    ///
    /// # Errors
    /// Unknown arguments, an unusable kubeconfig, or a cluster that does not answer.
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
        let answers = version.with_context(|| format!("{url} does not answer"))?;
        answers.with_context(|| format!("{url} can't be used"))?;
        Ok(Self { client, embedded })
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Ends the embedded server, if it is one.
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
