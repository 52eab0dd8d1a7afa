//! Reads the corpus of a fuzz target, which consists of files with initial inputs.
//!
//! The module also creates the folder for the inputs that a run writes.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use harness::report::workspace;

/// Returns the name and the content of each corpus file, ordered by name.
///
/// # Errors
/// Returns an error if the target has no corpus folder, or a file can't be read.
pub(crate) fn read(target: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = workspace().join("verify/fuzz/corpus").join(target);
    let entries =
        fs::read_dir(&folder).with_context(|| format!("no corpus {}", folder.display()))?;
    let mut inputs = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let bytes = fs::read(&path).with_context(|| format!("{} can't be read", path.display()))?;
        inputs.push((name.into_owned(), bytes));
    }
    inputs.sort_unstable();
    Ok(inputs)
}

/// Returns the folder in which a run of `target` writes the files `current` and `failure`. Creates the folder
/// if it is missing.
///
/// `current` contains the input that currently runs. `failure` contains the shortened input that failed.
///
/// # Errors
/// Returns an error if the folder can't be created.
pub(crate) fn left_by(target: &str) -> Result<PathBuf> {
    let folder = workspace().join("target/fuzz").join(target);
    fs::create_dir_all(&folder).with_context(|| format!("{} can't be made", folder.display()))?;
    Ok(folder)
}
