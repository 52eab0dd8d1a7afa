//! `serve`: an embedded API server on a port, with a kubeconfig that leads to it.
//!
//! Guarantees:
//! - the kubeconfig is readable by its owner alone, and no file of somebody else is written over: only one that an earlier `serve` wrote;
//! - after the end the port is free and the kubeconfig, which would lead nowhere, is gone.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use kube_informer_apiserver::{Kubeconfig, Server};

use super::Ending;
use crate::{interrupt::Interrupt, output};

/// The first line of what we write, by which we know it again.
const MARK: &str = "# Written by kubectl-informer serve, and removed when that ends.";

/// What `serve` is to do.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) listen: SocketAddr,
    pub(crate) kubeconfig: PathBuf,
}

/// Serves until a signal comes.
///
/// # Errors
/// The address can't be listened on, or the kubeconfig can't be written.
pub(crate) async fn run(options: &Options, interrupt: &mut Interrupt) -> anyhow::Result<Ending> {
    let server = Server::builder().build();
    let listening = server
        .listen(options.listen)
        .await
        .map_err(|error| cant_listen(options.listen, &error))?;
    let address = listening.local_addr();
    let path = std::path::absolute(&options.kubeconfig)?;
    write_kubeconfig(&path, &listening.kubeconfig())?;
    let shown = path.display();
    output::say(format_args!("API server:  http://{address}"));
    output::say(format_args!("kubeconfig:  {shown}"));
    output::say(format_args!("export KUBECONFIG={}", quoted(&path)));
    output::say("try:         kubectl get pods --all-namespaces --watch");
    output::say("The server lives in this process, in memory; Ctrl-C ends it.");
    let signal = interrupt.next().await;
    listening.shutdown().await;
    let removed = fs::remove_file(&path);
    output::say("The server has ended.");
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{shown} leads nowhere now: remove it"))
        }
        _ => Ok(Ending::Ended(signal)),
    }
}

fn cant_listen(address: SocketAddr, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "port {} is in use: end what listens on it, or take a free port with --listen {}:0",
            address.port(),
            address.ip()
        ),
        io::ErrorKind::PermissionDenied if !address.ip().is_loopback() => anyhow!(
            "{address} can be reached from other machines, and there is no authentication: use --listen 127.0.0.1:{}",
            address.port()
        ),
        io::ErrorKind::PermissionDenied => anyhow!(
            "port {} needs rights that this user lacks: take one above 1023, or any with --listen 127.0.0.1:0",
            address.port()
        ),
        _ => anyhow!("can't listen on {address}: {error}; try --listen 127.0.0.1:0"),
    }
}

fn write_kubeconfig(path: &Path, kubeconfig: &Kubeconfig) -> anyhow::Result<()> {
    let shown = path.display();
    if fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK)) {
        fs::remove_file(path).with_context(|| {
            format!("can't replace {shown}: name another file with --kubeconfig-out")
        })?;
    }
    // Only a new file: neither a link that somebody has laid nor a file of somebody else.
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let mut file = match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(anyhow!(
                "{shown} exists and is not ours: name a new file with --kubeconfig-out"
            ));
        }
        other => other.with_context(|| {
            format!("can't write {shown}: name a file in a folder of yours with --kubeconfig-out")
        })?,
    };
    write!(file, "{MARK}\n{kubeconfig}").with_context(|| format!("can't write {shown}"))
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_the_shell() {
        assert_eq!(
            quoted(Path::new("/tmp/a-1.kubeconfig")),
            "/tmp/a-1.kubeconfig"
        );
        assert_eq!(
            quoted(Path::new("/tmp/it's $HOME")),
            r"'/tmp/it'\''s $HOME'"
        );
    }
}
