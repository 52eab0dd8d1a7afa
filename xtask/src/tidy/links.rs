//! Rule `dead-link`: relative links in Markdown files lead to existing files, folders and headings.
//!
//! The rule does not check links with a scheme, such as `https://`. rustdoc checks the links to Rust items in
//! the Markdown files below `crates`. The rule skips these links.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::markdown;
use crate::tree::Tree;

const RULE: &str = "dead-link";

/// Returns a finding for each dead link in a Markdown file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (document, text) in tree.files("md") {
        let prose = markdown::prose(text);
        for link in markdown::links(&prose) {
            let target = link.target;
            if has_scheme(target) || (document.starts_with("crates/") && is_item(target)) {
                continue;
            }
            if let Some(wrong) = wrong(tree, document, target) {
                let advice = format!("`{target}`: {wrong}");
                findings.push(Finding::new(document, link.line, RULE, advice));
            }
        }
    }
    findings
}

/// Returns the problem with the relative link `target` in `document`, if any.
fn wrong(tree: &Tree, document: &str, target: &str) -> Option<String> {
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let place = match path {
        "" => Some(document.to_owned()),
        path => resolve(document, path),
    };
    let Some(place) = place.filter(|place| !target.is_empty() && tree.has(place)) else {
        return Some("no such file or folder; link to where it is".to_owned());
    };
    let anchor = anchor?;
    let Some(text) = tree.text(&place).filter(|_| is_markdown(&place)) else {
        return Some("anchors are checked in Markdown only; link to the file".to_owned());
    };
    let anchors = markdown::anchors(text);
    (!anchors.contains(anchor)).then(|| missing(&place, anchor, &anchors))
}

fn missing(place: &str, anchor: &str, anchors: &BTreeSet<String>) -> String {
    let alike = |it: &&String| it.contains(anchor) || anchor.contains(it.as_str());
    let hint = anchors.iter().find(alike);
    let hint = hint.map_or_else(String::new, |anchor| format!("; there is `#{anchor}`"));
    format!("`{place}` has no such heading{hint}")
}

/// Resolves the link `path` in `document` to a path relative to the workspace root.
///
/// Returns `None` if the link leads out of the workspace.
fn resolve(document: &str, path: &str) -> Option<String> {
    let mut parts: Vec<_> = match path.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => document.split('/').collect(),
    };
    // Removes the file name of the document.
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_markdown(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, end)| end == "md")
}

fn has_scheme(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// Returns whether a link target looks like a Rust item, such as `crate::Snapshot`.
fn is_item(target: &str) -> bool {
    let name = target.split('#').next().unwrap_or_default();
    let in_name = |c: char| c.is_ascii_alphanumeric() || "_:@!()<>".contains(c);
    !name.is_empty() && name.chars().all(in_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(document: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (document, text),
            ("docs/other.md", "# Other\n\n## What's new\n"),
            ("docs/picture.svg", ""),
            ("src/lib.rs", "//! Root.\n"),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_resolve() {
        let text = "# Top\n[a](#top) [b](other.md) [c](other.md#whats-new) [d](../src) [e](../src/)\n\
                    [f](picture.svg) [g](/src/lib.rs) [h](./other.md) [i](../) [j](https://a.b/c.md#d)\n";
        assert_eq!(findings("docs/this.md", text), [""; 0]);
    }

    #[test]
    fn a_link_to_a_file_that_does_not_exist_is_reported_with_its_line() {
        assert_eq!(
            findings("docs/this.md", "Text.\n[a](docs/other.md)\n"),
            [
                "docs/this.md:2: dead-link: `docs/other.md`: no such file or folder; link to where it is"
            ]
        );
        for dead in ["other", "../../other.md", "../sr", "../srclib.rs", ""] {
            let found = findings("docs/this.md", &format!("[a]({dead})"));
            assert_eq!(found.len(), 1, "{dead}");
        }
    }

    #[test]
    fn a_missing_anchor_is_reported_with_a_similar_one() {
        assert_eq!(
            findings("README.md", "[a](docs/other.md#new)\n[b](#top)\n"),
            [
                "README.md:1: dead-link: `docs/other.md#new`: `docs/other.md` has no such heading; there is `#whats-new`",
                "README.md:2: dead-link: `#top`: `README.md` has no such heading",
            ]
        );
    }

    #[test]
    fn an_anchor_into_another_file_is_reported() {
        let found = findings("README.md", "[a](src/lib.rs#L1)\n");
        assert!(found[0].contains("link to the file"), "{found:?}");
    }

    #[test]
    fn links_to_items_are_not_checked_in_crates() {
        let items = "[a](crate::Snapshot) [b](Server::listen#notes) [c](fn@take()) [d](Snapshot)\n";
        assert_eq!(findings("crates/a/guide.md", items), [""; 0]);
        assert_eq!(findings("docs/guide.md", items).len(), 4);
        let file = "[a](other.md)\n[b](#none)\n";
        assert_eq!(findings("crates/a/guide.md", file).len(), 2);
    }
}
