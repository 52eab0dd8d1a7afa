//! Finds the crates of the workspace: their folders, root files and source files.
//!
//! A crate is a folder with `lib.rs`, `main.rs` or both. A library and a program in the same folder count as
//! one crate with two root files. The module does not return test files.

use std::collections::BTreeSet;

use super::rust::Source;

/// File names of crate roots: `lib.rs` for a library, and `main.rs` for a program.
pub(super) const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

/// A crate of the workspace: its folder and its source files.
pub(super) struct Crate<'a> {
    /// Folder that contains `lib.rs` or `main.rs`, relative to the workspace root, without a trailing `/`.
    pub(super) folder: &'a str,
    /// Source files except tests, by path relative to the folder.
    pub(super) files: Vec<(&'a str, &'a Source<'a>)>,
}

impl<'a> Crate<'a> {
    /// Returns the crates that `sources` contain, sorted by folder.
    pub(super) fn all(sources: &'a [Source<'a>]) -> Vec<Crate<'a>> {
        let files = || sources.iter().filter(|source| !source.is_test_file());
        let folders: BTreeSet<&str> = files()
            .filter_map(|source| source.path.rsplit_once('/'))
            .filter(|(_, name)| ROOTS.contains(name))
            .map(|(folder, _)| folder)
            .collect();
        let inside = |folder: &'a str| {
            let inside = move |source: &'a Source<'a>| {
                let file = source.path.strip_prefix(folder)?.strip_prefix('/')?;
                Some((file, source))
            };
            files().filter_map(inside).collect()
        };
        let crates = folders.into_iter().map(|folder| Crate {
            folder,
            files: inside(folder),
        });
        crates.collect()
    }

    /// Returns the source file at the path `name` in the crate's folder.
    pub(super) fn file(&self, name: &str) -> Option<&'a Source<'a>> {
        let mut files = self.files.iter();
        files.find(|(file, _)| *file == name).map(|(_, file)| *file)
    }
}
