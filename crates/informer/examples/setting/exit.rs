//! The exit of an example: an error prints one line and sets a non-zero exit code.

use std::process::ExitCode;

/// Returns the exit code; prints an error with its causes and without a backtrace.
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
