//! Reads the database file of a server that has been killed.
//!
//! This module opens only a copy, because opening a database changes its file, and the next server must repair the file.

use std::path::Path;

use anyhow::{Context as _, Result};
use redb::{Database, ReadableDatabase as _, TableDefinition};
use serde_json::Value;

use crate::object::{DEFINITION, KINDS};

/// The table of the stored objects, as `crates/apiserver/src/storage/disk.rs` defines it.
pub(crate) const OBJECTS: TableDefinition<'_, (&str, &str), (u32, u32, &[u8])> =
    TableDefinition::new("objects");
/// The table of the format version and the store's revision.
pub(crate) const ABOUT: TableDefinition<'_, &str, u64> =
    TableDefinition::new("kube-informer-apiserver");

/// The database file in the server's data directory.
pub(crate) const FILE: &str = "objects.redb";

/// Returns the stored definitions, without `apiVersion` and `kind`.
///
/// The copy of the file is in `directory`, so it is kept with the directory after an error.
///
/// # Errors
/// Returns an error if `directory` is not a data directory of this server.
pub(crate) fn definitions(directory: &Path) -> Result<Vec<Value>> {
    let copy = directory.join("copy.redb");
    std::fs::copy(directory.join(FILE), &copy)?;
    let database = Database::open(&copy)?;
    let transaction = database.begin_read()?;
    let objects = transaction.open_table(OBJECTS)?;
    let collection = KINDS[DEFINITION].resource;
    let stored = objects.range((collection, "")..)?;
    let mut definitions = Vec::new();
    for object in stored {
        let (key, row) = object?;
        if key.value().0 != collection {
            break;
        }
        let (_, _, members) = row.value();
        definitions.push(object_of(members)?);
    }
    std::fs::remove_file(copy)?;
    Ok(definitions)
}

/// Returns the object in a row of the table [`OBJECTS`], without `apiVersion` and `kind`.
///
/// # Errors
/// Returns an error if `members` are not the members of a JSON object.
pub(crate) fn object_of(members: &[u8]) -> Result<Value> {
    let object = [b"{", members, b"}"].concat();
    serde_json::from_slice(&object).context("a stored object is no JSON")
}
