//! Runs the `kubectl-informer` binary for the tests, and reads its output. Every wait has a time limit.

use std::{path::PathBuf, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// Maximum time of every wait for the binary, after which the test fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The exit code, standard output and standard error of a binary that has exited.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// One step of a control loop, parsed from a line of the output of `kubectl-informer demo`.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Time since the start of the demo, in seconds.
    pub(crate) at: f64,
    pub(crate) who: String,
    pub(crate) text: String,
    pub(crate) object: String,
    pub(crate) revision: u64,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-informer"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs the binary until it exits, and returns its exit code and output.
pub(crate) async fn run(arguments: &[&str]) -> Ended {
    let output = timeout(LONG, command(arguments).output())
        .await
        .unwrap_or_else(|_| panic!("{arguments:?} hangs"))
        .unwrap();
    Ended {
        code: output
            .status
            .code()
            .expect("the process was not ended by a signal"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        let Ended { out, err, .. } = &self;
        assert_eq!(self.code, code, "{out}\n{err}");
        self
    }

    /// Returns the steps of the control loops in the demo's output, in order.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.out.lines().filter_map(parsed_step).collect()
    }
}

/// Parses a line such as `  0.41s  WHO  TEXT  OBJECT  rv 17` of the demo's output.
fn parsed_step(line: &str) -> Option<Step> {
    let columns: Vec<_> = line
        .split("  ")
        .map(str::trim)
        .filter(|column| !column.is_empty())
        .collect();
    let [at, who, text, object, revision] = columns[..] else {
        return None;
    };
    Some(Step {
        at: at.strip_suffix('s')?.parse().ok()?,
        who: who.to_owned(),
        text: text.to_owned(),
        object: object.to_owned(),
        revision: revision.strip_prefix("rv ")?.parse().ok()?,
    })
}

/// A running process of the binary, which is killed on drop.
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let lines = BufReader::new(out).lines();
        Self { child, lines }
    }

    /// Reads lines of standard output until a line contains `text`, and returns this line.
    pub(crate) async fn line_with(&mut self, text: &str) -> String {
        let found = async {
            loop {
                let line = self.lines.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| panic!("the process ended without {text:?}"));
                if line.contains(text) {
                    return line;
                }
            }
        };
        timeout(LONG, found)
            .await
            .unwrap_or_else(|_| panic!("no line with {text:?}"))
    }

    /// Sends SIGKILL to the process, and waits until the process has ended.
    pub(crate) async fn kill(mut self) {
        timeout(LONG, self.child.kill()).await.unwrap().unwrap();
    }

    /// Sends a signal, such as `-INT`, and returns the exit code and the unread output.
    pub(crate) async fn end_by(mut self, signal: &str) -> Ended {
        let id = self.child.id().expect("the process runs").to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &id])
            .status()
            .unwrap();
        assert!(sent.success());
        let mut out = String::new();
        let ended = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                out.push_str(&line);
                out.push('\n');
            }
            self.child.wait_with_output().await.unwrap()
        };
        let output = timeout(LONG, ended)
            .await
            .unwrap_or_else(|_| panic!("the process continues after {signal}"));
        Ended {
            code: output
                .status
                .code()
                .expect("the process exited with a code"),
            out,
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Returns the path of the file `name` in this test process's own temporary directory.
pub(crate) fn file(name: &str) -> PathBuf {
    let own = std::process::id().to_string();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(own);
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}
