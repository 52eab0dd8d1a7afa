//! Kills, ends and restarts the processes of a [`ControlPlane`], and restores etcd from snapshots.
//!
//! Programs that test clients under failures call these methods. A method that starts kube-apiserver waits
//! until kube-apiserver is ready, and therefore needs a running etcd. No process is restarted automatically.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};

use crate::{
    control_plane::{ControlPlane, DATA, api_server_arguments, start_etcd},
    process::Process,
};

/// Time between `SIGTERM` and `SIGKILL`, which equals the default `terminationGracePeriodSeconds` of a pod.
///
/// After `SIGTERM`, kube-apiserver waits for at most one minute until open watches end, so `SIGKILL` can
/// interrupt this wait.
const GRACE: Duration = Duration::from_secs(30);

impl ControlPlane {
    /// Returns the port of the first kube-apiserver, which the kubeconfig names.
    pub fn api_server_port(&self) -> u16 {
        self.addresses.api_server
    }

    /// Returns the port of the second kube-apiserver, whether it runs or not.
    pub fn second_api_server_port(&self) -> u16 {
        self.addresses.second
    }

    /// Returns the folder with the data and the logs of the processes. Relative paths in the flags of
    /// kube-apiserver are relative to this folder.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// Kills the first kube-apiserver with `SIGKILL`, and waits until it has ended.
    pub fn kill_api_server(&mut self) {
        self.api_server.end();
    }

    /// Ends kube-apiserver with `SIGTERM`, and with `SIGKILL` 30 s later, if it still runs. A second
    /// kube-apiserver is not affected.
    ///
    /// # Errors
    /// Returns an error if the signal can't be sent.
    pub async fn terminate_api_server(&mut self) -> Result<()> {
        self.api_server.terminate(GRACE).await
    }

    /// Starts kube-apiserver again after it has ended, and waits until it is ready.
    ///
    /// The data, the address, the certificate and the token stay the same. A second kube-apiserver is not
    /// affected.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`start`](Self::start).
    pub async fn start_api_server(&mut self) -> Result<()> {
        let port = self.addresses.api_server;
        self.api_server = self.start_on("kube-apiserver", port, &self.flags)?;
        self.ready_at(port).await
    }

    /// Waits until the first kube-apiserver is ready again. Its process must be running.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`start`](Self::start).
    pub async fn ready_again(&mut self) -> Result<()> {
        self.ready().await
    }

    /// Starts a second kube-apiserver with the same etcd, certificate and tokens, and waits until it is
    /// ready.
    ///
    /// The second kube-apiserver receives `flags` instead of the additional flags of the first one.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`start`](Self::start).
    pub async fn start_second_api_server(&mut self, flags: &[String]) -> Result<()> {
        let port = self.addresses.second;
        self.second = Some(self.start_on("kube-apiserver-2", port, flags)?);
        self.ready_at(port).await
    }

    /// Ends the second kube-apiserver with `SIGTERM`, and with `SIGKILL` 30 s later, if it still runs.
    ///
    /// # Errors
    /// Returns an error if the signal can't be sent.
    pub async fn terminate_second_api_server(&mut self) -> Result<()> {
        match self.second.take() {
            Some(mut second) => second.terminate(GRACE).await,
            None => Ok(()),
        }
    }

    fn start_on(&self, name: &'static str, port: u16, flags: &[String]) -> Result<Process> {
        let arguments = api_server_arguments(self.addresses, port, flags);
        Process::start(name, &self.binaries.api_server, &arguments, &self.folder.0)
    }

    /// Kills etcd with `SIGKILL`, and waits until it has ended.
    pub fn kill_etcd(&mut self) {
        self.etcd.end();
    }

    /// Starts etcd, which must have ended, with the same address and the same data folder. Does not wait
    /// until etcd is ready.
    ///
    /// # Errors
    /// Returns an error if the process can't be started.
    pub fn start_etcd(&mut self) -> Result<()> {
        self.etcd = start_etcd(&self.binaries, &self.folder.0, self.addresses)?;
        Ok(())
    }

    /// Writes a snapshot of etcd to `file`. Blocks the thread until the snapshot is complete.
    ///
    /// # Errors
    /// Returns an error if etcd does not respond, or if the program for snapshots can't be built with Go.
    pub fn save_snapshot(&self, file: &Path) -> Result<()> {
        let endpoint = format!("127.0.0.1:{}", self.addresses.etcd);
        self.run_snapshot("save", &[endpoint.as_ref(), file], 0)
    }

    /// Replaces the data of etcd, which must have ended, by the snapshot in `file`.
    ///
    /// With a `bump` above zero, the revisions of the restored etcd continue at the snapshot's revision plus
    /// `bump`, and all revisions up to this sum are compacted. This is the effect of the etcdutl flags
    /// `--bump-revision BUMP --mark-compacted`. With a `bump` of zero, the revisions continue at the
    /// snapshot's revision.
    ///
    /// # Errors
    /// Returns an error if the snapshot is not readable, or if the data can't be replaced.
    pub fn restore_snapshot(&mut self, file: &Path, bump: u64) -> Result<()> {
        let data = self.folder.0.join(DATA);
        fs::remove_dir_all(&data).with_context(|| format!("can't remove {}", data.display()))?;
        self.run_snapshot("restore", &[file, &data], bump)
    }

    fn run_snapshot(&self, operation: &str, paths: &[&Path], bump: u64) -> Result<()> {
        let mut program = Command::new(self.binaries.snapshots()?);
        program.arg(operation).args(paths);
        if operation == "restore" {
            program.arg(bump.to_string());
        }
        let output = program.output().context("can't run etcd-snapshot")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program:?} failed: {said}");
        Ok(())
    }
}
