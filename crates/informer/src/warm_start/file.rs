//! One file that is replaced whole: whoever opens it finds the old content or the new one, whatever
//! happens to the writer.
//!
//! Guarantees: one writer at a time, among all processes; nobody but the owner can read what is
//! written, from its first byte on; what was written is on the disk before it takes the old one's
//! place.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// Why a file was not replaced; it is as it was.
#[derive(Debug)]
pub(super) enum ReplaceError<E> {
    /// Another writer is at it.
    Busy,
    Io(io::Error),
    /// What the writing said.
    Write(E),
}

impl<E> From<io::Error> for ReplaceError<E> {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Replaces a file by what is written into another one beside it. The folder is made if there is
/// none, for its owner alone; one that exists stays as it is.
///
/// A writer that is killed leaves its unfinished file behind, which the next one removes.
pub(super) fn replace<T, E>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, ReplaceError<E>> {
    let folder = folder_of(path);
    make_folder(folder)?;
    // A file of its own, which stays: a lock on what is renamed would be on something else by then.
    let lock = own(OpenOptions::new().write(true).create(true).truncate(false))
        .open(beside(path, "lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(ReplaceError::Busy),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    let unfinished = Unfinished(beside(path, "tmp"));
    // What can't be removed is in the way of the new one, which says so.
    let _ = fs::remove_file(&unfinished.0);
    let mut file = own(OpenOptions::new().write(true).create_new(true)).open(&unfinished.0)?;
    let written = write(&mut file).map_err(ReplaceError::Write)?;
    file.sync_all()?;
    fs::rename(&unfinished.0, path)?;
    if cfg!(unix) {
        // The new content is in its place. Until that is on the disk too, a crash leaves the old one,
        // which is as whole; so a folder that can't be synced is no failure.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(written)
}

/// Opens a file for reading; `None` if there is none.
///
/// # Errors
/// Also for what is no file: opening a pipe would wait for somebody to write into it.
pub(super) fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    Ok(Some((File::open(path)?, metadata.len())))
}

/// Removed when it is dropped, unless it has been renamed by then.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // If it stays, the next writer removes it.
        let _ = fs::remove_file(&self.0);
    }
}

/// The name with another ending: `pods.jsonl.lock`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::new("store")).to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let named = folder.filter(|folder| *folder != Path::new(""));
    named.unwrap_or(Path::new("."))
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn own(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests;
