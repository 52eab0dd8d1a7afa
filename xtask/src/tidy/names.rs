//! Rules `file-name` and `opening`: Rust files have descriptive names and start with a `//!` comment.

use super::finding::Finding;
use super::rust::Source;

/// Names of files and folders that do not describe the content.
const BANNED: [&str; 8] = [
    "utils", "util", "common", "helpers", "misc", "types", "manager", "base",
];

/// Returns a finding if `path` contains a banned file or folder name, or is a `mod.rs`.
pub(super) fn check(path: &str) -> Option<Finding> {
    if path.ends_with("/mod.rs") {
        let advice =
            "name it after its folder (`foo.rs` next to `foo/`), so that tabs and traces show it";
        return Some(Finding::new(path, 1, "file-name", advice));
    }
    let inside = path.strip_suffix(".rs").unwrap_or(path);
    let drawer = inside.split('/').find(|part| BANNED.contains(part))?;
    let advice = format!("`{drawer}` does not describe the content; use the noun that it contains");
    Some(Finding::new(path, 1, "file-name", advice))
}

/// Returns a finding if the file does not start with `//!`.
pub(super) fn opening(source: &Source<'_>) -> Option<Finding> {
    let advice = "start the file with `//!` and its guarantees";
    (!source.text.starts_with("//!")).then(|| Finding::new(source.path, 1, "opening", advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_name_of_a_file_or_a_folder_is_reported() {
        assert!(check("crates/informer/src/utils.rs").is_some());
        assert!(check("crates/informer/src/common/queue.rs").is_some());
        assert!(
            check("crates/informer/src/queue/mod.rs")
                .unwrap()
                .advice
                .contains("foo.rs")
        );
        assert_eq!(check("crates/informer/src/queue.rs"), None);
        assert_eq!(check("crates/informer/src/database.rs"), None);
    }

    #[test]
    fn a_file_must_start_with_a_module_doc() {
        let finding = |text| opening(&Source::new("src/a.rs", text));
        assert!(finding("use std::fmt;").is_some());
        assert!(finding("// A comment.\n//! Too late.").is_some());
        assert!(finding("/// Docs of the first item.\nfn a() {}").is_some());
        assert_eq!(finding("//! Contract."), None);
    }
}
