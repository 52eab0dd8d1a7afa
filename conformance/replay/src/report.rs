//! `docs/CONFORMANCE.md`: what the fixed seeds have shown, behaviour by behaviour.

use std::{fmt::Write as _, path::Path};

use anyhow::{Context as _, Result};

use crate::{component::Component, coverage::Coverage, divergences::Divergences, oracle::Version};

/// The file, in the workspace.
const FILE: &str = "docs/CONFORMANCE.md";

const OPENING: &str = "\
# Conformance

Written by `cargo xtask conformance oracle --fixed --write`, from what it saw.
client-go and this library were given the same sequences of operations, and every answer was compared.
A number says how often a behaviour was compared with that version, and `–` that the version does not have it, or can't be asked.
*Same* means that no answer differed; a name is that of a difference on purpose, which stands at the end.
How it is done stands in `conformance/oracle/README.md`.
";

/// The text for these components.
pub(crate) fn text(shown: &[(&Component, Coverage)], divergences: &Divergences) -> String {
    let mut text = OPENING.to_owned();
    for (component, coverage) in shown {
        text += &table(component, coverage);
    }
    text += "\n## Different on purpose\n\n";
    text += "| name | behaviour | client-go | here | why | how it is recognised | met |\n";
    text += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (name, divergence) in divergences {
        let met: usize = shown
            .iter()
            .filter_map(|(_, coverage)| coverage.accepted().get(name.as_str()))
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
        "\n## {}\n\n{} sequences, of {} operations in the middle.\n\n",
        component.name,
        coverage.sequences(),
        coverage.median()
    );
    text += "| behaviour | client-go 0.37 | client-go 0.32 | here |\n";
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
            format!("same but for {}", names.join(", "))
        };
        // Operations have the names that they have in a sequence.
        let behaviour = if behaviour.contains(' ') {
            (*behaviour).to_owned()
        } else {
            format!("`{behaviour}`")
        };
        let _ = writeln!(text, "| {behaviour} | {newest} | {old} | {here} |");
    }
    text
}

/// Writes the file, or compares it; whether it is now what it must be.
///
/// # Errors
/// It can't be read or written.
pub(crate) fn keep(root: &Path, text: &str, write: bool) -> Result<bool> {
    let path = root.join(FILE);
    if write {
        std::fs::write(path, text).context(FILE)?;
        return Ok(true);
    }
    let same = std::fs::read_to_string(path).is_ok_and(|kept| kept == text);
    if !same {
        crate::run::say(&format!(
            "{FILE} is out of date; write it with `cargo xtask conformance oracle --fixed --write`"
        ));
    }
    Ok(same)
}
