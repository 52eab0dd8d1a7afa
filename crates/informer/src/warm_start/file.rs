//! Replaces a file atomically: readers find either the old or the new content, even if the writer fails.
//!
//! Guarantees: at most one writer at a time, among all processes. On Unix, only the owner can read the file,
//! also while it is written. The new content is synced to the disk before it replaces the old content.
//!
//! This module does not interpret the content; `format` does.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// The reason why a file was not replaced. The old file is unchanged.
#[derive(Debug)]
pub(super) enum ReplaceError<E> {
    /// Another writer holds the lock.
    Busy,
    Io(io::Error),
    /// The error of the write function.
    Write(E),
}

impl<E> From<io::Error> for ReplaceError<E> {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes a temporary file in the same directory, then replaces the file with it.
///
/// A missing directory is created, accessible only to its owner. An existing directory is not changed.
/// A writer that is killed leaves its temporary file; the next writer removes it.
pub(super) fn replace<T, E>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, ReplaceError<E>> {
    let folder = folder_of(path);
    make_folder(folder)?;
    // The lock is a separate file that is never renamed, so that all writers lock the same file.
    let lock = own(OpenOptions::new().write(true).create(true).truncate(false))
        .open(with_extension(path, "lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(ReplaceError::Busy),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    let _lock = Lock(lock);
    let unfinished = Unfinished(with_extension(path, "tmp"));
    // If this fails, creating the new file reports the error.
    let _ = fs::remove_file(&unfinished.0);
    let mut file = own(OpenOptions::new().write(true).create_new(true)).open(&unfinished.0)?;
    let written = write(&mut file).map_err(ReplaceError::Write)?;
    file.sync_all()?;
    fs::rename(&unfinished.0, path)?;
    if cfg!(unix) {
        // The rename is done. A crash before the directory is synced leaves the old file, which is
        // complete too. An error of this sync is therefore ignored.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(written)
}

/// Opens a file for reading, and returns it with its size; `None` if it does not exist.
///
/// # Errors
/// Returns an error also if the path is not a regular file: opening a pipe would wait for a writer.
pub(super) fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok(Some((File::open(path)?, metadata.len())))
}

/// The lock of a writer.
///
/// It is released explicitly: a process that another thread is starting has a copy of the open file for a
/// moment, and would keep the lock as long.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, the lock ends with the last copy of the file.
        let _ = self.0.unlock();
    }
}

/// Path of the temporary file, which is removed on drop unless it was renamed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // If this fails, the next writer removes the file.
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns the path with an ending appended, for example `pods.jsonl.lock`.
fn with_extension(path: &Path, ending: &str) -> PathBuf {
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
