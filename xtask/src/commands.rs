//! `cargo xtask commands`: checks that the shell commands in the workspace's Markdown files work.
//!
//! The commands are the lines of code blocks with the language `sh`. The module handles each command as
//! follows:
//!
//! - It does not run a command that a stage of the CI script `.ci/run` already runs.
//! - It runs each command that starts or uses a server. These commands run in the order of the document.
//! - Any other command must have an entry in `exceptions.rs`. The entry contains the reason why CI does not
//!   run the command, or additional options with which the module runs the command.

mod shell;
mod document;
mod exceptions;
mod stages;
mod plan;
mod process;
mod server;
mod session;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::tree::Tree;
use document::Command;
use plan::Action;
use session::Session;
use stages::Stages;

/// Path of the CI script, relative to the root of the workspace.
const SCRIPT: &str = ".ci/run";

/// Document whose commands run before those of all other documents.
const FIRST: &str = "README.md";

/// Programs that must be installed, because the commands of the documents use them.
const PROGRAMS: [&str; 2] = ["curl", "kubectl"];

/// Checks each command in `documents`, or in all documents if the slice is empty.
///
/// Runs the commands that start or use a server. Any other command must be run by CI, or have an entry in
/// `exceptions.rs`. Passes a line about each command to `report`.
///
/// # Errors
///
/// Returns an error if a command fails, if a required entry in `exceptions.rs` is missing, or if a document
/// in `documents` has no commands.
pub(crate) fn run(root: &Path, documents: &[String], report: fn(&str)) -> Result<()> {
    let mut steps = plan(root)?;
    for document in documents {
        let has_commands = steps.iter().any(|(command, _)| command.file == *document);
        ensure!(
            has_commands,
            "{document} has no commands; name a Markdown file from the root of the workspace"
        );
    }
    if !documents.is_empty() {
        steps.retain(|(command, _)| documents.contains(&command.file));
    }
    prepare(root)?;
    let logs = logs()?;
    for document in steps.chunk_by(|(one, _), (next, _)| one.file == next.file) {
        let mut session = Session::new(root, &logs);
        for (command, action) in document {
            let Command { file, line, text } = command;
            let outcome = perform(&mut session, command, action)
                .with_context(|| format!("{file}:{line}: `{text}` failed"))?;
            report(&format!("{file}:{line}  {text}  →  {outcome}"));
        }
        session.end()?;
    }
    Ok(())
}

/// Returns the commands of all documents, each with its action.
///
/// # Errors
///
/// Returns an error if a file can't be read, or if [`plan::actions`] returns an error.
fn plan(root: &Path) -> Result<Vec<(Command, Action)>> {
    let script = root.join(SCRIPT);
    let script =
        fs::read_to_string(&script).with_context(|| format!("can't read {}", script.display()))?;
    let tree = Tree::read(root)?;
    let mut documents: Vec<_> = tree.files("md").collect();
    documents.sort_by_key(|&(path, _)| path != FIRST);
    let mut commands = Vec::new();
    for (path, text) in documents {
        commands.extend(document::read(path, text)?);
    }
    let actions = plan::actions(&commands, &Stages::parse(&script))?;
    Ok(commands.into_iter().zip(actions).collect())
}

fn perform(session: &mut Session<'_>, command: &Command, action: &Action) -> Result<String> {
    match action {
        Action::Serve => session.serve(command),
        Action::Run => session.run(command),
        Action::Watch => session.watch(command),
        Action::Shorten(options) => session.shorten(command, options),
        Action::Stage(stage) => Ok(stage.to_string()),
        Action::NotRun(reason) => Ok(format!("not run: {reason}")),
    }
}

/// Checks that the required programs are installed, and builds `kube-informer-cli`.
fn prepare(root: &Path) -> Result<()> {
    for program in PROGRAMS {
        let search = format!("command -v {program}");
        let found = process::command("bash", root)
            .args(["-c", &search])
            .output();
        let found = found.context("bash can't be run")?;
        ensure!(found.status.success(), "no {program}; install it");
    }
    // The time limit of a documented `cargo run` is too short for a build.
    let built = process::command("cargo", root)
        .args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "kube-informer-cli",
        ])
        .status()
        .context("cargo can't be run")?;
    ensure!(
        built.success(),
        "kube-informer-cli does not build, see above"
    );
    Ok(())
}

/// Creates the folder for the output files of the commands, and returns its path.
fn logs() -> Result<PathBuf> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let target = program
        .ancestors()
        .nth(2)
        .context("this program is in the target directory")?;
    let logs = target.join("commands");
    fs::create_dir_all(&logs).with_context(|| format!("can't create {}", logs.display()))?;
    Ok(logs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_documents_has_a_category() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let steps = plan(root).unwrap();
        assert_eq!(steps[0].0.file, FIRST);
    }
}
