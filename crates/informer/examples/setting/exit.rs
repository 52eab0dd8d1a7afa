//! Converts an example's result to an exit code, and prints an error as one line.

use std::process::ExitCode;

/// Returns the exit code for `result`. Prints an error and its causes as one line to standard error.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", line(&error));
            ExitCode::FAILURE
        }
    }
}

/// Returns an error and its causes as one line.
///
/// A cause is omitted if the error text already ends with it.
fn line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error
        .chain()
        .map(|cause| cause.to_string().replace('\n', "; "))
    {
        if line.is_empty() {
            line = cause;
        } else if !line.ends_with(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}
