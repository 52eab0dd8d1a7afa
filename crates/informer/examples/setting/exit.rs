//! Converts the result of an example to an exit code, and prints an error as one line.

use std::process::ExitCode;

/// Returns the exit code for the result of an example.
///
/// If the result is an error, prints the error and its causes as one line to standard error.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", line(&error));
            ExitCode::FAILURE
        }
    }
}

/// Returns one line that contains an error and its causes.
///
/// A cause is omitted if the line already ends with the text of this cause.
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
