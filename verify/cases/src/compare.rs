//! Runs API cases, and compares the responses of a server with the expected ones in the files of the cases.
//!
//! Prints the differences. With `--write`, writes the responses to the files of the cases instead.

use std::{fmt::Write as _, fs, path::PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use futures_util::{StreamExt as _, stream};
use harness::report::{say, workspace};
use tokio::time::Instant;

use crate::{
    case::{Case, Step},
    divergences::{self, DOCUMENT, Divergences, FILE},
    run,
    target::{Connection, Target},
    trace::{self, Owners},
};

/// Run API cases, and compare the responses with the expected ones
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// Server that runs the cases
    #[arg(long, value_enum, default_value_t = Target::Embedded)]
    target: Target,
    /// Run only the cases whose name contains this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    case: Vec<String>,
    /// Write the responses into the cases, instead of comparing them. With `--target embedded`, write only
    /// into the cases that `verify/server-divergences.toml` names, because only their responses may differ
    #[arg(long)]
    write: bool,
    /// Write `docs/CONFORMANCE-SERVER.md`, and run nothing
    #[arg(long)]
    document: bool,
}

/// Number of cases that run concurrently. Some cases wait for three seconds, and other cases run meanwhile.
const AT_ONCE: usize = 8;

/// Folder of the cases, relative to the workspace.
const FOLDER: &str = "verify/cases";

/// Start of the names of cases whose responses have `managedFields`.
const WITH_OWNERS: &str = "apply/";

fn folder() -> PathBuf {
    workspace().join(FOLDER)
}

impl Arguments {
    /// Runs the selected cases, and returns whether all responses are as expected.
    ///
    /// # Errors
    /// Returns an error if a case or the file `verify/server-divergences.toml` is invalid, or if the server
    /// does not start. The file lists the known differences between the servers.
    pub(crate) async fn run(&self) -> Result<bool> {
        let all = Case::all(&folder())?;
        let divergences = divergences::read()?;
        if self.document {
            divergences::check(&divergences, &all)?;
            let text = divergences::document(&divergences, &all);
            fs::write(workspace().join(DOCUMENT), text).context(DOCUMENT)?;
            return Ok(true);
        }
        if !self.write {
            divergences::check(&divergences, &all)?;
        }
        let is_selected = |case: &&Case| {
            self.case.is_empty() || self.case.iter().any(|text| case.name.contains(text))
        };
        let selected: Vec<_> = all.iter().filter(is_selected).collect();
        ensure!(!selected.is_empty(), "no case has such a name");
        if selected.iter().any(|case| case.has_controllers()) {
            self.target.prepare_controllers()?;
        }
        let server = self.target.start().await?;
        let collecting = self.target.start_collecting().await?;
        let begun = Instant::now();
        let run = |case| {
            let server = server_of(case, &server, collecting.as_ref());
            self.is_as_expected(case, server, &divergences)
        };
        // The embedded server does not run controllers for a case.
        let runs_alone = |case: &Case| {
            case.compacts() || (case.has_controllers() && self.target == Target::Apiserver)
        };
        let (alone, together): (Vec<_>, Vec<_>) =
            selected.iter().copied().partition(|case| runs_alone(case));
        let results = stream::iter(together).map(run);
        let mut results: Vec<_> = results.buffer_unordered(AT_ONCE).collect().await;
        for case in alone {
            results.push(run(case).await);
        }
        let failed = results.iter().filter(|is_expected| !**is_expected).count();
        say(&format!(
            "{} cases in {:.1} s: {} as expected, {failed} not",
            selected.len(),
            begun.elapsed().as_secs_f64(),
            selected.len() - failed,
        ));
        Ok(failed == 0)
    }

    /// Runs one case, and returns whether the server's responses are the expected ones.
    ///
    /// Reports each step whose response is not the expected one. If `self.write` is set, writes the responses
    /// to the file of the case instead.
    async fn is_as_expected(
        &self,
        case: &Case,
        server: &Connection,
        divergences: &Divergences,
    ) -> bool {
        let texts = async {
            let answers = run::run(case, server).await?;
            let owners = if case.name.starts_with(WITH_OWNERS) {
                Owners::Shown
            } else {
                Owners::Omitted
            };
            let texts = trace::texts(&answers, owners);
            if self.write && self.target == Target::Apiserver {
                let at = answers.iter().position(|answer| !answer.is_possible());
                if let Some(at) = at {
                    bail!(
                        "the script is wrong:\n{}{}",
                        case.steps[at].script(),
                        texts[at]
                    );
                }
            }
            anyhow::Ok(texts)
        };
        let texts = match texts.await {
            Ok(texts) => texts,
            Err(error) => {
                say(&format!("FAILED {}\n  {error:#}", case.name));
                return false;
            }
        };
        if self.write {
            let mut written = case.clone();
            let is_named = divergences::cases(divergences).contains(&*case.name);
            let mut is_as_expected = true;
            for (step, text) in written.steps.iter_mut().zip(texts) {
                match self.target {
                    Target::Apiserver => step.expected = text,
                    Target::Embedded if is_named => {
                        step.embedded = (text != step.expected).then_some(text);
                    }
                    Target::Embedded if text == step.expected => step.embedded = None,
                    Target::Embedded => is_as_expected = false,
                }
            }
            if let Err(error) = written.write(&folder()) {
                say(&format!("FAILED {}\n  {error:#}", case.name));
                return false;
            }
            if !is_as_expected {
                say(&format!("FAILED {}: not in {FILE}", case.name));
            }
            return is_as_expected;
        }
        let steps = case.steps.iter().zip(&texts);
        let differing = steps.filter(|(step, text)| self.expected(step) != *text);
        let mut is_as_expected = true;
        for (step, text) in differing {
            if is_as_expected {
                say(&format!("FAILED {}: {}", case.name, case.title()));
            }
            is_as_expected = false;
            say(&report(step.script(), self.expected(step), text));
        }
        is_as_expected
    }

    /// Returns the text that the server must respond at `step`.
    fn expected<'a>(&self, step: &'a Step) -> &'a String {
        match (self.target, &step.embedded) {
            (Target::Embedded, Some(embedded)) => embedded,
            _ => &step.expected,
        }
    }
}

/// Returns the server of a case: the one that collects garbage for a case with controllers, if there is one.
fn server_of<'a>(
    case: &Case,
    server: &'a Connection,
    collecting: Option<&'a Connection>,
) -> &'a Connection {
    let collecting = collecting.filter(|_| case.has_controllers());
    collecting.unwrap_or(server)
}

/// Returns `script`, then the different lines of `expected` after `-`, and those of `found` after `+`.
///
/// Equal lines at the start and at the end are omitted.
pub(crate) fn report(script: &str, expected: &str, found: &str) -> String {
    let mut text = script.to_owned();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (expected, found) = (lines(expected), lines(found));
    let same = expected
        .iter()
        .zip(&found)
        .take_while(|(one, other)| one == other);
    let before = same.count();
    let pairs = expected.iter().rev().zip(found.iter().rev());
    let same = pairs.take_while(|(one, other)| one == other).count();
    let after = same.min(expected.len().min(found.len()) - before);
    for line in &expected[before..expected.len() - after] {
        let _ = writeln!(text, "- {line}");
    }
    for line in &found[before..found.len() - after] {
        let _ = writeln!(text, "+ {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name of the file with the rules, in the folder of the cases.
    const RULES: &str = "RULES.md";

    #[test]
    fn a_report_has_only_the_lines_that_differ() {
        assert_eq!(
            report("> GET /\n", "200\n  a\n  b\n", "200\n  c\n  b\n"),
            "> GET /\n-   a\n+   c\n"
        );
        assert_eq!(report("", "a\n", "a\na\n"), "+ a\n");
    }

    #[test]
    fn each_rule_names_cases_that_exist_or_the_reason_why_it_has_none() {
        let all = Case::all(&folder()).unwrap();
        let text = fs::read_to_string(folder().join(RULES)).unwrap();
        let rows = text.lines().filter(|line| line.starts_with("| "));
        let rows = rows.filter(|row| !matches!(*row, "| Rule | Cases |" | "| --- | --- |"));
        let mut cases = 0;
        for row in rows {
            let (_, cell) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap();
            if cell.starts_with("not testable: ") {
                continue;
            }
            for name in cell.split(", ") {
                let exists = all.iter().any(|case| format!("`{}`", case.name) == name);
                assert!(exists, "{RULES} names {name}: {row}");
                cases += 1;
            }
        }
        assert!(cases > 0, "{RULES} has no rows");
    }

    #[test]
    fn the_document_in_the_repository_is_current() {
        let all = Case::all(&folder()).unwrap();
        let divergences = divergences::read().unwrap();
        divergences::check(&divergences, &all).unwrap();
        let text = fs::read_to_string(workspace().join(DOCUMENT)).unwrap();
        assert!(
            text == divergences::document(&divergences, &all),
            "run `cargo xtask conformance cases --document`"
        );
    }
}
