//! Reads the intentional differences between the embedded server and kube-apiserver, and writes the document
//! that describes them.
//!
//! Guarantees: [`FILE`] names exactly the cases whose files contain a separate response of the embedded
//! server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::{Context as _, Result, bail, ensure};
use harness::report::workspace;
use serde::Deserialize;

use crate::case::Case;

/// Path of the file that describes the differences, relative to the workspace.
pub(crate) const FILE: &str = "verify/server-divergences.toml";

/// Path of the document, relative to the workspace.
pub(crate) const DOCUMENT: &str = "docs/CONFORMANCE-SERVER.md";

/// One difference between the embedded server and kube-apiserver.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Divergence {
    /// What differs, in one sentence.
    what: String,
    reason: String,
    /// What a user of the embedded server notices.
    user: String,
    /// The work that removes the difference, or `never`.
    until: String,
    /// Names of the cases that show the difference.
    pub(crate) cases: Vec<String>,
}

/// All differences, by name.
pub(crate) type Divergences = BTreeMap<String, Divergence>;

/// Reads the differences from [`FILE`].
///
/// # Errors
/// Returns an error if the file is missing or invalid.
pub(crate) fn read() -> Result<Divergences> {
    let text = std::fs::read_to_string(workspace().join(FILE)).context(FILE)?;
    toml::from_str(&text).context(FILE)
}

/// Returns the names of the cases in which the embedded server responds differently from kube-apiserver.
pub(crate) fn cases(divergences: &Divergences) -> BTreeSet<&str> {
    let cases = divergences
        .values()
        .flat_map(|divergence| &divergence.cases);
    cases.map(String::as_str).collect()
}

/// Checks that `divergences` names exactly the cases with a separate response of the embedded server.
///
/// # Errors
/// Returns an error if `divergences` omits such a case or names any other case. Also returns an error if a
/// file contains the same response for both servers. The error names the case.
pub(crate) fn check(divergences: &Divergences, all: &[Case]) -> Result<()> {
    let mut named = cases(divergences);
    for case in all {
        let differs = case.steps.iter().any(|step| step.embedded.is_some());
        let same = case
            .steps
            .iter()
            .find(|step| step.embedded.as_ref() == Some(&step.expected));
        if let Some(step) = same {
            bail!(
                "both responses in {} are the same; remove that of the embedded server, at\n{}",
                case.name,
                step.script()
            );
        }
        let is_named = named.remove(&*case.name);
        ensure!(
            !differs || is_named,
            "{} has responses of the embedded server, but {FILE} does not name it",
            case.name
        );
        ensure!(
            differs || !is_named,
            "{FILE} names {}, but the case has no responses of the embedded server; remove it there if the server now behaves like kube-apiserver, or run the cases with --write",
            case.name
        );
    }
    ensure!(
        named.is_empty(),
        "{FILE} names cases that do not exist: {named:?}"
    );
    Ok(())
}

/// Returns the document that lists the cases and describes the differences.
pub(crate) fn document(divergences: &Divergences, all: &[Case]) -> String {
    let mut text = String::from(
        "# The embedded server beside kube-apiserver\n\n\
         `cargo xtask conformance cases` runs the same cases on the embedded server and, with `--target apiserver`, on a real kube-apiserver 1.36.\n\
         A case is a script of requests with the expected responses; [`verify/cases`](../verify/cases/README.md) has them.\n\
         This page is written by `cargo xtask conformance cases --document`.\n\n",
    );
    let differing = cases(divergences).len();
    let _ = write!(
        text,
        "{} cases; in {differing} of them the embedded server responds differently.\n\n## Differences\n\n",
        all.len()
    );
    for (name, divergence) in divergences {
        let cases = divergence.cases.iter().map(|case| format!("`{case}`"));
        let _ = write!(
            text,
            "### {}\n\n{}\n\n- Reason: {}\n- What a user notices: {}\n- Until: {}\n- Cases: {}\n\n",
            name.replace('_', " "),
            divergence.what,
            divergence.reason,
            divergence.user,
            divergence.until,
            cases.collect::<Vec<_>>().join(", "),
        );
    }
    text.push_str("## Cases\n\n| case | |\n| --- | --- |\n");
    for case in all {
        let _ = writeln!(text, "| `{}` | {} |", case.name, case.title());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, responses: &str) -> Case {
        let text = format!("# A title\n\n> GET /a\n{responses}");
        Case::parse(name, &text).unwrap()
    }

    fn checked(named: &str, all: &[Case]) -> Result<(), String> {
        let text = format!(
            "[x]\nwhat = \"w\"\nreason = \"r\"\nuser = \"u\"\nuntil = \"never\"\ncases = [{named}]\n"
        );
        check(&toml::from_str(&text).unwrap(), all).map_err(|error| error.to_string())
    }

    #[test]
    fn exactly_the_named_cases_differ() {
        let same = case("same", "< 200 x\n");
        let differs = case("differs", "< 200 x\n<embedded 404 x\n");
        let twice = case("twice", "< 200 x\n<embedded 200 x\n");
        let fails = |named, case: &Case, part| {
            let error = checked(named, std::slice::from_ref(case)).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        assert_eq!(
            checked("\"differs\"", &[same.clone(), differs.clone()]),
            Ok(())
        );
        fails("", &differs, "does not name it");
        fails("\"same\"", &same, "has no responses of the embedded server");
        fails("\"twice\"", &twice, "are the same");
        fails("\"other\"", &same, "do not exist");
    }
}
