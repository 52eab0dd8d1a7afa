//! Simulates bugs of the server, called planted bugs, to prove that the checks of this
//! program detect them.
//!
//! For some bugs, this module changes the server's data directory. For the other bugs,
//! [`Watcher`](crate::watcher::Watcher) ignores watch events.

use std::path::Path;

use anyhow::{Context as _, Result};
use harness::bugs;
use redb::{Database, ReadableTable, TableDefinition};

use crate::{known::Known, object::KINDS};

/// The table of the stored objects, as `crates/apiserver/src/storage/disk.rs` defines it.
const OBJECTS: TableDefinition<'_, (&str, &str), (u32, u32, &[u8])> =
    TableDefinition::new("objects");
/// The table of the format version and the store's revision.
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("kube-informer-apiserver");

bugs! {
    pub(crate) enum Bug {
        AcknowledgedTooEarly: "a write acknowledged before it is stored, so the newest object is missing",
        HalfStored: "a batch that is not one transaction, so half of the newest object is stored",
        RevisionForgotten: "a revision that is not stored, so revisions continue from that of the newest object",
        GapInWatch: "a watch that resumes after the first event",
        DeletionUntold: "a watch that delivers no deletion",
    }
}

impl Bug {
    /// Changes a stopped server's data directory to the content that a server with this bug would have left.
    ///
    /// Changes nothing for `GapInWatch` and `DeletionUntold`, which the watcher simulates.
    ///
    /// # Errors
    /// Returns an error if `directory` is not a data directory of this server.
    pub(crate) fn spoil(self, directory: &Path, known: &Known) -> Result<()> {
        if matches!(self, Self::GapInWatch | Self::DeletionUntold) {
            return Ok(());
        }
        let database = Database::open(directory.join("objects.redb"))?;
        let transaction = database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            let mut about = transaction.open_table(ABOUT)?;
            if self == Self::RevisionForgotten {
                let highest = highest(&objects)?;
                about.insert("revision", highest)?;
            } else if let Ok((key, _)) = known.newest() {
                let namespace = if KINDS[key.kind].resource == "nodes" {
                    ""
                } else {
                    "default/"
                };
                let place = format!("{namespace}{}", key.name);
                let place = (KINDS[key.kind].resource, place.as_str());
                let removed = objects.remove(place)?.map(|value| {
                    let (start, end, members) = value.value();
                    (start, end, members.to_vec())
                });
                if self == Self::HalfStored
                    && let Some((start, end, members)) = removed
                {
                    let text = String::from_utf8(members)?;
                    // Inserts a character into the text that spans pages.
                    let cut = text.replacen("\"padding\":\"", "\"padding\":\"x", 1);
                    let end = end + u32::try_from(cut.len() - text.len())?;
                    objects.insert(place, (start, end, cut.as_bytes()))?;
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

/// Returns the highest revision of the stored objects.
fn highest(
    objects: &impl ReadableTable<(&'static str, &'static str), (u32, u32, &'static [u8])>,
) -> Result<u64> {
    let mut highest = 0;
    for object in objects.iter()? {
        let (_, value) = object?;
        let (start, end, members) = value.value();
        let metadata = members
            .get(start as usize..end as usize)
            .context("metadata")?;
        let metadata: serde_json::Value = serde_json::from_slice(metadata)?;
        let revision = metadata["resourceVersion"].as_str().context("a revision")?;
        highest = highest.max(revision.parse()?);
    }
    Ok(highest)
}
