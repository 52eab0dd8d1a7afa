//! Stores the objects and the revision of a server in a data directory.
//!
//! The directory contains a database file and a lock file. The database file contains the current objects and
//! the revision, but no past events.
//!
//! Guarantees:
//! - a batch of writes is stored in one transaction, either completely or not at all. The transaction is
//!   synced before [`Disk::write`] returns;
//! - only one server at a time can have the directory open, because the server holds a lock on the lock file;
//! - a database file that is damaged or has an unsupported format is rejected with the reason;
//! - a new database file is created under a temporary name, and renamed when it is complete;
//! - on systems with file modes, only the owner can access new files and directories, because objects may be
//!   secrets;
//! - objects of kinds that this server does not serve are preserved.

mod read;

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, TableDefinition};

use super::{Entry, Write};
use crate::resource::Registry;

/// The table of objects.
///
/// - Key: the collection (group and plural, such as `deployments.apps`), and the object's key.
/// - Value: two byte offsets, and the stored JSON. The offsets are the start and the end of the value of
///   `metadata` in this JSON. The JSON has the object's members without `apiVersion`, `kind` and the
///   enclosing braces.
const OBJECTS: TableDefinition<'_, (&str, &str), (u32, u32, &[u8])> =
    TableDefinition::new("objects");

/// The table with the format version and the revision of the store.
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("kube-informer-apiserver");
const FORMAT_KEY: &str = "format";
const REVISION_KEY: &str = "revision";

/// Version of the table format, to be incremented with each change of a table definition.
const FORMAT: u64 = 1;

/// Size of the database's page cache in bytes.
///
/// A small cache suffices, because the server reads objects from the database only at startup.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Minimum size in bytes of a file that [`Disk::load`] compacts.
const COMPACT_BYTES_MIN: u64 = 16 * 1024 * 1024;

const LOCK: &str = "lock";
const FILE: &str = "objects.redb";
const UNFINISHED: &str = "objects.redb.new";

/// The reason why a data directory could not be opened.
///
/// A failed attempt to open the directory loses no stored data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another server has the directory open, in this process or in another one.
    #[error("the data directory {} is in use by another server", directory.display())]
    InUse {
        /// The data directory.
        directory: PathBuf,
    },
    /// Another program or an incompatible version of this library created the database file.
    #[error("{} is not a store that this server can read: {detail}", file.display())]
    Foreign {
        /// Path of the file.
        file: PathBuf,
        /// Description of what the file contains instead of a supported database.
        detail: String,
    },
    /// The database file was modified or truncated after a server wrote it.
    #[error("{} is damaged: {detail}", file.display())]
    Damaged {
        /// Path of the file.
        file: PathBuf,
        /// Description of the damage.
        detail: String,
    },
    /// A file system operation failed, for example because the file system is read-only or full.
    #[error("the data directory {} can't be read or written", directory.display())]
    Io {
        /// The data directory.
        directory: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

/// Function that opens the database in a file. The second argument is whether to create the file first.
pub(crate) type OpenDatabase =
    Box<dyn Fn(&Path, bool) -> Result<Database, redb::Error> + Send + Sync>;

/// One object in the database file.
pub(crate) struct Stored<'a> {
    /// The object's collection: group and plural, such as `deployments.apps`.
    pub(crate) collection: &'a str,
    pub(crate) key: &'a str,
    pub(crate) members: &'a [u8],
    pub(crate) metadata: std::ops::Range<usize>,
}

/// A data directory that this server has opened and locked.
pub(crate) struct Disk {
    directory: PathBuf,
    /// The open database; `None` before [`Disk::found`] creates the file, or after a failed write.
    database: Option<Database>,
    open_database: OpenDatabase,
    /// Prevents other servers from opening the directory.
    ///
    /// This field is dropped after `database`, so no other server opens the directory while `database` is
    /// open.
    _lock: DirectoryLock,
}

/// The lock of a data directory, which is released when this value is dropped.
///
/// Drop unlocks the file explicitly, because a child process can hold a copy of the file descriptor.
struct DirectoryLock(File);

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // If this fails, the lock is released when the last copy of the file is closed.
        drop(self.0.unlock());
    }
}

impl Disk {
    /// Opens a data directory, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if another server has the directory open, or the directory or its file can't be read.
    pub(crate) fn open(directory: &Path, open_database: OpenDatabase) -> Result<Disk, OpenError> {
        let lock = take(directory)?;
        let mut disk = Disk {
            directory: directory.to_owned(),
            database: None,
            open_database,
            _lock: lock,
        };
        let file = disk.file();
        if file.try_exists().map_err(|error| disk.io(error))? {
            let database = guarded(|| {
                let mut database = (disk.open_database)(&file, false)?;
                // Opening repairs an incompletely written file. Only a full check finds modified bytes.
                match database.check_integrity() {
                    Ok(_) => Ok(database),
                    Err(error) => Err(error.into()),
                }
            });
            disk.database = Some(database.map_err(|error| disk.refuse(error))?);
        }
        Ok(disk)
    }

    pub(crate) fn is_new(&self) -> bool {
        self.database.is_none()
    }

    /// Creates the database file of a new directory with the objects in `writes`.
    pub(crate) fn found(
        &mut self,
        writes: &[Write],
        revision: u64,
        registry: &Registry,
    ) -> Result<(), OpenError> {
        let unfinished = self.directory.join(UNFINISHED);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.io(error)),
            _ => {}
        }
        let founded = guarded(|| {
            let database = (self.open_database)(&unfinished, true)?;
            Ok(store(&database, writes, revision, registry)?)
        });
        founded.map_err(|error| self.refuse(error))?;
        fs::rename(&unfinished, self.file()).map_err(|error| self.io(error))?;
        sync_directory(&self.directory).map_err(|error| self.io(error))?;
        let file = self.file();
        let database = guarded(|| Ok((self.open_database)(&file, false)?));
        self.database = Some(database.map_err(|error| self.refuse(error))?);
        Ok(())
    }

    /// Calls `each` with every stored object, grouped by collection.
    ///
    /// Returns the stored revision, or 0 for a new directory. Compacts the file if it has more than
    /// [`COMPACT_BYTES_MIN`] bytes and more than three quarters are unused.
    ///
    /// # Errors
    ///
    /// Returns an error if the file can't be read, or if `each` rejects an object.
    pub(crate) fn load(
        &mut self,
        mut each: impl FnMut(Stored<'_>) -> Result<(), String>,
    ) -> Result<u64, OpenError> {
        let Some(database) = self.database.as_mut() else {
            return Ok(0);
        };
        let loaded = guarded(|| {
            let (revision, held_bytes) = read::read(database, &mut each)?;
            let file_bytes = fs::metadata(self.directory.join(FILE))?.len();
            if file_bytes > COMPACT_BYTES_MIN && file_bytes / 4 > held_bytes {
                database.compact()?;
            }
            Ok(revision)
        });
        loaded.map_err(|error| self.refuse(error))
    }

    /// Stores a batch of writes durably, either completely or not at all.
    ///
    /// # Errors
    ///
    /// Returns the reason of a failure. The file may or may not contain the batch, so the next batch must
    /// contain the current states of the same objects.
    pub(crate) fn write(
        &mut self,
        writes: &[Write],
        revision: u64,
        registry: &Registry,
    ) -> Result<(), String> {
        let database = self.database.take();
        let file = self.file();
        let written = guarded(|| {
            let database = match database {
                Some(database) => database,
                None => (self.open_database)(&file, false)?,
            };
            store(&database, writes, revision, registry)?;
            Ok(database)
        });
        // After a failure, `self.database` stays `None`, because the database rejects all later calls.
        // The next write opens the database again.
        self.database = Some(written.map_err(|failure| failure.to_string())?);
        Ok(())
    }

    /// Stores a batch of writes as [`Disk::write`] does, while the directory is opened.
    ///
    /// # Errors
    ///
    /// Returns an error if the file can't be written.
    pub(crate) fn write_opened(
        &mut self,
        writes: &[Write],
        revision: u64,
        registry: &Registry,
    ) -> Result<(), OpenError> {
        let written = self.write(writes, revision, registry);
        written.map_err(|detail| self.refuse(Failure::Damaged(detail)))
    }

    fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    fn io(&self, source: io::Error) -> OpenError {
        OpenError::Io {
            directory: self.directory.clone(),
            source,
        }
    }

    fn refuse(&self, failure: Failure) -> OpenError {
        let file = self.file();
        let foreign = |detail: &str| OpenError::Foreign {
            file: file.clone(),
            detail: detail.to_owned(),
        };
        match failure {
            Failure::Database(redb::Error::DatabaseAlreadyOpen) => OpenError::InUse {
                directory: self.directory.clone(),
            },
            // redb reports this for a file that does not start with its header.
            Failure::Database(redb::Error::Io(error))
                if error.kind() == io::ErrorKind::InvalidData =>
            {
                foreign("it is not a database")
            }
            Failure::Database(redb::Error::Io(error)) => self.io(error),
            Failure::Database(
                error @ (redb::Error::UpgradeRequired(_)
                | redb::Error::TableDoesNotExist(_)
                | redb::Error::TableTypeMismatch { .. }
                | redb::Error::TableIsMultimap(_)),
            ) => foreign(&error.to_string()),
            Failure::Format(found) if found > FORMAT => foreign(&format!(
                "a newer version wrote it in format {found}, and this version reads format {FORMAT}"
            )),
            Failure::Format(found) => foreign(&format!(
                "its format is {found}, and this version reads format {FORMAT}"
            )),
            Failure::Database(error) => OpenError::Damaged {
                file,
                detail: error.to_string(),
            },
            Failure::Damaged(detail) => OpenError::Damaged { file, detail },
        }
    }
}

/// Stores a batch of writes. `registry` has the names of their collections.
fn store(
    database: &Database,
    writes: &[Write],
    revision: u64,
    registry: &Registry,
) -> Result<(), redb::Error> {
    let collections = registry.collection_names();
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for write in writes {
            let key = (collections[write.collection.0], &*write.key);
            match write.new.as_deref().map(Entry::stored) {
                Some((metadata, members)) => {
                    let (start, end) = (short(metadata.start), short(metadata.end));
                    objects.insert(key, (start, end, members))?;
                }
                None => drop(objects.remove(key)?),
            }
        }
        let mut about = transaction.open_table(ABOUT)?;
        about.insert(FORMAT_KEY, FORMAT)?;
        about.insert(REVISION_KEY, revision)?;
    }
    transaction.commit()?;
    Ok(())
}

/// The reason why an operation on the database failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Database(redb::Error),
    #[error("format {0}")]
    Format(u64),
    #[error("{0}")]
    Damaged(String),
}

impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Database(error.into())
    }
}

/// Runs `call`, and converts a panic to an error. The database panics on some damaged files.
fn guarded<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // The failure discards what the call changed, so no partial state is visible.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(_) => Err(Failure::Damaged("its tables are inconsistent".to_owned())),
    }
}

/// Creates the data directory if necessary, and locks it.
fn take(directory: &Path) -> Result<DirectoryLock, OpenError> {
    let io = |source| OpenError::Io {
        directory: directory.to_owned(),
        source,
    };
    make(directory).map_err(io)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let lock = own(&mut options).open(directory.join(LOCK)).map_err(io)?;
    match lock.try_lock() {
        Ok(()) => Ok(DirectoryLock(lock)),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            directory: directory.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

/// Creates `directory` and its missing parents, and syncs the parent of each created directory.
fn make(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let missing: Vec<&Path> = directory
        .ancestors()
        .take_while(|one| !one.as_os_str().is_empty() && !one.exists())
        .collect();
    builder.recursive(true).create(directory)?;
    missing.into_iter().try_for_each(|made| {
        let above = made.parent().filter(|above| !above.as_os_str().is_empty());
        sync_directory(above.unwrap_or(Path::new(".")))
    })
}

/// Changes `options` to create files that only their owner can access, where the system supports it.
fn own(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Opens the database in `file`. If `create` is true, creates the file, which must not exist yet.
pub(crate) fn open_file(file: &Path, create: bool) -> Result<Database, redb::Error> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    let opened = if create {
        let mut options = OpenOptions::new();
        // Opens only a new file, so that symbolic links are not followed.
        options.read(true).write(true).create_new(true);
        builder.create_file(own(&mut options).open(file)?)
    } else {
        builder.open(file)
    };
    Ok(opened?)
}

/// Syncs a directory after a file was created or renamed in it; does nothing except on Unix.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

/// Converts a byte offset to the type of offsets in the table [`OBJECTS`].
fn short(offset: usize) -> u32 {
    u32::try_from(offset).expect("an object is smaller than 4 GiB")
}

#[cfg(test)]
mod tests;
