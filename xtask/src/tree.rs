//! The workspace as a sorted map from path to text, for checks of its files.
//!
//! Of other files, such as pictures, only the paths are known.
//! Hidden folders and build output are left out, except those that belong to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Endings of the files whose text is read.
const ENDINGS: [&str; 4] = ["rs", "md", "toml", "go"];

/// Folders that hold no source of ours; `mutants.out` and its backups are cargo-mutants' reports.
const SKIPPED: [&str; 3] = ["target", "mutants.out", "mutants.out.old"];

/// Hidden folders that are not left out.
const HIDDEN: [&str; 3] = [".cargo", ".ci", ".github"];

/// The text files of the workspace.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    /// All files and folders, from the workspace root, which is the empty path.
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

    /// The files with this ending, ordered by path.
    pub(crate) fn files(&self, ending: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.rsplit_once('.').is_some_and(|(_, end)| end == ending))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of one file, `None` if it does not exist.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether this path from the workspace root is a file or a folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Whether this path, counted from the root or from any folder, is a file or a folder.
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
