//! Rule `dev-version`: a dev-dependency on a crate of this workspace has a path and no version.
//!
//! If a dev-dependency has a version, Cargo can publish the crate only after the dependency. Two crates that
//! have such dev-dependencies on each other can't be published.

use std::collections::BTreeSet;

use super::finding::Finding;
use crate::tree::Tree;

/// A line `key = value` of a `Cargo.toml`, and the TOML table that contains the line.
pub(super) struct Entry<'a> {
    pub(super) table: &'a str,
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    pub(super) line: usize,
}

/// Returns a finding for each versioned dev-dependency on a workspace crate.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = || {
        tree.files("toml")
            .filter(|(path, _)| path.ends_with("Cargo.toml"))
    };
    let ours: BTreeSet<_> = manifests().filter_map(|(_, text)| package(text)).collect();
    let mut findings = Vec::new();
    for (path, text) in manifests() {
        for entry in entries(text).filter(|entry| carries_version(entry, &ours)) {
            let advice =
                "a dev-dependency on a crate of this workspace has only `{ path = \"…\" }`";
            findings.push(Finding::new(path, entry.line, "dev-version", advice));
        }
    }
    findings
}

/// Returns all `key = value` lines of a `Cargo.toml`. Each value must be on one line.
pub(super) fn entries(manifest: &str) -> impl Iterator<Item = Entry<'_>> {
    let mut table = "";
    manifest
        .lines()
        .enumerate()
        .filter_map(move |(index, line)| {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                table = header.split(']').next().unwrap_or_default();
                return None;
            }
            let (key, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
            Some(Entry {
                table,
                key: key.trim(),
                value: value.trim(),
                line: index + 1,
            })
        })
}

fn package(manifest: &str) -> Option<&str> {
    entries(manifest)
        .find(|entry| entry.table == "package" && entry.key == "name")
        .map(|entry| entry.value.trim_matches('"'))
}

fn carries_version(entry: &Entry<'_>, ours: &BTreeSet<&str>) -> bool {
    const TABLE: &str = "dev-dependencies";
    let is_table = |table: &str| table == TABLE || table.ends_with(".dev-dependencies");
    if is_table(entry.table) {
        let (name, setting) = entry.key.split_once('.').unwrap_or((entry.key, ""));
        let inline = entry.value.starts_with('"')
            || entry.value.contains("version")
            || entry.value.contains("workspace");
        return ours.contains(name) && (inline || matches!(setting, "version" | "workspace"));
    }
    let Some((table, name)) = entry.table.rsplit_once('.') else {
        return false;
    };
    is_table(table) && ours.contains(name) && matches!(entry.key, "version" | "workspace")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(dev: &str) -> Vec<usize> {
        let manifest = format!("[package]\nname = \"informer\"\n{dev}");
        let server = "[package]\nname = \"apiserver\"\n";
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", &manifest),
            ("crates/b/Cargo.toml", server),
        ]);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_version_of_an_internal_dev_dependency_is_reported_in_each_notation() {
        let text = "[dev-dependencies]\napiserver = { path = \"../b\", version = \"1\" }\napiserver.workspace = true\n\
                    apiserver = { workspace = true }\napiserver = \"1\"\n\
                    [dev-dependencies.apiserver]\npath = \"../b\"\nversion = \"1\"\n";
        assert_eq!(lines(text), [4, 5, 6, 7, 10]);
    }

    #[test]
    fn a_path_without_a_version_and_other_crates_are_accepted() {
        let text = "[dev-dependencies]\napiserver = { path = \"../b\", features = [\"client\"] }\ntokio = \"1\"\n\
                    [dependencies]\napiserver = { workspace = true }\n";
        assert_eq!(lines(text), [0; 0]);
    }

    #[test]
    fn a_table_of_one_platform_is_checked() {
        assert_eq!(
            lines("[target.'cfg(unix)'.dev-dependencies]\napiserver = \"1\"\n"),
            [4]
        );
    }
}
