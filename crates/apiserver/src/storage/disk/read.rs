//! Reads the objects of a data directory.
//!
//! Guarantees: each object is passed on with its bytes unchanged, and a file of another format is rejected.

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::{
    ABOUT, Disk, FORMAT, FORMAT_KEY, Failure, OBJECTS, OpenError, REVISION_KEY, Stored, guarded,
};
use crate::kinds::Scope;

impl Disk {
    /// Returns the name of each collection with objects, such as `deployments.apps`, and the objects' scope.
    ///
    /// # Errors
    ///
    /// Returns an error if the file can't be read.
    pub(crate) fn collections(&self) -> Result<Vec<(String, Scope)>, OpenError> {
        let Some(database) = self.database.as_ref() else {
            return Ok(Vec::new());
        };
        let read = guarded(|| {
            let transaction = database.begin_read()?;
            check_format(&transaction)?;
            let objects = transaction.open_table(OBJECTS)?;
            let mut found = Vec::new();
            let mut next = String::new();
            while let Some(first) = objects.range((next.as_str(), "")..)?.next() {
                let (key, _) = first?;
                let (collection, key) = key.value();
                let scope = if key.contains('/') {
                    Scope::Namespaced
                } else {
                    Scope::Cluster
                };
                found.push((collection.to_owned(), scope));
                next = format!("{collection}\0");
            }
            Ok(found)
        });
        read.map_err(|error| self.refuse(error))
    }

    /// Calls `each` with every stored object of one collection, such as `deployments.apps`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file can't be read, or if `each` rejects an object.
    pub(crate) fn load_collection(
        &mut self,
        collection: &str,
        mut each: impl FnMut(Stored<'_>) -> Result<(), String>,
    ) -> Result<(), OpenError> {
        let Some(database) = self.database.as_ref() else {
            return Ok(());
        };
        let loaded = guarded(|| {
            let transaction = database.begin_read()?;
            check_format(&transaction)?;
            let objects = transaction.open_table(OBJECTS)?;
            for object in objects.range((collection, "")..)? {
                let (key, value) = object?;
                if key.value().0 != collection {
                    break;
                }
                pass(key.value(), value.value(), &mut each)?;
            }
            Ok(())
        });
        loaded.map_err(|error| self.refuse(error))
    }
}

/// Calls `each` with every stored object. Returns the stored revision, and the total size of the objects.
pub(super) fn read(
    database: &Database,
    each: &mut impl FnMut(Stored<'_>) -> Result<(), String>,
) -> Result<(u64, u64), Failure> {
    let transaction = database.begin_read()?;
    check_format(&transaction)?;
    let mut held_bytes = 0;
    for object in transaction.open_table(OBJECTS)?.iter()? {
        let (key, value) = object?;
        let ((collection, key), (_, _, members)) = (key.value(), value.value());
        held_bytes += (collection.len() + key.len() + members.len()) as u64;
        pass((collection, key), value.value(), each)?;
    }
    Ok((number(&transaction, REVISION_KEY)?, held_bytes))
}

pub(super) fn check_format(transaction: &ReadTransaction) -> Result<(), Failure> {
    match number(transaction, FORMAT_KEY)? {
        FORMAT => Ok(()),
        found => Err(Failure::Format(found)),
    }
}

pub(super) fn number(transaction: &ReadTransaction, key: &str) -> Result<u64, Failure> {
    let about = transaction.open_table(ABOUT)?;
    Ok(about.get(key)?.map_or(0, |value| value.value()))
}

/// Calls `each` with the object of one row of the table [`OBJECTS`].
pub(super) fn pass(
    (collection, key): (&str, &str),
    (start, end, members): (u32, u32, &[u8]),
    each: &mut impl FnMut(Stored<'_>) -> Result<(), String>,
) -> Result<(), Failure> {
    let metadata = start as usize..end as usize;
    let stored = Stored {
        collection,
        key,
        members,
        metadata,
    };
    each(stored).map_err(|why| Failure::Damaged(format!("{collection} {key}: {why}")))
}
