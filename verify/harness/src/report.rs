//! Prints reports, converts results to exit codes, and locates the workspace.

use std::{path::Path, process::ExitCode};

use anyhow::Result;

/// Writes a line to standard output.
#[expect(
    clippy::print_stdout,
    reason = "a program's report goes to standard output"
)]
pub fn say(line: &str) {
    println!("{line}");
}

/// Converts the result of a program to its exit code: success for `Ok(true)`, failure otherwise.
///
/// Writes an error to standard error.
pub fn exit(verdict: Result<bool>) -> ExitCode {
    match verdict {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the root folder of the workspace.
///
/// # Panics
/// Panics if the folder of this crate is not two levels below the root. The folder is `verify/harness`, so
/// this can't occur.
pub fn workspace() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("this crate is two folders below the root")
}
