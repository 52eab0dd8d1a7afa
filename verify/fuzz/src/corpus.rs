//! The inputs that a target begins with: files, named for what they are.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use harness::report::workspace;

/// The files of a target, in the order of their names.
///
/// # Errors
/// There is none, or one can't be read.
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

/// The folder of what a run of a target leaves.
///
/// # Errors
/// It can't be made.
pub(crate) fn left_by(target: &str) -> Result<PathBuf> {
    let folder = workspace().join("target/fuzz").join(target);
    fs::create_dir_all(&folder).with_context(|| format!("{} can't be made", folder.display()))?;
    Ok(folder)
}
