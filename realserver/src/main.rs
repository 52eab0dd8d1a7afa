//! Runs a real kube-apiserver and etcd until Ctrl-C, and prints the path of the kubeconfig.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use kube_informer_realserver::{Binaries, ControlPlane};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    let binaries = Binaries::build(&target)?;
    let started = ControlPlane::start(&binaries).await?;
    let kubeconfig = started.kubeconfig();
    writeln!(std::io::stdout(), "{}", kubeconfig.display()).context("can't print")?;
    tokio::signal::ctrl_c()
        .await
        .context("can't wait for an interrupt")
}
