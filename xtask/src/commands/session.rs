//! Runs the commands of one document in order. A command can start a server for the later commands.
//!
//! Every wait has a time limit. Dropping the [`Session`] kills the server. Every other command has ended when
//! the method that runs it returns.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::document::Command;
use super::process::{Process, Stopwatch};
use super::server::Server;

/// Maximum duration of a command that uses a server.
const RUN_MAX: Duration = Duration::from_secs(60);

/// Maximum duration, including compilation, of a command that [`Session::shorten`] runs.
const SHORTENED_MAX: Duration = Duration::from_secs(600);

/// Maximum time until a command with `--watch` prints its first line.
const WATCH_MAX: Duration = Duration::from_secs(20);

/// Time for which a command with `--watch` must keep running after its first line.
const WATCH_TIME: Duration = Duration::from_secs(2);

/// Options that make curl exit with an error if the server rejects the request.
const CURL_FAILS: &str = "--fail --silent --show-error";

/// Placeholder in the commands for the host and port of the running server.
const ADDRESS: &str = "ADDRESS";

/// Runs the commands of one document, and owns the server that the commands use.
pub(super) struct Session<'a> {
    root: &'a Path,
    /// Folder for the output files of the commands.
    logs: &'a Path,
    server: Option<Server>,
}

impl<'a> Session<'a> {
    pub(super) fn new(root: &'a Path, logs: &'a Path) -> Session<'a> {
        Session {
            root,
            logs,
            server: None,
        }
    }

    /// Stops the earlier server, starts the server of this command, and returns a line for the report.
    ///
    /// # Errors
    ///
    /// Returns an error if the earlier server does not stop correctly, or if the new server does not start.
    pub(super) fn serve(&mut self, command: &Command) -> Result<String> {
        self.end()?;
        let watch = Stopwatch::start();
        self.server = Some(Server::start(self.root, &command.text, self.log(command))?);
        Ok(format!("serves after {}", seconds(&watch)))
    }

    /// Runs a command to its end, and returns a line for the report.
    ///
    /// # Errors
    ///
    /// Returns an error if the command fails, or takes longer than [`RUN_MAX`].
    pub(super) fn run(&self, command: &Command) -> Result<String> {
        self.finish(command, &command.text, RUN_MAX)
    }

    /// Runs a command to its end with additional options, which shorten the run.
    ///
    /// Returns a text for the report with the duration and the options.
    ///
    /// # Errors
    ///
    /// Returns an error if the command fails, or takes longer than [`SHORTENED_MAX`].
    pub(super) fn shorten(&self, command: &Command, options: &str) -> Result<String> {
        let text = format!("{} {options}", command.text);
        let outcome = self.finish(command, &text, SHORTENED_MAX)?;
        Ok(format!("{outcome} with {options}"))
    }

    /// Runs a command that does not end, such as `kubectl get --watch`.
    ///
    /// Kills the command [`WATCH_TIME`] after its first output.
    ///
    /// # Errors
    ///
    /// Returns an error if the command prints nothing within [`WATCH_MAX`], or if it ends before it is
    /// killed.
    pub(super) fn watch(&self, command: &Command) -> Result<String> {
        let mut process = self.start(command, &command.text)?;
        let watch = Stopwatch::start();
        let watched = process
            .wait_for(WATCH_MAX, |printed| (!printed.is_empty()).then_some(()))
            .and_then(|()| process.keeps_running(WATCH_TIME));
        match watched {
            Ok(()) => Ok(format!("ran for {}", seconds(&watch))),
            Err(error) => Err(error.context(process.printed()?)),
        }
    }

    /// Stops the server, if one is running.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not stop in time after SIGINT, or has another exit code than 130.
    pub(super) fn end(&mut self) -> Result<()> {
        let Some(server) = self.server.take() else {
            return Ok(());
        };
        server.stop().context("the server before it has failed")
    }

    fn finish(&self, command: &Command, text: &str, limit: Duration) -> Result<String> {
        let mut process = self.start(command, text)?;
        let watch = Stopwatch::start();
        let status = process.wait(limit);
        let printed = process.printed()?;
        let status = status.with_context(|| printed.clone())?;
        ensure!(status.success(), "{printed}\nit has failed ({status})");
        Ok(format!("ran in {}", seconds(&watch)))
    }

    fn start(&self, command: &Command, text: &str) -> Result<Process> {
        let access = self.server.as_ref().map(Server::access);
        let environment = access.map(|access| ("KUBECONFIG", access.kubeconfig.as_str()));
        let address = access.map_or(ADDRESS, |access| &access.address);
        let text = typed(text, address);
        Process::start(self.root, &text, environment, self.log(command))
    }

    fn log(&self, command: &Command) -> PathBuf {
        let document = command.file.replace('/', "-");
        self.logs.join(format!("{document}-{}.log", command.line))
    }
}

/// Prepares the text of a documented command for its execution.
///
/// Replaces the placeholder [`ADDRESS`] by `address`, and appends [`CURL_FAILS`] to a `curl` command.
fn typed(text: &str, address: &str) -> String {
    let text = text.replace(ADDRESS, address);
    if text.starts_with("curl ") {
        format!("{text} {CURL_FAILS}")
    } else {
        text
    }
}

fn seconds(watch: &Stopwatch) -> String {
    format!("{:.1} s", watch.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_replaced_and_curl_fails_if_it_is_rejected() {
        assert_eq!(
            typed("curl -X DELETE http://ADDRESS/faults", "127.0.0.1:80"),
            "curl -X DELETE http://127.0.0.1:80/faults --fail --silent --show-error"
        );
        assert_eq!(typed("kubectl get pods", "a"), "kubectl get pods");
    }
}
