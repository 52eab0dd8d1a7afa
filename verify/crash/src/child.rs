//! Runs an API server in a child process, the server process. The parent process starts and kills the server
//! process with [`Running`]. The server process calls [`play`].
//!
//! Guarantees: the server process ends when the parent process ends. [`Running::kill`] sends `SIGKILL`, so
//! the server process can't clean up. [`Running::kill`] returns an error if the server process has ended
//! before the call.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use kube_informer_apiserver::Server;

/// First command-line argument with which this program starts itself as the server process.
pub(crate) const ROLE: &str = "be-the-server";

/// Maximum number of attempts, 10 ms apart, to listen on the port of the previous server process.
///
/// An attempt fails while another program uses this port for an outgoing connection.
const ATTEMPTS: u32 = 500;

/// A started server process. Dropping this value kills the process.
pub(crate) struct Running {
    process: Child,
    /// Standard input of the server process. The process ends when this input is closed.
    _input: ChildStdin,
}

/// The message that a server process prints when it has started to listen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) address: SocketAddr,
    /// The newest revision of the server's store when the server started to listen.
    pub(crate) revision: u64,
}

/// Runs a server until standard input ends.
///
/// `arguments` are the data directory and the address on which the server listens.
///
/// # Errors
/// Returns an error if the directory or the address can't be used.
pub(crate) fn play(arguments: &[String]) -> Result<()> {
    let [directory, address] = arguments else {
        bail!("the arguments must be a directory and an address");
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
    /// Starts a server process for a data directory, but does not wait until it listens.
    ///
    /// # Errors
    /// Returns an error if the process can't be started.
    pub(crate) fn start(directory: &Path, address: SocketAddr) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(ROLE)
            .arg(directory)
            .arg(address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the server's process can't be started")?;
        let input = process.stdin.take().context("standard input is piped")?;
        Ok(Self {
            process,
            _input: input,
        })
    }

    /// Waits until the server listens, and returns the message that the server process then prints.
    ///
    /// # Errors
    /// Returns an error if the process ends before it listens.
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

    /// Kills the process and waits until it has ended.
    ///
    /// # Errors
    /// Returns an error if the process had already ended, or the kill fails.
    pub(crate) fn kill(mut self) -> Result<()> {
        if let Some(status) = self.process.try_wait()? {
            bail!("the server ended without being killed ({status})");
        }
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has already ended, unless another error occurred.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
