//! Runs a shell command as a process that writes its output to a file.
//!
//! Every wait for the process has a time limit.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// Interval between two checks of the state and the output of a process.
const PAUSE: Duration = Duration::from_millis(50);

/// A process that writes its output to a file. Dropping this value kills the process.
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

/// Measures the time since [`Stopwatch::start`] with the clock of the operating system.
#[expect(
    clippy::disallowed_types,
    reason = "processes take real time, and there is no runtime here"
)]
pub(super) struct Stopwatch(std::time::Instant);

/// Returns a command without the environment variables that Cargo has set.
///
/// With these variables, a nested `cargo` would run build scripts again.
pub(super) fn command(program: &str, root: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root);
    for (name, _) in std::env::vars_os() {
        let added = name.to_str().is_some_and(|name| {
            name == "CARGO" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if added {
            command.env_remove(name);
        }
    }
    command
}

impl Process {
    /// Starts a shell command that writes its output to the file `log`.
    ///
    /// # Errors
    /// Returns an error if Bash is missing, or if the file can't be created.
    pub(super) fn start(
        root: &Path,
        text: &str,
        environment: Option<(&str, &str)>,
        log: PathBuf,
    ) -> Result<Process> {
        let output =
            File::create(&log).with_context(|| format!("can't write {}", log.display()))?;
        let mut bash = command("bash", root);
        // With `exec`, signals to the process reach the command itself.
        bash.args(["-c", &format!("exec {text}")]).envs(environment);
        bash.stdin(Stdio::null()).stderr(output.try_clone()?);
        let child = bash.stdout(output).spawn().context("bash can't be run")?;
        Ok(Process { child, log })
    }

    /// Returns all output that the process has written so far.
    pub(super) fn printed(&self) -> Result<String> {
        let text = std::fs::read(&self.log);
        let text = text.with_context(|| format!("can't read {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Waits until `read` returns a value for the output so far, and returns the value.
    ///
    /// # Errors
    /// Returns an error if the process ends first, or if the wait takes longer than `limit`.
    pub(super) fn wait_for<T>(
        &mut self,
        limit: Duration,
        mut read: impl FnMut(&str) -> Option<T>,
    ) -> Result<T> {
        let watch = Stopwatch::start();
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("it has ended ({status})");
            }
            if let Some(value) = read(&self.printed()?) {
                return Ok(value);
            }
            if watch.elapsed() > limit {
                bail!(
                    "it did not print the expected output within {} s",
                    limit.as_secs()
                );
            }
            pause();
        }
    }

    /// Waits until the process has ended, and returns its exit status.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has not ended within `limit`.
    pub(super) fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let watch = Stopwatch::start();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if watch.elapsed() > limit {
                bail!("it has not ended within {} s", limit.as_secs());
            }
            pause();
        }
    }

    /// Waits for the duration `time` while the process runs.
    ///
    /// # Errors
    ///
    /// Returns an error if the process ends within `time`.
    pub(super) fn keeps_running(&mut self, time: Duration) -> Result<()> {
        match self.wait(time) {
            Ok(status) => bail!("it has ended ({status})"),
            Err(_) => Ok(()),
        }
    }

    /// Sends SIGINT, as Ctrl-C does, waits until the process has ended, and returns the exit code.
    ///
    /// If a signal ended the process, the exit code is 128 plus the signal's number, as in a shell.
    ///
    /// # Errors
    /// Returns an error if the process does not end within `limit`.
    pub(super) fn interrupt(&mut self, limit: Duration) -> Result<i32> {
        let process = self.child.id().to_string();
        Command::new("kill")
            .args(["-s", "INT", &process])
            .status()
            .context("kill can't be run")?;
        let status = self.wait(limit).context("after Ctrl-C")?;
        let signal = || status.signal().map(|signal| 128 + signal);
        status.code().or_else(signal).context("it has no exit code")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // These calls fail only if the process has ended.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Stopwatch {
    #[expect(clippy::disallowed_types, reason = "as above")]
    pub(super) fn start() -> Stopwatch {
        Stopwatch(std::time::Instant::now())
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "no other task runs in this process"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}
