//! The crates of the workspace: their folders, their roots and their files.
//!
//! A crate is a folder with `lib.rs`, `main.rs` or both; a library and a program in one folder count as one crate with two roots.
//! Test files are left out, and with them the crates of tests.

use std::collections::BTreeSet;

use super::rust::Source;

/// The names of a crate's roots, the library's first.
pub(super) const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

/// One crate.
pub(super) struct Crate<'a> {
    /// From the workspace root, without a `/` at its end.
    pub(super) folder: &'a str,
    /// The files below the folder, by their paths from there.
    pub(super) files: Vec<(&'a str, &'a Source<'a>)>,
}

impl<'a> Crate<'a> {
    /// Every crate, ordered by folder.
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

    /// One file, by its path from the folder.
    pub(super) fn file(&self, name: &str) -> Option<&'a Source<'a>> {
        let mut files = self.files.iter();
        files.find(|(file, _)| *file == name).map(|(_, file)| *file)
    }
}
