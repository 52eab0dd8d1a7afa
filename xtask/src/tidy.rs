//! Implements `cargo xtask tidy`: checks the project's rules that neither the compiler nor clippy checks.
//!
//! Each rule is a function that receives the text of files and returns [`Finding`]s. Rules parse tokens or
//! lines instead of syntax trees. A rule can therefore overlook a violation in unusual code. A test of
//! `xtask` runs all rules on this workspace.

mod finding;
mod rust;
mod paths;
mod crates;
mod names;
mod sizes;
mod select;
mod markdown;
mod prose;
mod phrases;
mod manifests;
mod imports;
mod circles;
mod signatures;
mod listings;
mod links;
mod references;

use std::path::Path;

use anyhow::Result;

use crate::tree::Tree;
use finding::Finding;
use rust::Source;

/// Folder of the crate whose public signatures the rule `foreign-type` checks.
const LIBRARY: &str = "crates/informer";

/// Runs all rules on the workspace at `root`, and returns their findings sorted by path and line.
///
/// # Errors
///
/// Returns an error if a file can't be read.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    Ok(check_tree(&Tree::read(root)?))
}

fn check_tree(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sources: Vec<_> = tree
        .files("rs")
        .map(|(path, text)| Source::new(path, text))
        .collect();
    for source in &sources {
        findings.extend(names::check(source.path));
        findings.extend(names::opening(source));
        findings.extend(sizes::check(source));
        findings.extend(select::check(source));
        findings.extend(prose::code(source));
        findings.extend(phrases::code(source));
    }
    for (path, text) in tree.files("md") {
        findings.extend(prose::markdown(path, text));
        findings.extend(phrases::check(path, text));
    }
    findings.extend(imports::check(&sources));
    findings.extend(circles::check(&sources));
    findings.extend(library(tree, &sources));
    findings.extend(listings::check(tree));
    findings.extend(links::check(tree));
    findings.extend(references::paths(tree));
    findings.extend(references::tests(tree, &sources));
    findings.extend(manifests::check(tree));
    findings.sort();
    findings
}

/// Runs the rules that apply only to the crate [`LIBRARY`], and returns their findings.
fn library(tree: &Tree, sources: &[Source<'_>]) -> Vec<Finding> {
    let Some(manifest) = tree.text(&format!("{LIBRARY}/Cargo.toml")) else {
        return Vec::new();
    };
    let foreign = signatures::foreign(manifest);
    let folder = format!("{LIBRARY}/src/");
    let files = sources.iter();
    let files = files.filter(|source| source.path.starts_with(&folder));
    files
        .flat_map(|source| signatures::check(source, &foreign))
        .collect()
}

#[cfg(test)]
mod tests;
