//! Rule `stale-listing`: code blocks in Markdown files match the source files that they quote.
//!
//! - After a line `<!-- from: PATH -->`, the fenced code block must contain consecutive lines of the file
//!   `PATH`. The lines in the file can have additional indentation.
//! - After a line `<!-- diff: BEFORE AFTER -->`, the fenced code block must be the output of `diff -u` for
//!   the two files.
//!
//! The rule does not check other code blocks.

use super::finding::Finding;
use crate::tree::Tree;

const RULE: &str = "stale-listing";

/// Returns a finding for each `from:` or `diff:` comment without a matching code block.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (document, text) in tree.files("md") {
        let lines: Vec<_> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(claim) = Claim::of(line) else {
                continue;
            };
            let advice = match block(&lines[at + 1..]) {
                Some(block) => claim.check(tree, block),
                None => Some("no fenced block follows; put one on the next line".to_owned()),
            };
            findings.extend(advice.map(|advice| Finding::new(document, at + 1, RULE, advice)));
        }
    }
    findings
}

/// The source files that the comment before a code block names.
enum Claim<'a> {
    From(&'a str),
    Diff(&'a str, &'a str),
}

impl<'a> Claim<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let comment = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        if let Some(file) = comment.strip_prefix("from: ") {
            return Some(Self::From(file));
        }
        let (before, after) = comment.strip_prefix("diff: ")?.split_once(' ')?;
        Some(Self::Diff(before, after))
    }

    /// Returns the problem with a code block, or `None` if it matches its source files.
    fn check(&self, tree: &Tree, block: &[&str]) -> Option<String> {
        let read = |path: &str| {
            let text = tree.text(path).map(|text| text.lines().collect::<Vec<_>>());
            text.ok_or_else(|| format!("`{path}` does not exist; correct the path"))
        };
        match self {
            Self::From(path) => match read(path) {
                Ok(file) => (!stands_in(block, &file))
                    .then(|| format!("these lines are not in `{path}`; copy them from the file")),
                Err(missing) => Some(missing),
            },
            Self::Diff(before, after) => match (read(before), read(after)) {
                (Ok(old), Ok(new)) => (!is_difference(block, &old, &new)).then(|| {
                    format!("the diff is out of date; copy that of `diff -u {before} {after}`")
                }),
                (Err(missing), _) | (_, Err(missing)) => Some(missing),
            },
        }
    }
}

/// Returns the lines inside the complete fenced code block at the start of `lines`.
fn block<'a, 'b>(lines: &'b [&'a str]) -> Option<&'b [&'a str]> {
    let (first, rest) = lines.split_first()?;
    let end = rest.iter().position(|line| *line == "```")?;
    first.starts_with("```").then(|| &rest[..end])
}

/// Returns whether `file` contains the lines of `block` consecutively.
///
/// The lines in `file` can have additional indentation, if it is the same for all lines.
fn stands_in(block: &[&str], file: &[&str]) -> bool {
    let Some(first) = block.first() else {
        return false;
    };
    file.windows(block.len()).any(|window| {
        let Some(indent) = window[0].strip_suffix(first) else {
            return false;
        };
        indent.trim().is_empty()
            && block.iter().zip(window).all(|(shown, is)| {
                is.strip_prefix(indent) == Some(*shown) || (shown.is_empty() && is.is_empty())
            })
    })
}

/// Returns whether the unified diff `diff` contains exactly the differences between `old` and `new`.
fn is_difference(diff: &[&str], old: &[&str], new: &[&str]) -> bool {
    let Some(first) = diff.iter().position(|line| line.starts_with("@@ ")) else {
        return false;
    };
    let (mut from, mut to) = (old.iter().copied(), new.iter().copied());
    for line in &diff[first..] {
        let fits = if let Some(start) = hunk_start(line) {
            // Lines between two hunks are equal.
            let between = start.saturating_sub(1 + old.len() - from.len());
            (0..between).all(|_| from.next() == to.next())
        } else if let Some(gone) = line.strip_prefix('-') {
            from.next() == Some(gone)
        } else if let Some(added) = line.strip_prefix('+') {
            to.next() == Some(added)
        } else {
            let same = Some(line.strip_prefix(' ').unwrap_or_default());
            from.next() == same && to.next() == same
        };
        if !fits {
            return false;
        }
    }
    from.eq(to)
}

/// Returns the line of the old file at which a hunk starts, such as 7 for `@@ -7,3 +7,4 @@`.
fn hunk_start(line: &str) -> Option<usize> {
    let ranges = line.strip_prefix("@@ -")?;
    let digits = ranges.split_once([',', ' '])?.0;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "a\nb\nc\nd\ne\nf\ng\nh\ni";
    const NEW: &str = "a\nB\nc\nd\ne\nf\ng\nh\ni\nj";
    const DIFF: &str =
        "--- old.rs\n+++ new.rs\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -8,2 +8,3 @@\n h\n i\n+j\n";

    fn findings(document: &str) -> Vec<String> {
        let code = "impl X {\n    fn f() {\n        g();\n\n        h();\n    }\n}";
        let tree = Tree::of(&[
            ("docs/a.md", document),
            ("code.rs", code),
            ("old.rs", OLD),
            ("new.rs", NEW),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_of_the_file_may_be_shown_with_less_indentation() {
        let shown =
            "text\n<!-- from: code.rs -->\n```rust\nfn f() {\n    g();\n\n    h();\n}\n```\n";
        assert_eq!(findings(shown), [""; 0]);
    }

    #[test]
    fn lines_that_are_not_in_the_file_are_reported_with_the_line_of_the_comment() {
        for stale in [
            "fn f() {\n    h();",
            "fn f() {\ng();",
            "h();\nx",
            "fn g() {}",
        ] {
            let shown = format!("text\n<!-- from: code.rs -->\n```rust\n{stale}\n```\n");
            let found = findings(&shown);
            assert_eq!(found.len(), 1, "{stale:?}");
            assert!(
                found[0].starts_with("docs/a.md:2: stale-listing: "),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_diff_must_be_complete() {
        let shown = |diff: &str| {
            findings(&format!(
                "<!-- diff: old.rs new.rs -->\n```diff\n{diff}```\n"
            ))
        };
        assert_eq!(shown(DIFF), [""; 0]);
        let second = "@@ -8,2 +8,3 @@\n h\n i\n+j\n";
        for stale in [
            DIFF.replace("+B", "+b"),
            DIFF.replace("-b", "-x"),
            DIFF.replace(" c", " x"),
            DIFF.replace(second, ""),
            second.to_owned(),
            String::new(),
        ] {
            assert_eq!(shown(&stale).len(), 1, "{stale}");
        }
    }

    #[test]
    fn a_missing_file_or_block_is_reported() {
        for (document, says) in [
            (
                "<!-- from: none.rs -->\n```\nx\n```",
                "`none.rs` does not exist",
            ),
            (
                "<!-- diff: old.rs none.rs -->\n```\nx\n```",
                "`none.rs` does not exist",
            ),
            ("<!-- from: code.rs -->\ntext", "no fenced block follows"),
            ("<!-- from: code.rs -->", "no fenced block follows"),
        ] {
            let found = findings(document);
            assert!(found.len() == 1 && found[0].contains(says), "{found:?}");
        }
    }

    #[test]
    fn other_comments_and_blocks_are_not_checked() {
        assert_eq!(
            findings("<!-- a comment -->\n```rust\nfn x() {}\n```\n"),
            [""; 0]
        );
    }
}
