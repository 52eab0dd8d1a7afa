//! Builds and runs the oracle: a Go process that runs sequences of operations on client-go and returns the
//! answers.
//!
//! This module does not compare the answers with those of the library.

use std::{
    fmt,
    io::{BufRead as _, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use harness::report::workspace;

use crate::sequence::{Answer, Sequence};

/// A version of client-go against which the library is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// client-go 0.37, whose informers use `RealFIFO` and whose stores record a resource version.
    V37,
    /// client-go 0.32, the last version whose informers use only `DeltaFIFO`.
    V32,
}

impl Version {
    /// All versions of client-go against which the library is compared, newest first.
    pub(crate) const ALL: [Self; 2] = [Self::V37, Self::V32];

    /// Returns the name of the version's folder in `verify/differential/oracle`, which contains a Go module.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::V37 => "v37",
            Self::V32 => "v32",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V37 => "client-go 0.37",
            Self::V32 => "client-go 0.32",
        })
    }
}

/// A fake API server, which responds to client-go's requests while the oracle process runs a sequence.
pub(crate) trait Counterpart {
    /// Processes a line of the oracle process, and returns the response line, if one is expected.
    ///
    /// # Errors
    /// Returns an error if the line is malformed.
    fn hear(&mut self, line: &str) -> Result<Option<String>>;

    /// Ends the sequence. Adds the recorded data of each operation to the answer of the operation.
    ///
    /// `answers` has one element per operation.
    fn end(&mut self, answers: Vec<Option<Answer>>) -> Vec<Option<Answer>>;
}

/// A running Go process that executes operations on client-go, and ends on drop.
pub(crate) struct Oracle {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// Builds the oracle for a version of client-go, and returns the path of the binary.
    ///
    /// # Errors
    /// Returns an error if Go is missing or the build fails.
    pub(crate) fn build(version: Version) -> Result<PathBuf> {
        let module = workspace().join("verify/differential/oracle");
        let module = module.join(version.folder());
        let here = std::env::current_exe().context("this program has no path")?;
        let binary = here.with_file_name("oracle").join(version.folder());
        let status = Command::new("go")
            .args(["test", "-c", "-vet=off", "-o"])
            .arg(&binary)
            .arg(".")
            .current_dir(&module)
            .status()
            .context("no go; install Go 1.26 or newer from https://go.dev/dl")?;
        ensure!(status.success(), "{version} does not compile");
        Ok(binary)
    }

    /// Starts an oracle process from a binary that [`Oracle::build`] returned.
    ///
    /// # Errors
    /// Returns an error if the process can't be started.
    pub(crate) fn start(binary: &Path) -> Result<Self> {
        let mut child = Command::new(binary)
            .args(["-test.run=TestOracle", "-test.timeout=0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} can't be started", binary.display()))?;
        let input = child.stdin.take().map(BufWriter::new);
        let output = child.stdout.take().context("standard output is piped")?;
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// Runs the sequences on client-go, and returns one answer per operation.
    ///
    /// The answer is `None` for an operation that this version of client-go does not support.
    ///
    /// # Errors
    /// Returns an error if the oracle process has ended or returns a malformed answer.
    pub(crate) fn ask(&mut self, sequences: &[&Sequence]) -> Result<Vec<Vec<Option<Answer>>>> {
        let input = self.input.as_mut().context("the oracle is running")?;
        let output = &mut self.output;
        thread::scope(|scope| {
            // The sequences are written concurrently, so neither process blocks on a full pipe.
            let written = scope.spawn(|| -> Result<()> {
                for sequence in sequences {
                    serde_json::to_writer(&mut *input, sequence)?;
                    input.write_all(b"\n")?;
                }
                Ok(input.flush()?)
            });
            let mut answers = Vec::with_capacity(sequences.len());
            let mut line = String::new();
            for sequence in sequences {
                line.clear();
                output.read_line(&mut line)?;
                let steps: Vec<Option<Answer>> =
                    serde_json::from_str(&line).with_context(|| {
                        let asked = serde_json::to_string(sequence).unwrap_or_default();
                        format!("an oracle ended, or returned {line:?}, for the sequence {asked}")
                    })?;
                ensure!(
                    steps.len() == sequence.operations.len(),
                    "an oracle must return one answer per operation"
                );
                answers.push(steps);
            }
            written.join().expect("writing does not panic")?;
            Ok(answers)
        })
    }

    /// Runs one sequence on client-go, with `counterpart` as the API server of client-go.
    ///
    /// The oracle process sends each request of client-go as a line of text, and `counterpart` responds.
    /// Further lines report that `counterpart` must execute the next step of an operation, or that client-go
    /// has closed a response body.
    ///
    /// # Errors
    /// Returns the errors of [`Oracle::ask`], and the errors of the counterpart.
    pub(crate) fn converse(
        &mut self,
        sequence: &Sequence,
        counterpart: &mut dyn Counterpart,
    ) -> Result<Vec<Option<Answer>>> {
        let mut say = serde_json::to_string(sequence)?;
        let mut line = String::new();
        loop {
            let input = self.input.as_mut().context("the oracle is running")?;
            input.write_all(say.as_bytes())?;
            input.write_all(b"\n")?;
            input.flush()?;
            say = loop {
                line.clear();
                self.output.read_line(&mut line)?;
                if line.starts_with('[') {
                    let steps: Vec<Option<Answer>> = serde_json::from_str(&line)?;
                    ensure!(
                        steps.len() == sequence.operations.len(),
                        "an oracle must return one answer per operation"
                    );
                    return Ok(counterpart.end(steps));
                }
                if let Some(reply) = counterpart.hear(&line)? {
                    break reply;
                }
            };
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // The process ends when its input is closed.
        self.input = None;
        let _ = self.child.wait();
    }
}
