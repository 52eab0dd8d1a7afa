//! The server's process, from both sides.
//!
//! Guarantees: it ends with its parent, however that ends, and one that has ended before it was killed is an error; a kill is the kernel's (`SIGKILL`), so nothing of it is tidied up.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use kube_informer_apiserver::Server;

/// The first argument of a process that is to be the server.
pub(crate) const ROLE: &str = "be-the-server";

/// Attempts to listen on the port of the life before, a hundredth of a second apart: somebody else's connection may go out from it for a while.
const ATTEMPTS: u32 = 500;

/// A process that may be a server already.
pub(crate) struct Running {
    process: Child,
    /// Its end is the child's.
    _input: ChildStdin,
}

/// What a server says when it listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) address: SocketAddr,
    /// Where it was then.
    pub(crate) revision: u64,
}

/// Serves a directory on a port until standard input ends.
///
/// # Errors
/// The directory can't be opened, or the port is taken.
pub(crate) fn play(arguments: &[String]) -> Result<()> {
    let [directory, address] = arguments else {
        bail!("a directory and an address");
    };
    let address: SocketAddr = address.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = Server::builder().open(directory)?;
        let revision = server.revision();
        let mut attempts = 0;
        let listening = loop {
            match server.listen(address).await {
                Ok(listening) => break listening,
                Err(error) if attempts == ATTEMPTS => return Err(error.into()),
                Err(_) => attempts += 1,
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let mut output = std::io::stdout().lock();
        writeln!(output, "{} {revision}", listening.local_addr())?;
        output.flush()?;
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        anyhow::Ok(())
    })
}

impl Running {
    /// Starts a server, and goes on before it is one.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn start(directory: &Path, address: SocketAddr) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(ROLE)
            .arg(directory)
            .arg(address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("no process for the server")?;
        let input = process.stdin.take().context("its standard input")?;
        Ok(Self {
            process,
            _input: input,
        })
    }

    /// Waits until it listens.
    ///
    /// # Errors
    /// It ended before.
    pub(crate) async fn ready(&mut self) -> Result<Ready> {
        let output = self.process.stdout.take().context("said once")?;
        let reading = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line).map(|_| line)
        });
        let line = reading.await??;
        let said = line.trim_end().split_once(' ');
        let (address, revision) = said.context("the server did not start")?;
        Ok(Ready {
            address: address.parse()?,
            revision: revision.parse()?,
        })
    }

    /// Kills it, and waits until it is gone.
    ///
    /// # Errors
    /// It has ended by itself, or the system refuses.
    pub(crate) fn kill(mut self) -> Result<()> {
        if let Some(status) = self.process.try_wait()? {
            bail!("nobody has killed the server, and it has ended ({status})");
        }
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It is gone already, unless something else has failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
