//! Simulates bugs of the server, called planted bugs, to prove that the checks of this
//! program detect them.
//!
//! For some bugs, this module changes the server's data directory. For the other bugs,
//! [`Watcher`](crate::watcher::Watcher) ignores watch events, or [`check`](crate::probe::check) sends another request,
//! whose response is that of a server with the bug.

use std::{fmt::Write as _, path::Path};

use anyhow::{Context as _, Result};
use harness::bugs;
use redb::{Database, ReadableTable, Table};
use serde_json::{Value, json};

use crate::{
    definition::check,
    file::{ABOUT, FILE, OBJECTS, object_of},
    known::Known,
    object::{CUSTOM, KINDS, Key},
    shared,
};

bugs! {
    pub(crate) enum Bug {
        AcknowledgedTooEarly: "a write acknowledged before it is stored, so the newest object is missing",
        HalfStored: "a batch that is not one transaction, so half of the newest object is stored",
        RevisionForgotten: "a revision that is not stored, so revisions continue from that of the newest object",
        GapInWatch: "a watch that resumes after the first event",
        DeletionUntold: "a watch that delivers no deletion",
        DefinitionForgotten: "a start without a definition that was stored",
        StoredVersionsForgotten: "a start without the stored versions of a definition",
        VersionChanged: "a start that serves a version of a definition although it must not, or the reverse",
        ObjectsReturn: "a deletion of a definition that leaves an object, which a new definition serves again",
        OwnersForgotten: "a start without the managed fields of an object",
        OwnerForgotten: "a start without one of the managers of an object",
        OwnerTimeChanged: "a start that changes the time of a manager of an object",
        OwnedFieldForgotten: "a start without a field of a manager of an object",
        ConflictIgnored: "an apply after a start that takes the fields of other managers",
        EqualApplyStored: "an apply of equal content after a start that is stored as a change",
        FieldKept: "an apply after a start that keeps the fields that it does not contain",
    }
}

/// Name of the object that [`Bug::ObjectsReturn`] adds.
const RETURNED: &str = "returned-object";

impl Bug {
    /// Returns a part of the error message of the check that must detect this bug.
    pub(crate) fn symptom(self) -> &'static str {
        match self {
            Self::AcknowledgedTooEarly | Self::DefinitionForgotten => {
                "is None, but was acknowledged as"
            }
            Self::HalfStored => "is stored partially",
            Self::RevisionForgotten => "a server started at revision",
            Self::GapInWatch => "did not receive revision",
            Self::DeletionUntold => "the watches did not receive revision",
            Self::StoredVersionsForgotten => "is incomplete",
            Self::VersionChanged => "the kinds of v2 are",
            Self::ObjectsReturn => RETURNED,
            Self::OwnersForgotten
            | Self::OwnerForgotten
            | Self::OwnerTimeChanged
            | Self::OwnedFieldForgotten => "the managed fields of",
            Self::ConflictIgnored => "was not rejected with",
            Self::EqualApplyStored => "an apply of equal content",
            Self::FieldKept => "of fewer fields of",
        }
    }

    /// Changes a stopped server's data directory to the content that a server with this bug would have left.
    ///
    /// Changes nothing for the bugs that a client simulates. Also changes nothing that
    /// a pending write or its completion at the next start can hide or repair, so only [`Self::symptom`] follows.
    ///
    /// # Errors
    /// Returns an error if `directory` is not a data directory of this server.
    pub(crate) fn spoil(self, directory: &Path, known: &Known) -> Result<()> {
        if self.is_simulated_by_client() {
            return Ok(());
        }
        let database = Database::open(directory.join(FILE))?;
        let transaction = database.begin_write()?;
        {
            let mut rows = Rows(transaction.open_table(OBJECTS)?);
            let is_settled = |key: &Key| !known.is_pending(key);
            let newest = known.newest().ok().map(|(key, _)| key);
            let newest = newest.filter(is_settled);
            let definitions = CUSTOM.map(Key::of_definition);
            let is_defined = |key: &Key| known.state(key).is_some();
            let defined = definitions
                .clone()
                .filter(|key| is_settled(key) && is_defined(key));
            match self {
                Self::RevisionForgotten => {
                    let stored = definitions.filter_map(|key| rows.read(&key).transpose());
                    let stored: Vec<Value> = stored.collect::<Result<_>>()?;
                    // The completion of a definition would add revisions.
                    if stored.iter().all(|definition| check(definition).is_ok()) {
                        let mut about = transaction.open_table(ABOUT)?;
                        about.insert("revision", highest(&rows.0)?)?;
                    }
                }
                Self::AcknowledgedTooEarly => rows.change(newest, |_| None)?,
                // A shared object has no such text.
                Self::HalfStored if newest.as_ref().is_some_and(shared::is_shared) => {}
                Self::HalfStored => rows.change(newest, |mut object| {
                    // Inserts a character into the text that spans pages.
                    let padding = &mut object["metadata"]["annotations"]["padding"];
                    *padding = json!(format!("x{}", padding.as_str()?));
                    Some(object)
                })?,
                Self::DefinitionForgotten => rows.change(defined, |_| None)?,
                Self::StoredVersionsForgotten => rows.change(defined, |mut definition| {
                    definition["status"]["storedVersions"] = json!([]);
                    Some(definition)
                })?,
                Self::VersionChanged => rows.change(defined, |mut definition| {
                    let is_served = &mut definition["spec"]["versions"][1]["served"];
                    *is_served = json!(!is_served.as_bool()?);
                    Some(definition)
                })?,
                Self::ObjectsReturn => {
                    let is_undefined = |kind: &usize| {
                        let key = Key::of_definition(*kind);
                        is_settled(&key) && !is_defined(&key)
                    };
                    for kind in CUSTOM.filter(is_undefined) {
                        let name = RETURNED.to_owned();
                        rows.insert(&Key { kind, name })?;
                    }
                }
                Self::OwnersForgotten
                | Self::OwnerForgotten
                | Self::OwnerTimeChanged
                | Self::OwnedFieldForgotten => {
                    let shared = shared::keys().filter(is_settled);
                    rows.change_owners(shared, |owners| self.spoil_owners(owners))?;
                }
                Self::GapInWatch
                | Self::DeletionUntold
                | Self::ConflictIgnored
                | Self::EqualApplyStored
                | Self::FieldKept => {}
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Changes the managed fields of an object, which has at least one manager.
    fn spoil_owners(self, owners: &mut Vec<Value>) {
        match self {
            Self::OwnersForgotten => owners.clear(),
            Self::OwnerForgotten => owners.truncate((owners.len() - 1).max(1)),
            Self::OwnerTimeChanged => owners[0]["time"] = json!("2026-01-01T00:00:00Z"),
            _ => {
                // Each manager has an annotation.
                owners[0]["fieldsV1"]["f:metadata"]["f:annotations"] = json!({});
            }
        }
    }

    /// Returns whether a client ignores events or sends other requests, and the data directory is not changed.
    fn is_simulated_by_client(self) -> bool {
        matches!(
            self,
            Self::GapInWatch
                | Self::DeletionUntold
                | Self::ConflictIgnored
                | Self::EqualApplyStored
                | Self::FieldKept
        )
    }
}

/// The table of the stored objects.
struct Rows<'a>(Table<'a, (&'static str, &'static str), (u32, u32, &'static [u8])>);

impl Rows<'_> {
    /// Returns a stored object.
    fn read(&self, key: &Key) -> Result<Option<Value>> {
        let (collection, place) = place(key);
        let row = self.0.get((collection, &*place))?;
        row.map(|row| object_of(row.value().2)).transpose()
    }

    /// Replaces stored objects by the results of `change`, or removes them if the result is `None`.
    ///
    /// Skips objects that are not stored.
    fn change(
        &mut self,
        keys: impl IntoIterator<Item = Key>,
        change: impl Fn(Value) -> Option<Value>,
    ) -> Result<()> {
        for key in keys {
            let (collection, place) = place(&key);
            let removed = self.0.remove((collection, &*place))?;
            let object = removed.map(|row| object_of(row.value().2)).transpose()?;
            if let Some(changed) = object.and_then(&change) {
                self.store(&key, &changed)?;
            }
        }
        Ok(())
    }

    /// Changes the managed fields of stored objects, which have at least one manager.
    fn change_owners(
        &mut self,
        keys: impl IntoIterator<Item = Key>,
        change: impl Fn(&mut Vec<Value>),
    ) -> Result<()> {
        self.change(keys, |mut object| {
            change(object["metadata"]["managedFields"].as_array_mut()?);
            Some(object)
        })
    }

    /// Stores an object that no client has written.
    fn insert(&mut self, key: &Key) -> Result<()> {
        let mut object = key.object(1, 1);
        object["metadata"]["resourceVersion"] = json!("1");
        object["metadata"]["uid"] = json!(RETURNED);
        self.store(key, &object)
    }

    fn store(&mut self, key: &Key, object: &Value) -> Result<()> {
        let metadata = object["metadata"].to_string();
        let mut members = format!("\"metadata\":{metadata}");
        let start = members.len() - metadata.len();
        let (start, end) = (u32::try_from(start)?, u32::try_from(members.len())?);
        for (name, value) in object.as_object().into_iter().flatten() {
            if !["apiVersion", "kind", "metadata"].contains(&&**name) {
                write!(members, ",\"{name}\":{value}")?;
            }
        }
        let (collection, place) = place(key);
        let row = (start, end, members.as_bytes());
        self.0.insert((collection, &*place), row)?;
        Ok(())
    }
}

/// Returns the key of an object in the table of objects.
fn place(key: &Key) -> (&'static str, String) {
    let kind = &KINDS[key.kind];
    let namespace = if kind.is_namespaced() { "default/" } else { "" };
    (kind.resource, format!("{namespace}{}", key.name))
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
