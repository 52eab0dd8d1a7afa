//! Builds, starts and stops the measured programs and the neutral source, which is the server of generated
//! objects.
//!
//! Guarantees: at most one measured program and at most one source run at a time. When [`Programs::run`]
//! returns a result or an error, both processes have ended.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;

use crate::case::{Case, Program};

/// Maximum run time of a measured program. client-go with JSON needs ten minutes for one million objects.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Seed of the generated pods, the same in all runs.
const SEED: &str = "1";

/// Paths of the benchmark programs, and the rule by which the benchmark's server splits responses.
pub(crate) struct Programs {
    bench: PathBuf,
    release: PathBuf,
    chunks: Chunks,
}

/// Rule by which the source splits list and watch responses into chunks (`source --chunks`)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Chunks {
    /// Chunks with the same boundaries as those of kube-apiserver
    #[default]
    Server,
    /// Chunks of at least 64 KiB, which contain several objects
    Large,
}

/// Returns the root folder of the project's source tree.
pub(crate) fn root() -> Result<&'static Path> {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.nth(2).context("the package is not in bench/runner")
}

impl Programs {
    /// Determines the paths of the benchmark programs in the source tree at `root`.
    pub(crate) fn of(root: &Path, chunks: Chunks) -> Self {
        let bench = root.join("bench");
        let release = target(&bench).join("release");
        Self {
            bench,
            release,
            chunks,
        }
    }

    /// Builds the client-go program and the selected Rust packages.
    ///
    /// `selected` contains options of `cargo build`: `--workspace`, or `--package=NAME` for each package.
    ///
    /// # Errors
    /// Returns an error if a build fails.
    pub(crate) fn build(&self, selected: &[&str]) -> Result<()> {
        let mut cargo = Command::new(env!("CARGO"));
        // One command for all packages, so that shared dependencies are built once.
        cargo
            .current_dir(&self.bench)
            .args(["build", "--release"])
            .args(selected);
        succeed(&mut cargo)?;
        let mut go = Command::new("go");
        go.current_dir(self.client_go_folder())
            .args(["build", "-o"])
            .arg(self.path(Program::ClientGo))
            .arg(".");
        succeed(&mut go)
    }

    fn client_go_folder(&self) -> PathBuf {
        self.bench.join("peers").join("client-go")
    }

    pub(crate) fn path(&self, program: Program) -> PathBuf {
        self.release.join(match program {
            Program::Subject => "subject",
            Program::SubjectSystem => "subject-system",
            Program::ClientGo => "peer-client-go",
            Program::KubeRs => "peer-kube-rs",
            Program::KubeRsSystem => "peer-kube-rs-system",
            Program::Heap => "heap",
            Program::Source => "source",
        })
    }

    /// Returns the names and versions of the compilers and the measured libraries.
    ///
    /// # Errors
    /// Returns an error if a compiler does not run, or if `go.mod` or `Cargo.lock` lacks the version of a
    /// library.
    pub(crate) fn versions(&self) -> Result<Vec<(String, String)>> {
        let mut rustc = Command::new("rustc");
        let rust = answer(rustc.arg("--version"))?;
        let mut go = Command::new("go");
        let go = answer(go.arg("version"))?;
        let modules = read(&self.client_go_folder().join("go.mod"))?;
        let lock = read(&self.bench.join("Cargo.lock"))?;
        let versions = [
            ("Rust", Some(rust)),
            ("Go", Some(go)),
            ("client-go", required(&modules, "k8s.io/client-go")),
            ("kube", locked(&lock, "kube")),
            ("k8s-openapi", locked(&lock, "k8s-openapi")),
            ("tokio", locked(&lock, "tokio")),
        ];
        let version = |(name, version): (&str, Option<String>)| {
            let version = version.with_context(|| format!("no version of {name} found"))?;
            Ok((name.to_owned(), version))
        };
        versions.into_iter().map(version).collect()
    }

    /// Runs the program of `case`, and returns the line of JSON that the program printed.
    ///
    /// # Errors
    /// Returns an error if the source does not start, or if the program fails or exceeds [`LIMIT`].
    pub(crate) fn run(&self, case: &Case) -> Result<String> {
        let mut program = Command::new(self.path(case.program));
        program.args(&case.arguments);
        let source = case
            .source
            .map(|pods| Source::start(&self.release, pods, self.chunks));
        let source = source.transpose()?;
        if let Some(source) = &source {
            program.args(["--server", &source.address]);
        }
        let child = program.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = Ended(child.context("cannot start the program")?);
        let mut output = child.0.stdout.take().context("standard output is piped")?;
        let (told, outcome) = mpsc::channel();
        let reader = thread::Builder::new().spawn(move || {
            let mut line = String::new();
            let read = output.read_to_string(&mut line).map(|_| line);
            // The receiver is dropped after the time limit.
            let _ = told.send(read);
        });
        reader.context("cannot start a thread that reads the output")?;
        let Ok(line) = outcome.recv_timeout(LIMIT) else {
            bail!("timed out after {LIMIT:?}");
        };
        let status = child.0.wait().context("cannot wait for the program")?;
        ensure!(status.success(), "the program failed: {status}");
        Ok(line?.trim().to_owned())
    }
}

impl Chunks {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Large => "large",
        }
    }
}

/// A running server of generated objects (the program `source`). Dropping this value kills the process.
struct Source {
    address: String,
    _process: Ended,
}

impl Source {
    fn start(release: &Path, pods: u32, chunks: Chunks) -> Result<Self> {
        let child = Command::new(release.join("source"))
            .args(["--kind", "pods", "--seed", SEED, "--port", "0"])
            .args(["--pods", &pods.to_string()])
            .args(["--chunks", chunks.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut process = Ended(child.context("cannot start the source")?);
        let output = process
            .0
            .stdout
            .take()
            .context("standard output is piped")?;
        let mut line = String::new();
        let mut output = BufReader::new(output);
        output
            .read_line(&mut line)
            .context("cannot read the address of the source")?;
        let address = line.trim().strip_prefix("listening on ");
        let address = address
            .with_context(|| format!("the source printed {line:?} instead of its address"))?;
        let address = address.to_owned();
        Ok(Self {
            address,
            _process: process,
        })
    }
}

/// Child process that is killed and waited for on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the target folder of the Cargo workspace at `workspace`.
pub(crate) fn target(workspace: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status();
    let status = status.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

fn answer(command: &mut Command) -> Result<String> {
    let output = command.output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the version of the Go module `module` in `modules`, the text of a `go.mod`.
fn required(modules: &str, module: &str) -> Option<String> {
    modules.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == module).then(|| words.next().map(str::to_owned))?
    })
}

/// Returns the version of the crate `package` in `lock`, the text of a `Cargo.lock`.
fn locked(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines.nth(1)?.strip_prefix("version = ")?;
    Some(version.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_lock_files() {
        let modules =
            "go 1.26.0\n\nrequire (\n\tk8s.io/api v0.36.0\n\tk8s.io/client-go v0.37.2\n)\n";
        let version = required(modules, "k8s.io/client-go");
        assert_eq!(version.as_deref(), Some("v0.37.2"));
        assert_eq!(required(modules, "k8s.io/klog"), None);
        let lock = "[[package]]\nname = \"kube-core\"\nversion = \"5.0.1\"\n\n[[package]]\nname = \"kube\"\nversion = \"5.0.0\"\n";
        assert_eq!(locked(lock, "kube").as_deref(), Some("5.0.0"));
        assert_eq!(locked(lock, "tokio"), None);
    }
}
