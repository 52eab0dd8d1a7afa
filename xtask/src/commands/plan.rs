//! Determines for each documented command whether and how `cargo xtask commands` runs it.
//!
//! This module does not run commands.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::document::Command;
use super::exceptions;
use super::stages::{Stage, Stages};

/// Prefix of each documented command that runs `kube-informer-cli`.
const PROGRAM: &str = "cargo run --release --package kube-informer-cli -- ";

/// What `cargo xtask commands` does with a documented command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Start the command's server in the background, for the later commands of the same document.
    ///
    /// If an earlier command of the document has started a server, stop that server first.
    Serve,
    /// Run the command to its end against the running server.
    Run,
    /// Run the command until it has printed output, check that it still runs, and stop it.
    Watch,
    /// Run the command to its end without a server, with these additional options, which shorten the run.
    Shorten(&'static str),
    /// Do not run the command, because CI runs it in this stage.
    Stage(Stage),
    /// Do not run the command, for this reason.
    NotRun(&'static str),
}

/// Returns the action of each command, in the order of the commands.
///
/// # Errors
///
/// Returns an error with one line for each of these commands:
/// - A command for which no action is found.
/// - A command that needs a server that no earlier command in its document starts.
/// - A command that `exceptions.rs` lists, but that is in no document.
/// - A command that `exceptions.rs` lists, but that a CI stage already runs.
/// - A command in `README.md` or in the folder `docs` that `exceptions.rs` lists as not run.
pub(super) fn actions(commands: &[Command], stages: &Stages) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    let mut findings = Vec::new();
    let mut served_in = None;
    for command in commands {
        match action(command, stages, served_in == Some(&command.file)) {
            Ok(action) => {
                if action == Action::Serve {
                    served_in = Some(&command.file);
                }
                actions.push(action);
            }
            Err(finding) => {
                let Command { file, line, text } = command;
                findings.push(format!("{file}:{line}: `{text}` {finding}"));
            }
        }
    }
    findings.extend(unused(commands));
    ensure!(findings.is_empty(), "{}", findings.join("\n"));
    Ok(actions)
}

/// Returns the action of a command, or an error message if the command can't be run.
///
/// `is_served` is whether an earlier command in the document starts a server.
fn action(command: &Command, stages: &Stages, is_served: bool) -> Result<Action, String> {
    let text = command.text.as_str();
    let stage = stages.running(text);
    let not_run = exceptions::not_run(text);
    let shortened = exceptions::shortened(text);
    if let Some(stage) = stage {
        if not_run.is_some() || shortened.is_some() {
            return Err(format!(
                "is run by {stage}; remove it from xtask/src/commands/exceptions.rs"
            ));
        }
        return Ok(Action::Stage(stage.clone()));
    }
    if let Some(reason) = not_run {
        if command.must_run() {
            return Err("is not run by CI; every command of README.md and docs is".to_owned());
        }
        return Ok(Action::NotRun(reason));
    }
    if let Some(options) = shortened {
        return Ok(Action::Shorten(options));
    }
    let action = session(text).ok_or(
        "is run by no stage of .ci/run and belongs to no server; let a stage run it, or give the reason in xtask/src/commands/exceptions.rs",
    )?;
    if action != Action::Serve && !is_served {
        return Err(
            "needs a server; a command above it in the same file must start one".to_owned(),
        );
    }
    Ok(action)
}

/// Returns the action of a command that starts or uses a server, or `None` for any other command.
fn session(text: &str) -> Option<Action> {
    let mut words = text.strip_prefix(PROGRAM).unwrap_or(text).split(' ');
    let is_program = text.starts_with(PROGRAM);
    match words.next()? {
        "serve" if is_program => Some(Action::Serve),
        "demo" if is_program && words.any(|word| word == "--kubeconfig") => Some(Action::Run),
        "kubectl" if words.any(|word| word == "--watch") => Some(Action::Watch),
        "kubectl" | "curl" => Some(Action::Run),
        _ => None,
    }
}

/// Returns an error text for each command that `exceptions.rs` lists, but that no Markdown file contains.
fn unused(commands: &[Command]) -> impl Iterator<Item = String> {
    let texts: BTreeSet<_> = commands
        .iter()
        .map(|command| command.text.as_str())
        .collect();
    let unused = exceptions::all().filter(move |text| !texts.contains(text));
    unused.map(|text| {
        format!("xtask/src/commands/exceptions.rs: no document has `{text}`; remove the entry")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVE: &str = "cargo run --release --package kube-informer-cli -- serve --churn 5/s";

    fn command(file: &str, text: &str) -> Command {
        Command {
            file: file.to_owned(),
            line: 3,
            text: text.to_owned(),
        }
    }

    fn of(file: &str, text: &str, is_served: bool) -> Result<Action, String> {
        let stages = Stages::parse(
            "STAGES=(test)\nstage_test() {\n    cargo test --workspace\n    bash .ci/run\n}\n",
        );
        action(&command(file, text), &stages, is_served)
    }

    #[test]
    fn commands_of_a_session_have_the_expected_actions() {
        let docs = "docs/server.md";
        let demo = format!("{PROGRAM}demo --kubeconfig \"$KUBECONFIG\" --act");
        for (text, expected) in [
            (SERVE, Action::Serve),
            (&demo, Action::Run),
            ("kubectl get pods --watch", Action::Watch),
            ("kubectl get pods", Action::Run),
            ("curl http://ADDRESS/faults", Action::Run),
        ] {
            assert_eq!(of(docs, text, true), Ok(expected));
        }
        assert_eq!(of(docs, SERVE, false), Ok(Action::Serve));
        let error = of(docs, "kubectl get pods", false).unwrap_err();
        assert!(error.starts_with("needs a server"), "{error}");
    }

    #[test]
    fn a_command_without_a_category_is_a_finding() {
        for text in ["cargo test", "ls", "serve", &format!("{PROGRAM}demo")] {
            let error = of("docs/a.md", text, true).unwrap_err();
            assert!(error.starts_with("is run by no stage"), "{text}: {error}");
        }
    }

    #[test]
    fn an_exception_is_neither_in_the_documentation_nor_in_a_stage() {
        let text = "cargo xtask kinds";
        let action = of("CONTRIBUTING.md", text, false);
        assert!(matches!(action, Ok(Action::NotRun(_))), "{action:?}");
        assert!(of("docs/a.md", text, false).is_err());
        let error = of("CONTRIBUTING.md", "bash .ci/run", false).unwrap_err();
        assert!(error.starts_with("is run by stage test"), "{error}");
    }

    #[test]
    fn findings_have_their_place_and_unused_entries_are_findings() {
        let stages = Stages::parse("");
        let commands: Vec<_> = exceptions::all()
            .skip(1)
            .map(|text| command("a.md", text))
            .chain([command("docs/b.md", "ls")])
            .collect();
        let findings = actions(&commands, &stages).unwrap_err().to_string();
        let findings: Vec<_> = findings.lines().collect();
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("docs/b.md:3: `ls` is run by no stage"));
        assert!(findings[1].contains("no document has `cargo install kube-informer-cli`"));
    }
}
