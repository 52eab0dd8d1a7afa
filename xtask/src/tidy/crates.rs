//! The crates of the workspace: folders, roots and files.
//!
//! A crate is a folder with `lib.rs`, `main.rs` or both. A library and a program in one folder are one crate
//! with two roots. Test files, and therefore test crates, are not included.

use std::collections::BTreeSet;

use super::rust::Source;

/// The file names of crate roots, the library first.
pub(super) const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

/// One crate.
pub(super) struct Crate<'a> {
    /// The path from the workspace root, without a trailing `/`.
    pub(super) folder: &'a str,
    /// The files below the folder, with their paths relative to it.
    pub(super) files: Vec<(&'a str, &'a Source<'a>)>,
}

impl<'a> Crate<'a> {
    /// Returns all crates, sorted by folder.
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

    /// Returns a file by its path relative to the folder.
    pub(super) fn file(&self, name: &str) -> Option<&'a Source<'a>> {
        let mut files = self.files.iter();
        files.find(|(file, _)| *file == name).map(|(_, file)| *file)
    }
}
