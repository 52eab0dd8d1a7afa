//! Starts and stops a server from a document.
//!
//! The server is stopped by Ctrl-C, as documented, and only by its process id.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::process::Process;

/// Maximum time until a server is reachable. One document seeds 100,000 objects.
const START_MAX: Duration = Duration::from_secs(60);

/// Maximum time until a server has ended.
const STOP_MAX: Duration = Duration::from_secs(20);

/// The exit code after Ctrl-C, as documented in docs/server.md.
const INTERRUPTED: i32 = 130;

/// A running server.
pub(super) struct Server {
    process: Process,
    access: Access,
    /// Dropped after the process.
    _data: Option<DataDir>,
}

/// The access data in the output of a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) kubeconfig: String,
    /// Host and port.
    pub(super) address: String,
}

/// A folder that a server creates. Dropping the value removes it.
struct DataDir(PathBuf);

impl Server {
    /// Starts a server, and waits until it prints how to reach it.
    ///
    /// # Errors
    ///
    /// Its data directory exists, or the server is not reachable in time.
    pub(super) fn start(root: &Path, text: &str, log: PathBuf) -> Result<Server> {
        let data = DataDir::of(root, text)?;
        let mut process = Process::start(root, text, None, log)?;
        match process.wait_for(START_MAX, access) {
            Ok(access) => Ok(Server {
                process,
                access,
                _data: data,
            }),
            Err(error) => Err(error.context(process.printed()?)),
        }
    }

    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    /// Ends the server.
    ///
    /// # Errors
    ///
    /// It has ended before, does not end in time, or has another exit code than documented.
    pub(super) fn stop(mut self) -> Result<()> {
        let code = self.process.interrupt(STOP_MAX)?;
        ensure!(
            code == INTERRUPTED,
            "after Ctrl-C, it has exit code {code} instead of {INTERRUPTED}: {}",
            self.process.printed()?
        );
        Ok(())
    }
}

impl DataDir {
    /// Returns the data directory of a command, if any. It must not exist, so that no data of a user is
    /// removed.
    fn of(root: &Path, text: &str) -> Result<Option<DataDir>> {
        let mut words = text.split(' ').skip_while(|&word| word != "--data-dir");
        let Some(name) = words.nth(1) else {
            return Ok(None);
        };
        let path = root.join(name);
        ensure!(
            !path.exists(),
            "{} exists; move or remove it, as the command would use it and this check removes it",
            path.display()
        );
        Ok(Some(DataDir(path)))
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // A server that has not started has not created it.
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the access data, or `None` if the output is not complete.
fn access(printed: &str) -> Option<Access> {
    let value = |name: &str| printed.lines().find_map(|line| line.strip_prefix(name));
    Some(Access {
        address: value("API server:  http://")?.to_owned(),
        kubeconfig: value("export KUBECONFIG=")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_and_the_kubeconfig_are_read_from_the_output() {
        let begun = "API server:  http://127.0.0.1:41573\nkubeconfig:  /tmp/a\n";
        assert_eq!(access(begun), None);
        let expected = Access {
            kubeconfig: "/tmp/a".to_owned(),
            address: "127.0.0.1:41573".to_owned(),
        };
        let text = format!("{begun}export KUBECONFIG=/tmp/a\n");
        assert_eq!(access(&text), Some(expected));
    }

    #[test]
    fn a_data_directory_that_exists_is_left_alone() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let of = |text| DataDir::of(root, text).map(|data| data.is_some());
        assert!(!of("serve --listen 127.0.0.1:8001").unwrap());
        assert!(of("serve --data-dir ./absent --controllers").unwrap());
        let error = of("serve --data-dir ./src").unwrap_err();
        assert!(error.to_string().contains("exists"), "{error}");
        assert!(root.join("src").exists());
    }
}
