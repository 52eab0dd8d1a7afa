//! Runs the external programs that a release needs, such as `cargo`, `git` and `tar`.
//!
//! If a program fails, the returned error contains the command and the reason. Some errors also contain a
//! step that the maintainer can try.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Runs a program that writes directly to the terminal.
///
/// # Errors
///
/// Returns an error that ends with `next`, the maintainer's next step, if the program fails.
pub(super) fn run(command: &mut Command, next: &str) -> Result<()> {
    let line = line(command);
    let status = command
        .status()
        .with_context(|| format!("`{line}` can't be run"))?;
    ensure!(
        status.success(),
        "`{line}` failed ({status}), see above; {next}"
    );
    Ok(())
}

/// Runs a program, and returns its standard output.
///
/// # Errors
///
/// Returns an error if the program can't be started or fails, or if its output is not UTF-8.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command
        .output()
        .with_context(|| format!("`{line}` can't be run"))?;
    let reason = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "`{line}` failed: {}",
        reason.trim()
    );
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not write UTF-8"))
}

/// Formats `command` as a shell command line that starts with the program's file name.
fn line(command: &Command) -> String {
    let path = std::path::Path::new(command.get_program());
    let name = path.file_name().unwrap_or(path.as_os_str());
    let mut line = name.to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_its_reason_and_the_next_step() {
        let mut shell = Command::new("/bin/sh");
        let failed = output(shell.args(["-c", "echo full >&2; exit 3"])).unwrap_err();
        assert_eq!(
            failed.to_string(),
            "`sh -c echo full >&2; exit 3` failed: full"
        );
        let failed = run(Command::new("/bin/sh").args(["-c", "exit 3"]), "try again");
        assert_eq!(
            failed.unwrap_err().to_string(),
            "`sh -c exit 3` failed (exit status: 3), see above; try again"
        );
    }
}
