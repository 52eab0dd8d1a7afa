//! Replaces a file atomically: readers find either the old or the new content, even if the writer fails.
//!
//! Guarantees: only one writer at a time writes a file, including writers in other processes. On Unix, only
//! the owner can read the file and its temporary file. The new content is synced to the disk before it
//! replaces the old content.
//!
//! This module does not interpret the content of a file. Module `format` reads and writes the content.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// The reason why [`replace`] has left the old content in the file.
#[derive(Debug)]
pub(super) enum ReplaceError<E> {
    /// Another writer holds the lock of the file.
    Busy,
    Io(io::Error),
    /// The function that writes the content returned this error.
    Write(E),
}

impl<E> From<io::Error> for ReplaceError<E> {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Replaces the file at `path` atomically with the content that `write` writes.
///
/// If the directory is missing, creates it so that only its owner can access it.
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
    // If a writer is killed, its temporary file remains until the next writer removes it.
    let unfinished = Unfinished(with_extension(path, "tmp"));
    // If this fails, creating the new file reports the error.
    let _ = fs::remove_file(&unfinished.0);
    let mut file = own(OpenOptions::new().write(true).create_new(true)).open(&unfinished.0)?;
    let written = write(&mut file).map_err(ReplaceError::Write)?;
    file.sync_all()?;
    fs::rename(&unfinished.0, path)?;
    if cfg!(unix) {
        // A crash before the directory is synced may restore the old file, which is also complete. An
        // error of this sync is therefore ignored.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(written)
}

/// Opens a file, and returns it with its size in bytes, or `None` if the file does not exist.
///
/// # Errors
/// Returns an error if the file can't be opened, or if it is not a regular file.
pub(super) fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Opening another type of file, such as a named pipe, can block.
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok(Some((File::open(path)?, metadata.len())))
}

/// A writer's lock, held on the open lock file.
///
/// Drop releases the lock even if a child process still has the lock file open.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, the lock is released when the last copy of the open file is closed.
        let _ = self.0.unlock();
    }
}

/// Path of a writer's temporary file. Drop removes the file, unless the writer has renamed it.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // If this fails, the next writer removes the file.
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns `path` with a dot and `ending` appended to the file name, for example `pods.jsonl.lock`.
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
