//! How an example ends: whatever goes wrong is one line and a non-zero exit code.

use std::process::ExitCode;

/// Prints what went wrong, if anything, with its causes and without a backtrace.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", line(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes as one line; some errors print their cause themselves, which is left out
/// then.
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
