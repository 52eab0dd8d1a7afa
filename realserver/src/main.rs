//! Runs a real kube-apiserver and etcd until Ctrl-C, and prints the path of the kubeconfig.
//!
//! `cargo xtask apiserver` runs this program.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use clap::Parser;
use kube_informer_realserver::{Binaries, ControlPlane};
use tokio::signal::unix::{SignalKind, signal};

/// Build and run a real kube-apiserver and etcd on loopback, until Ctrl-C
///
/// Prints the path of a kubeconfig when the server is ready. The first build needs Go, and takes about
/// 8 minutes on 2 cores. With --controllers, it takes 3 more minutes for kube-controller-manager. If
/// `KUBEBUILDER_ASSETS` names a folder and --version is not set, the executables in this folder are used
/// instead.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask apiserver")]
struct Arguments {
    /// Version of Kubernetes to build, such as 1.32.9, instead of the one in `go.mod`
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Controllers of kube-controller-manager to run, separated by commas, or `*` for all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    controllers: Vec<String>,
    /// Flags for kube-apiserver, such as `--feature-gates=WatchList=false`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAG"
    )]
    flags: Vec<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    let binaries = match &arguments.version {
        Some(version) => Binaries::of_version(&target, version)?,
        None => Binaries::get(&target)?,
    };
    // Signals that arrive while the server starts must also end it.
    let mut terminate = signal(SignalKind::terminate()).context("can't wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("can't wait for Ctrl-C")?;
    let served = async {
        let mut started = ControlPlane::start_with(&binaries, &arguments.flags).await?;
        for (name, version) in binaries.versions() {
            eprintln!("{name} {version}");
        }
        if !arguments.controllers.is_empty() {
            started.start_controllers(&arguments.controllers)?;
        }
        let kubeconfig = started.kubeconfig();
        writeln!(std::io::stdout(), "{}", kubeconfig.display()).context("can't print")?;
        started.ended().await
    };
    tokio::select! {
        biased;
        result = served => result,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}
