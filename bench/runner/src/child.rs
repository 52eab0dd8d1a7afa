//! The programs: how they are built, started and ended.
//!
//! Guarantees: at most one measured program runs at a time, beside at most one source; both have ended
//! when [`Programs::run`] returns, also after an error.

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

/// The longest that one program may take: a million objects take client-go with JSON ten minutes.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Drawn once; every run has the same pods.
const SEED: &str = "1";

/// Where the programs are.
pub(crate) struct Programs {
    bench: PathBuf,
    release: PathBuf,
    chunks: Chunks,
}

/// Where the chunks of the source's lists and watches end, as `source --chunks` knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Chunks {
    /// As those of kube-apiserver
    #[default]
    Server,
    /// After several objects each
    Large,
}

/// The folder of the whole project.
pub(crate) fn root() -> Result<&'static Path> {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.nth(2).context("this stands in bench/runner")
}

impl Programs {
    /// Those of the tree at `root`, which may not be built yet; the source cuts bodies into such chunks.
    pub(crate) fn of(root: &Path, chunks: Chunks) -> Self {
        let bench = root.join("bench");
        let release = target(&bench).join("release");
        Self {
            bench,
            release,
            chunks,
        }
    }

    /// Builds client-go's program, and in release what these arguments of `cargo build` select.
    ///
    /// # Errors
    /// One can't be built.
    pub(crate) fn build(&self, selected: &[&str]) -> Result<()> {
        let mut cargo = Command::new(env!("CARGO"));
        // All at once: what they share is then built once.
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

    /// Compilers, and what of the peers is compared: a name and a version each.
    ///
    /// # Errors
    /// A tool or a lock file can't be asked.
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
            let version = version.with_context(|| format!("no version of {name} is pinned"))?;
            Ok((name.to_owned(), version))
        };
        versions.into_iter().map(version).collect()
    }

    /// Runs one case; its line.
    ///
    /// # Errors
    /// It fails, or takes longer than [`LIMIT`]; or its source does not come up.
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
        let mut child = Ended(child.context("can't be started")?);
        let mut output = child.0.stdout.take().context("standard output is piped")?;
        let (told, outcome) = mpsc::channel();
        let reader = thread::Builder::new().spawn(move || {
            let mut line = String::new();
            let read = output.read_to_string(&mut line).map(|_| line);
            // When the time limit has passed, the receiver is gone.
            let _ = told.send(read);
        });
        reader.context("no thread to read with")?;
        let Ok(line) = outcome.recv_timeout(LIMIT) else {
            bail!("is not done after {LIMIT:?}");
        };
        let status = child.0.wait().context("can't be waited for")?;
        ensure!(status.success(), "has failed: {status}");
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

/// The neutral source, until it is dropped.
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
        let mut process = Ended(child.context("the source can't be started")?);
        let output = process
            .0
            .stdout
            .take()
            .context("standard output is piped")?;
        let mut line = String::new();
        let mut output = BufReader::new(output);
        output
            .read_line(&mut line)
            .context("the source says nothing")?;
        let address = line.trim().strip_prefix("listening on ");
        let address = address.with_context(|| format!("the source says {line:?}"))?;
        let address = address.to_owned();
        Ok(Self {
            address,
            _process: process,
        })
    }
}

/// A process that does not outlive its owner.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // One that has ended by itself can't be killed, which is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where Cargo builds the workspace in this folder.
pub(crate) fn target(workspace: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status();
    let status = status.with_context(|| format!("{command:?} can't be run"))?;
    ensure!(status.success(), "{command:?} has failed");
    Ok(())
}

fn answer(command: &mut Command) -> Result<String> {
    let output = command.output();
    let output = output.with_context(|| format!("{command:?} can't be run"))?;
    ensure!(output.status.success(), "{command:?} has failed");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The version that a `go.mod` requires.
fn required(modules: &str, module: &str) -> Option<String> {
    modules.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == module).then(|| words.next().map(str::to_owned))?
    })
}

/// The version that a `Cargo.lock` has.
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
    fn versions_are_those_that_are_pinned() {
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
