//! Starts the embedded API server with a command from the documentation, and stops it with SIGINT.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::process::Process;

/// Maximum time until a server has started; one document starts a server with 100,000 objects.
const START_MAX: Duration = Duration::from_secs(60);

/// Maximum time from SIGINT until the server has ended.
const STOP_MAX: Duration = Duration::from_secs(20);

/// Exit code of a server after SIGINT, as documented in `docs/server.md`.
const INTERRUPTED: i32 = 130;

/// A running server that a command from the documentation has started.
pub(super) struct Server {
    process: Process,
    access: Access,
    /// Data directory, which is removed after the process has ended.
    _data: Option<DataDir>,
}

/// Address and kubeconfig path that a server has printed after its start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) kubeconfig: String,
    /// Host and port of the server.
    pub(super) address: String,
}

/// Path of a server's data directory, which is removed on drop.
struct DataDir(PathBuf);

impl Server {
    /// Starts a server with the command `text`, and waits until it has printed its address.
    ///
    /// # Errors
    ///
    /// Returns an error if the data directory already exists, if the server ends, or if the server does not
    /// print its address within [`START_MAX`].
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

    /// Stops the server with SIGINT.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not end within [`STOP_MAX`], or if its exit code is not
    /// [`INTERRUPTED`].
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
    /// Returns the data directory in the option `--data-dir` of a command, if present.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory exists, because dropping `DataDir` would remove a user's data.
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
        // A server that has not started has created no directory.
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// Parses the kubeconfig and the address in a server's output.
fn access(printed: &str) -> Option<Access> {
    let value = |name: &str| printed.lines().find_map(|line| line.strip_prefix(name));
    let (_scheme, address) = value("API server:  ")?.split_once("://")?;
    Some(Access {
        address: address.to_owned(),
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
        assert_eq!(access(&text).as_ref(), Some(&expected));
        let with_tls = text.replace("http:", "https:");
        assert_eq!(access(&with_tls), Some(expected));
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
