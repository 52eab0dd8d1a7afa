//! Rules `file-name` and `opening`: a file is named for what it holds, and says first what it guarantees.

use super::finding::Finding;
use super::rust::Source;

/// Drawers: names that tell no reader what does not belong in them.
const BANNED: [&str; 8] = [
    "utils", "util", "common", "helpers", "misc", "types", "manager", "base",
];

/// Reports a drawer, as a file or a folder, and `mod.rs`.
pub(super) fn check(path: &str) -> Option<Finding> {
    if path.ends_with("/mod.rs") {
        let advice =
            "call it after its folder (`foo.rs` beside `foo/`), so tabs and traces name it";
        return Some(Finding::new(path, 1, "file-name", advice));
    }
    let inside = path.strip_suffix(".rs").unwrap_or(path);
    let drawer = inside.split('/').find(|part| BANNED.contains(part))?;
    let advice = format!("`{drawer}` says nothing; name it for the noun it holds");
    Some(Finding::new(path, 1, "file-name", advice))
}

/// Reports a file that does not open with `//!`.
pub(super) fn opening(source: &Source<'_>) -> Option<Finding> {
    let advice = "open the file with `//!` and what it guarantees";
    (!source.text.starts_with("//!")).then(|| Finding::new(source.path, 1, "opening", advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawer_is_reported_as_a_file_and_as_a_folder() {
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
    fn a_file_must_open_with_its_contract() {
        let finding = |text| opening(&Source::new("src/a.rs", text));
        assert!(finding("use std::fmt;").is_some());
        assert!(finding("// A comment.\n//! Too late.").is_some());
        assert!(finding("/// Docs of the first item.\nfn a() {}").is_some());
        assert_eq!(finding("//! Contract."), None);
    }
}
