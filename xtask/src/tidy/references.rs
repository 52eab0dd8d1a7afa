//! Rules `dead-path` and `dead-test`: what the documents name exists.
//!
//! `ARCHITECTURE.md` and those in `docs` are maps, and a map with a wrong street is worse than none.
//! A document that does not exist names nothing.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::rust::{Source, tokens};
use crate::tree::Tree;

/// The documents whose paths are checked.
const MAPS: [&str; 4] = [
    "ARCHITECTURE.md",
    CLIENT_GO,
    "docs/from-client-go.md",
    "docs/from-kube-rs.md",
];

/// The document with the tables of client-go's behaviours and defects and the tests that pin them.
const CLIENT_GO: &str = "docs/client-go.md";

/// Marks the rows of a behaviour, in the first column.
const STAR: char = '★';

/// What the number of a defect begins with, in the first column: of the informer, of the work queue,
/// or a soft spot.
const DEFECTS: [char; 3] = ['D', 'W', 'S'];

/// Reports every path in backticks that leads nowhere.
///
/// A path counts from the workspace root or from any folder (`queue/in_order.rs`); `{a,b}` stands for each.
pub(super) fn paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (map, line, quoted) in MAPS.iter().flat_map(|map| all_quoted(tree, map)) {
        for path in expand(quoted).into_iter().filter(|path| is_path(path)) {
            if !tree.contains_below(&path) {
                let advice = format!("`{path}` does not exist; name where it is now");
                findings.push(Finding::new(map, line, "dead-path", advice));
            }
        }
    }
    findings
}

/// Reports every test that a row of a behaviour or a defect names in its last column and that no test code defines.
///
/// A name is a function in backticks, with or without a module path; a type in backticks is left to the compiler.
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
                let advice =
                    format!("no test is called `{name}`; name the test that pins this row");
                findings.push(Finding::new(CLIENT_GO, index + 1, "dead-test", advice));
            }
        }
    }
    findings
}

/// Whether it is the number of a defect, such as `D7`.
fn is_defect(cell: &str) -> bool {
    let number = cell.strip_prefix(DEFECTS).unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

/// Each piece in backticks with its file and line.
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

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`; anything else as it is.
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

/// Whether it can only mean a file or a crate of this repository; `mod.rs` is the name of a habit.
fn is_path(text: &str) -> bool {
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let ending = [".rs", ".md", ".toml"]
        .iter()
        .any(|ending| text.ends_with(ending));
    plain && text != "mod.rs" && (ending || text.starts_with("crates/"))
}

/// Whether it is spelt like a function, and not a single word that may mean anything.
fn is_function(name: &str) -> bool {
    name.contains('_')
        && name
            .chars()
            .all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// The names of all functions in test code.
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
    fn a_path_that_leads_nowhere_is_reported_and_one_from_any_folder_is_found() {
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
                "ARCHITECTURE.md:2: dead-path: `queue/gone.rs` does not exist; name where it is now",
                "ARCHITECTURE.md:2: dead-path: `crates/none` does not exist; name where it is now",
            ]
        );
    }

    #[test]
    fn half_a_file_name_is_no_path() {
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", "`order.rs`"),
            ("crates/informer/src/in_order.rs", ""),
        ]);
        assert_eq!(paths(&tree).len(), 1);
    }

    #[test]
    fn go_files_globs_urls_and_habits_are_not_paths_of_ours() {
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
                "docs/client-go.md:4: dead-test: no test is called `nobody_wrote_this`; name the test that pins this row"
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
    fn a_function_outside_of_tests_pins_nothing() {
        let tree = Tree::of(&[(CLIENT_GO, "| ★1 | x | `pop_batch` |\n")]);
        let source = Source::new("src/queue.rs", "fn pop_batch() {}");
        assert_eq!(super::tests(&tree, &[source]).len(), 1);
    }

    #[test]
    fn a_document_that_does_not_exist_names_nothing() {
        let tree = Tree::of(&[]);
        assert_eq!(
            (paths(&tree), super::tests(&tree, &[])),
            (Vec::new(), Vec::new())
        );
    }
}
