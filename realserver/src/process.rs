//! Starts and ends a server process whose output is written to a log file.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::time::{Instant, sleep};

/// Interval between two checks whether a process has ended.
const POLL: Duration = Duration::from_millis(20);

/// A server process and its log file. Dropping this value kills the process.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `binary` in `folder`, and writes its output to a log file in this folder.
    ///
    /// `name` is the name of the log file without the extension `.log`.
    pub(crate) fn start(
        name: &'static str,
        binary: &Path,
        arguments: &[impl AsRef<OsStr>],
        folder: &Path,
    ) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("can't make {}", log.display()))?;
        let child = Command::new(binary)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone().context("can't share the log")?)
            .stderr(file)
            .spawn();
        let child = child.with_context(|| format!("can't start {}", binary.display()))?;
        Ok(Self { name, child, log })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Checks that the process is running.
    ///
    /// # Errors
    /// Returns an error with the last line of the log if the process has ended.
    pub(crate) fn check_alive(&mut self) -> Result<()> {
        let Self { name, child, .. } = self;
        let ended = child.try_wait();
        match ended.with_context(|| format!("can't read the state of {name}"))? {
            Some(status) => bail!("{} has ended: {status}: {}", self.name, self.last_line()),
            None => Ok(()),
        }
    }

    /// Sends `SIGTERM` and waits until the process has ended. Like a kubelet, kills the process if it still
    /// runs after `grace`.
    ///
    /// # Errors
    /// Returns an error if the signal can't be sent.
    pub(crate) async fn terminate(&mut self, grace: Duration) -> Result<()> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        let sent = sent.context("kill can't be run; it is needed")?;
        ensure!(sent.success(), "can't end {}: {sent}", self.name);
        let until = Instant::now() + grace;
        while self.child.try_wait()?.is_none() && Instant::now() < until {
            sleep(POLL).await;
        }
        self.end();
        Ok(())
    }

    /// Kills the process and waits until it has ended.
    pub(crate) fn end(&mut self) {
        // Its data is removed, so no regular shutdown is needed. The errors mean that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Returns the last line of the log, or a note that the log is empty.
    pub(crate) fn last_line(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().last().unwrap_or("its log is empty").to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_is_reported_with_the_last_line_of_its_log() {
        let folder = std::env::temp_dir().join(format!("realserver-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let arguments = ["-c", "echo first; echo no such flag >&2; exit 3"];
        let mut process = Process::start("sh", Path::new("/bin/sh"), &arguments, &folder).unwrap();
        let _ = process.child.wait();
        let error = process.check_alive().unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(error, "sh has ended: exit status: 3: no such flag");
    }

    #[tokio::test]
    async fn a_process_that_ignores_the_signal_is_killed_after_the_grace_period() {
        let folder = std::env::temp_dir().join(format!("realserver-term-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let arguments = ["-c", "trap '' TERM; while true; do sleep 0.01; done"];
        let mut process = Process::start("sh", Path::new("/bin/sh"), &arguments, &folder).unwrap();
        // The shell may receive the signal before it ignores it; the result is the same.
        process.terminate(Duration::from_millis(50)).await.unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(process.check_alive().is_err());
    }
}
