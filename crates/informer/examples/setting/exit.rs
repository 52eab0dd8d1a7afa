//! How an example ends: whatever goes wrong is one line and a non-zero exit code.

use std::process::ExitCode;

/// Prints what went wrong, if anything, with its causes and without a backtrace.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
