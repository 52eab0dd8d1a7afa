//! Rules `dead-path` and `dead-test`: the documentation names only files and tests that exist.
//!
//! The rule `dead-path` checks the documents in [`MAPS`], and the rule `dead-test` checks [`CLIENT_GO`].

use std::collections::BTreeSet;

use super::finding::Finding;
use super::rust::{Source, tokens};
use crate::tree::Tree;

/// Documents whose file paths the rule `dead-path` checks.
const MAPS: [&str; 4] = [
    "ARCHITECTURE.md",
    CLIENT_GO,
    "docs/from-client-go.md",
    "docs/from-kube-rs.md",
];

/// Document with tables of client-go's behaviors and defects, which name tests in the last column.
const CLIENT_GO: &str = "docs/client-go.md";

/// Character in the first column of each table row that describes a behavior of client-go.
const STAR: char = '★';

/// First letters of the numbers of client-go's defects, such as `D` in `D7`.
///
/// `D` is a defect of the informer, `W` is a defect of the work queue, and `S` is a minor defect.
const DEFECTS: [char; 3] = ['D', 'W', 'S'];

/// Returns a finding for each nonexistent path that the documents [`MAPS`] contain in backticks.
///
/// A path may be relative to any folder, and `a/{b,c}.rs` stands for two paths.
pub(super) fn paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (map, line, quoted) in MAPS.iter().flat_map(|map| all_quoted(tree, map)) {
        for path in expand(quoted).into_iter().filter(|path| is_path(path)) {
            if !tree.contains_below(&path) {
                let advice = format!("`{path}` does not exist; correct the path");
                findings.push(Finding::new(map, line, "dead-path", advice));
            }
        }
    }
    findings
}

/// Returns a finding for each missing test that [`CLIENT_GO`] names.
pub(super) fn tests(tree: &Tree, sources: &[Source<'_>]) -> Vec<Finding> {
    let Some(text) = tree.text(CLIENT_GO) else {
        return Vec::new();
    };
    let known = functions(sources);
    let mut findings = Vec::new();
    for (index, row) in text.lines().enumerate() {
        let cells: Vec<_> = row.trim().trim_matches('|').split('|').collect();
        let [first, .., last] = cells.as_slice() else {
            continue;
        };
        if !first.contains(STAR) && !is_defect(first.trim()) {
            continue;
        }
        for name in quoted(last).filter_map(|name| name.rsplit("::").next()) {
            if is_function(name) && !known.contains(name) {
                let advice = format!("no test is called `{name}`; correct the name of the test");
                findings.push(Finding::new(CLIENT_GO, index + 1, "dead-test", advice));
            }
        }
    }
    findings
}

/// Returns whether a table cell is the number of a defect, such as `D7`.
fn is_defect(cell: &str) -> bool {
    let number = cell.strip_prefix(DEFECTS).unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

/// Returns each text in backticks in the document at the path `map`.
///
/// Each result is a tuple of `map`, the line number and the text. The first line has the number 1.
fn all_quoted<'a>(
    tree: &'a Tree,
    map: &'a str,
) -> impl Iterator<Item = (&'a str, usize, &'a str)> + 'a {
    let lines = tree.text(map).unwrap_or_default().lines().enumerate();
    lines.flat_map(move |(index, line)| quoted(line).map(move |piece| (map, index + 1, piece)))
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns `a/b.rs` and `a/c.rs` for `a/{b,c}.rs`, and any other text unchanged.
fn expand(quoted: &str) -> Vec<String> {
    let braces = quoted.split_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        Some(
            inside
                .split(',')
                .map(|part| format!("{before}{}{after}", part.trim()))
                .collect(),
        )
    });
    braces.unwrap_or_else(|| vec![quoted.to_owned()])
}

/// Returns whether `text` has the form of a file path of this repository.
///
/// The bare file name `mod.rs` does not count as a path.
fn is_path(text: &str) -> bool {
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let ending = [".rs", ".md", ".toml"]
        .iter()
        .any(|ending| text.ends_with(ending));
    plain && text != "mod.rs" && (ending || text.starts_with("crates/"))
}

/// Returns whether `name` has the form of a function name: lower case, with an underscore.
fn is_function(name: &str) -> bool {
    name.contains('_')
        && name
            .chars()
            .all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// Returns the names of all functions in the test code of `sources`.
fn functions(sources: &[Source<'_>]) -> BTreeSet<String> {
    let tests = sources
        .iter()
        .flat_map(|source| source.tests.iter().map(|range| &source.code[range.clone()]));
    tests
        .flat_map(|code| {
            let tokens = tokens(code);
            let names = tokens.windows(2).filter(|pair| pair[0].text == "fn");
            names
                .map(|pair| pair[1].text.to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_path_is_reported_and_a_path_relative_to_any_folder_is_found() {
        let tree = Tree::of(&[
            (
                "ARCHITECTURE.md",
                "Read `queue/in_order.rs`, then\n`queue/{in_order,gone}.rs` in `crates/informer` or `crates/none`.",
            ),
            ("crates/informer/src/queue/in_order.rs", ""),
        ]);
        let found: Vec<_> = paths(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "ARCHITECTURE.md:2: dead-path: `queue/gone.rs` does not exist; correct the path",
                "ARCHITECTURE.md:2: dead-path: `crates/none` does not exist; correct the path",
            ]
        );
    }

    #[test]
    fn the_end_of_a_file_name_is_not_a_path() {
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", "`order.rs`"),
            ("crates/informer/src/in_order.rs", ""),
        ]);
        assert_eq!(paths(&tree).len(), 1);
    }

    #[test]
    fn go_files_globs_and_urls_are_not_checked() {
        let tree = Tree::of(&[(
            "docs/client-go.md",
            "`tools/cache/store.go` `crates/*/src` `https://a.b/c.md` `mod.rs` `Deleted::Known` `a b.rs`",
        )]);
        assert_eq!(paths(&tree), []);
    }

    #[test]
    fn a_starred_row_must_name_tests_that_exist() {
        let table = "| ★ | behaviour | test |\n|---|---|---|\n\
                     | ★1 | `not_here` | `queue::tests::a_relist_is_atomic`, `Deleted::Known` |\n\
                     | ★2 | x | `nobody_wrote_this` |\n| 3 | x | `nor_this` |\n";
        let tree = Tree::of(&[(CLIENT_GO, table)]);
        let source = Source::new("src/queue/tests.rs", "fn a_relist_is_atomic() {}");
        let found: Vec<_> = super::tests(&tree, &[source])
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "docs/client-go.md:4: dead-test: no test is called `nobody_wrote_this`; correct the name of the test"
            ]
        );
    }

    #[test]
    fn a_row_of_a_defect_must_name_tests_that_exist() {
        let table = "| D1 | x | `nobody_wrote_this` |\n| S12 | x | `nor_this` |\n\
                     | Done | x | `no_row_of_a_defect` |\n| D | x | `not_this_one` |\n";
        let tree = Tree::of(&[(CLIENT_GO, table)]);
        let lines: Vec<_> = super::tests(&tree, &[])
            .iter()
            .map(|found| found.to_string().split(": ").next().unwrap().to_owned())
            .collect();
        assert_eq!(lines, ["docs/client-go.md:1", "docs/client-go.md:2"]);
    }

    #[test]
    fn a_function_outside_of_tests_is_not_a_test() {
        let tree = Tree::of(&[(CLIENT_GO, "| ★1 | x | `pop_batch` |\n")]);
        let source = Source::new("src/queue.rs", "fn pop_batch() {}");
        assert_eq!(super::tests(&tree, &[source]).len(), 1);
    }

    #[test]
    fn a_missing_document_has_no_findings() {
        let tree = Tree::of(&[]);
        assert_eq!(
            (paths(&tree), super::tests(&tree, &[])),
            (Vec::new(), Vec::new())
        );
    }
}
