//! Where an example runs: the cluster that its arguments name, or an embedded API server.
//!
//! Guarantees: without arguments it needs nothing. The embedded server listens on a free loopback
//! port, so what goes over the wire is real HTTP.

use std::{env, path::PathBuf};

use anyhow::{Context, bail};
use kube_client::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_informer_apiserver::{Listening, Server};

const USAGE: &str = "usage: [--kubeconfig FILE] [--context NAME]; an embedded server without them";

/// The cluster that an example talks to.
pub(crate) struct Cluster {
    client: Client,
    embedded: Option<Listening>,
}

#[derive(Default)]
struct Args {
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
}

impl Cluster {
    /// The cluster of the program's arguments; `server`, on a port of its own, if there are none.
    ///
    /// `--context` alone looks where kubectl does: `$KUBECONFIG`, then `~/.kube/config`.
    pub(crate) async fn from_args(server: Server) -> anyhow::Result<Self> {
        let (config, embedded) = match Args::parse(env::args().skip(1))? {
            Args {
                kubeconfig: None,
                context: None,
            } => {
                let listening = server.listen("127.0.0.1:0".parse()?).await?;
                let url = format!("http://{}", listening.local_addr()).parse()?;
                (Config::new(url), Some(listening))
            }
            args => (args.config().await?, None),
        };
        Ok(Self {
            client: kube_informer::client::connect(config)?,
            embedded,
        })
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

impl Args {
    fn parse(mut args: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut parsed = Self::default();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--kubeconfig" => parsed.kubeconfig = Some(value()?.into()),
                "--context" => parsed.context = Some(value()?),
                _ => bail!("unknown argument {arg:?}; {USAGE}"),
            }
        }
        Ok(parsed)
    }

    async fn config(self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions {
            context: self.context,
            ..KubeConfigOptions::default()
        };
        Ok(match self.kubeconfig {
            Some(file) => {
                Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await?
            }
            None => Config::from_kubeconfig(&options).await?,
        })
    }
}
