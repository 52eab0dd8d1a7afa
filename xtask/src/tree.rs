//! Reads the workspace into a sorted map from path to text, for checks of its files.
//!
//! Of other files, such as pictures, only the paths are read. Build output and hidden folders are skipped,
//! except the hidden folders that belong to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Extensions of the files whose text is read.
const ENDINGS: [&str; 4] = ["rs", "md", "toml", "go"];

/// Folders without source of this project. `mutants.out` and its backup are reports of cargo-mutants.
const SKIPPED: [&str; 3] = ["target", "mutants.out", "mutants.out.old"];

/// Hidden folders that are read.
const HIDDEN: [&str; 3] = [".cargo", ".ci", ".github"];

/// The text files of the workspace.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    /// All files and folders, relative to the workspace root. The root is the empty path.
    paths: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree below `root`.
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

    /// Returns the files with this extension, sorted by path.
    pub(crate) fn files(&self, ending: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.rsplit_once('.').is_some_and(|(_, end)| end == ending))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the text of a file, or `None` if it was not read.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns whether this path from the workspace root is a file or a folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Returns whether a file or folder has this path from the root or from any folder. Only files whose text
    /// is read count.
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
