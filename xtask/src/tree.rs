//! Reads the files of the workspace for the checks of `xtask`.
//!
//! The module reads the text of each file with an extension in [`ENDINGS`]. Of other files, such as pictures,
//! it records only the path. It skips build output and hidden folders, except for the hidden folders in
//! [`HIDDEN`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Extensions of the files whose text is read.
const ENDINGS: [&str; 4] = ["rs", "md", "toml", "go"];

/// Names of the skipped folders, to which Cargo and cargo-mutants write their output.
const SKIPPED: [&str; 3] = ["target", "mutants.out", "mutants.out.old"];

/// Names of the hidden folders that are read.
const HIDDEN: [&str; 3] = [".cargo", ".ci", ".github"];

/// The paths of the workspace's files and folders, and the texts of its files.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    /// Paths of all files and folders, relative to the workspace root, which is the empty path.
    paths: BTreeSet<String>,
}

impl Tree {
    /// Reads all files below the folder `root`, except those in skipped folders.
    pub(crate) fn read(root: &Path) -> Result<Tree> {
        let mut tree = Tree {
            files: BTreeMap::new(),
            paths: BTreeSet::new(),
        };
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let owned = |&(path, text): &(&str, &str)| (path.to_owned(), text.to_owned());
        let files: BTreeMap<_, _> = files.iter().map(owned).collect();
        let mut paths = BTreeSet::from([String::new()]);
        for path in files.keys() {
            let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
            paths.extend(folders.map(str::to_owned));
            paths.insert(path.clone());
        }
        Tree { files, paths }
    }

    /// Returns the paths and texts of all files with the extension `ending`, sorted by path.
    pub(crate) fn files(&self, ending: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.rsplit_once('.').is_some_and(|(_, end)| end == ending))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the text of the file at `path`, if its extension is in [`ENDINGS`].
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns whether a file or a folder exists at `path`, relative to the workspace root.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Returns whether `path` exists relative to at least one folder of the workspace.
    ///
    /// Finds only files with an extension in [`ENDINGS`], and their folders.
    pub(crate) fn contains_below(&self, path: &str) -> bool {
        let path = format!("/{}", path.trim_end_matches('/'));
        let folder = format!("{path}/");
        self.files.keys().any(|file| {
            let file = format!("/{file}");
            file.ends_with(&path) || file.contains(&folder)
        })
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<()> {
        self.paths.insert(folder.to_owned());
        let at = root.join(folder);
        let entries =
            std::fs::read_dir(&at).with_context(|| format!("can't list {}", at.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("can't list {}", at.display()))?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = if folder.is_empty() {
                name.clone()
            } else {
                format!("{folder}/{name}")
            };
            if entry.file_type()?.is_dir() {
                let is_hidden = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
                if !is_hidden && !SKIPPED.contains(&name.as_str()) {
                    self.read_folder(root, &path)?;
                }
                continue;
            }
            if name
                .rsplit_once('.')
                .is_some_and(|(_, ending)| ENDINGS.contains(&ending))
            {
                let text = std::fs::read_to_string(entry.path())
                    .with_context(|| format!("can't read {path}"))?;
                self.files.insert(path.clone(), text);
            }
            self.paths.insert(path);
        }
        Ok(())
    }
}
