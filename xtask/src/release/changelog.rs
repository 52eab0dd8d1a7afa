//! Reads the release notes of a version from `CHANGELOG.md`.
//!
//! Each section of the file has a heading such as `## 0.2.0`, `## [0.2.0] - 2026-12-01` or `## Unreleased`.
//! The module does not check whether the entries of a section are complete.

use anyhow::{Context as _, Result, ensure};

/// Title of the changelog section for changes that are not released yet.
const UNRELEASED: &str = "Unreleased";

/// A section of the changelog: the release notes of a version, or the section `Unreleased`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Entries of the section in Markdown, without the heading.
    pub(super) notes: String,
    /// `true` for the section of a version, and `false` for the section `Unreleased`.
    pub(super) is_dated: bool,
}

/// Returns the section for `version`, or the section `Unreleased` if there is none for `version`.
///
/// # Errors
///
/// Returns an error if the section has no entry, or if both sections exist and `Unreleased` has entries.
pub(super) fn section(changelog: &str, version: &str) -> Result<Section> {
    let unreleased = find(changelog, UNRELEASED).unwrap_or_default();
    let Some(notes) = find(changelog, version) else {
        ensure!(
            !unreleased.is_empty(),
            "CHANGELOG.md has no entries for {version}; add a section `## {version}` or `## {UNRELEASED}`"
        );
        return Ok(Section {
            notes: unreleased,
            is_dated: false,
        });
    };
    ensure!(
        unreleased.is_empty(),
        "CHANGELOG.md has entries in `## {UNRELEASED}` and `## {version}`; raise `version` in Cargo.toml, or move them to `## {version}`"
    );
    ensure!(
        !notes.is_empty(),
        "the section `## {version}` of CHANGELOG.md has no entry; describe what changed for users"
    );
    Ok(Section {
        notes,
        is_dated: true,
    })
}

/// Returns the text between the heading `title` and the next heading of level 2.
///
/// Returns an empty string if there is no list item between these headings, and `None` if there is no heading
/// `title`.
fn find(changelog: &str, title: &str) -> Option<String> {
    let mut lines = changelog.lines();
    lines.find(|line| heading(line) == Some(title))?;
    let body: Vec<_> = lines.take_while(|line| heading(line).is_none()).collect();
    if !body.iter().any(|line| line.starts_with("- ")) {
        return Some(String::new());
    }
    Some(format!("{}\n", body.join("\n").trim()))
}

/// Returns the title in a Markdown heading of level 2, without brackets and date.
fn heading(line: &str) -> Option<&str> {
    let title = line.strip_prefix("## ")?;
    let title = title.split(" - ").next().unwrap_or(title).trim();
    let bare = title.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    Some(bare.unwrap_or(title))
}

/// Reads `CHANGELOG.md` in the folder `root`, and returns the section for `version`.
///
/// # Errors
///
/// Returns an error if the file can't be read, or if [`section`] returns an error.
pub(super) fn read(root: &std::path::Path, version: &str) -> Result<Section> {
    let text = std::fs::read_to_string(root.join("CHANGELOG.md"))
        .context("can't read CHANGELOG.md; a release needs it")?;
    section(&text, version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- New.\n  More.\n\n## 0.1.0 - 2026-11-01\n\n- Old.\n";

    fn failure(changelog: &str, version: &str) -> String {
        section(changelog, version).unwrap_err().to_string()
    }

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level() {
        let found = section(CHANGELOG, "0.2.0").unwrap();
        assert_eq!(found.notes, "### Added\n\n- New.\n  More.\n");
        assert!(found.is_dated);
        assert_eq!(section(CHANGELOG, "0.1.0").unwrap().notes, "- Old.\n");
    }

    #[test]
    fn unreleased_changes_are_those_of_a_version_without_a_section() {
        let changelog = "## Unreleased\n\n- Next.\n\n## 0.2.0\n\n- New.\n";
        let found = section(changelog, "0.3.0").unwrap();
        assert_eq!(found.notes, "- Next.\n");
        assert!(!found.is_dated);
        let mixed = failure(changelog, "0.2.0");
        assert!(mixed.ends_with("move them to `## 0.2.0`"), "{mixed}");
    }

    #[test]
    fn a_version_without_entries_is_an_error() {
        for changelog in ["# Changelog\n", CHANGELOG] {
            let missing = failure(changelog, "0.2");
            assert!(missing.contains("no entries for 0.2;"), "{missing}");
        }
        let empty = failure("## 0.2.0\n\n### Added\n", "0.2.0");
        assert!(empty.contains("has no entry"), "{empty}");
    }
}
