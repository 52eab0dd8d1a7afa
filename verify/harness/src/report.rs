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

/// Returns success for `Ok(true)`, otherwise failure. If `verdict` is an error, also writes the error to
/// standard error.
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
/// Panics if this crate is not two levels below the root.
pub fn workspace() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("this crate is two folders below the root")
}
