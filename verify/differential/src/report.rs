//! Generates `docs/CONFORMANCE.md`, the page that lists how often each behavior was compared with client-go,
//! and which differences occurred.
//!
//! The results are those of the runs with fixed seeds. This module does not run the comparison.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use harness::report::{say, workspace};

use crate::{component::Component, coverage::Coverage, divergences::Divergences, oracle::Version};

/// Path of the conformance page, relative to the workspace.
const FILE: &str = "docs/CONFORMANCE.md";

const OPENING: &str = "\
# Conformance

`cargo xtask conformance oracle --fixed --write` writes this page from its results.
client-go and this library run the same sequences of operations, and every answer is compared.
A number is how often a behaviour was compared with that version; `–` means that the version does not support it.
*Same* means that no answer differed; a name refers to an intentional difference in the last table.
`verify/differential/README.md` describes the method.
";

/// Returns the text of the conformance page.
pub(crate) fn text(shown: &[(&Component, Coverage)], divergences: &Divergences) -> String {
    let mut text = OPENING.to_owned();
    for (component, coverage) in shown {
        text += &table(component, coverage);
    }
    text += "\n## Intentional differences\n\n";
    text += "| name | behaviour | client-go | library | reason | how it is recognised | occurrences |\n";
    text += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (name, divergence) in divergences {
        let met: usize = shown
            .iter()
            .map(|(_, coverage)| coverage.accepted().of(name.as_str()))
            .sum();
        let (behaviour, reason) = (&divergence.behaviour, &divergence.reason);
        let recognised = &divergence.recognised;
        let (theirs, ours) = (&divergence.client_go, &divergence.ours);
        let _ = writeln!(
            text,
            "| `{name}` | {behaviour} | {theirs} | {ours} | {reason} | {recognised} | {met} |"
        );
    }
    text
}

fn table(component: &Component, coverage: &Coverage) -> String {
    let mut text = format!(
        "\n## {}\n\n{} sequences, with a median of {} operations.\n\n",
        component.name,
        coverage.sequences(),
        coverage.median()
    );
    text += "| behaviour | client-go 0.37 | client-go 0.32 | library |\n";
    text += "| --- | --- | --- | --- |\n";
    for behaviour in component.behaviours {
        let asked = |version| match coverage.asked(version, behaviour) {
            0 => "–".to_owned(),
            times => times.to_string(),
        };
        let (newest, old) = (asked(Version::V37), asked(Version::V32));
        let names = coverage.divergences(behaviour);
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let here = if names.is_empty() {
            "same".to_owned()
        } else {
            format!("same except for {}", names.join(", "))
        };
        // The names of operations are formatted as code.
        let behaviour = if behaviour.contains(' ') {
            (*behaviour).to_owned()
        } else {
            format!("`{behaviour}`")
        };
        let _ = writeln!(text, "| {behaviour} | {newest} | {old} | {here} |");
    }
    text
}

/// Returns the lines of the conformance page, without each last cell that counts intentional differences.
///
/// These counts vary between runs, because client-go's retry delays are random.
fn repeatable(text: &str) -> Vec<&str> {
    let rows = text.lines().map(|line| {
        let row = line.strip_suffix(" |").unwrap_or(line);
        match row.rsplit_once(" | ") {
            Some((rest, last)) if last.starts_with("same") || last.parse::<u64>().is_ok() => rest,
            _ => line,
        }
    });
    rows.collect()
}

/// Writes the conformance page, or compares it with the existing file if `write` is false.
///
/// Returns whether the file is up to date.
///
/// # Errors
/// Returns an error if the file can't be written.
pub(crate) fn keep(text: &str, write: bool) -> Result<bool> {
    let path = workspace().join(FILE);
    if write {
        std::fs::write(path, text).context(FILE)?;
        return Ok(true);
    }
    let same =
        std::fs::read_to_string(path).is_ok_and(|kept| repeatable(&kept) == repeatable(text));
    if !same {
        say(&format!(
            "{FILE} is out of date; write it with `cargo xtask conformance oracle --fixed --write`"
        ));
    }
    Ok(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_random_parts_of_a_page_may_differ() {
        let kept = "| `close` | 3 | 2 | same |\n| `a_name` | what | yes | 907 |\n";
        let again = "| `close` | 3 | 2 | same except for `x` |\n| `a_name` | what | yes | 912 |\n";
        assert_eq!(repeatable(kept), repeatable(again));
        for other in [
            "| `close` | 4 | 2 | same |\n| `a_name` | what | yes | 907 |\n",
            "| `close` | 3 | 2 | same |\n| `a_name` | what | no | 907 |\n",
            "| `close` | 3 | 2 | same |\n",
        ] {
            assert_ne!(repeatable(kept), repeatable(other), "{other}");
        }
    }
}
