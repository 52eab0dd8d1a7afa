//! Records the revisions that at least one client has received from the server.
//!
//! Guarantees: [`Revisions::changed`] returns an error if two different changes have the same revision.
//! [`Revisions::started`] returns an error if a server process starts at a lower revision than a client has
//! received from an earlier server process.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::object::Key;

/// The changed object, and the number in its annotation `value`, or `None` for a deletion.
pub(crate) type Change = (Key, Option<u64>);

/// The changes that clients have received, by revision, and the highest received revision.
#[derive(Debug, Default)]
pub(crate) struct Revisions {
    changes: BTreeMap<u64, Change>,
    /// The highest revision that any client has received.
    highest: u64,
}

impl Revisions {
    /// Records a revision that a client has received without a change, such as the revision of a list.
    pub(crate) fn told(&mut self, revision: u64) {
        self.highest = self.highest.max(revision);
    }

    /// Records a received change with its revision.
    ///
    /// # Errors
    /// Returns an error if the revision already belongs to another change.
    pub(crate) fn changed(&mut self, revision: u64, change: &Change) -> Result<()> {
        self.told(revision);
        let known = self
            .changes
            .entry(revision)
            .or_insert_with(|| change.clone());
        ensure!(
            known == change,
            "revision {revision} belongs to two changes: {known:?} and {change:?}"
        );
        Ok(())
    }

    /// Records the revision at which a server has started.
    ///
    /// # Errors
    /// Returns an error if a client received a higher revision from an earlier server process.
    pub(crate) fn started(&mut self, revision: u64) -> Result<()> {
        ensure!(
            revision >= self.highest,
            "a server started at revision {revision}, but {} was received before",
            self.highest
        );
        self.told(revision);
        Ok(())
    }

    /// Returns the lowest revision after `after`, up to `last`, whose change no client has received.
    pub(crate) fn gap(&self, after: u64, last: u64) -> Option<u64> {
        (after + 1..=last).find(|revision| !self.changes.contains_key(revision))
    }

    /// Returns the revisions after `after`, up to `last`, of the received changes to objects of one kind.
    ///
    /// `kind` is an index in [`KINDS`](crate::object::KINDS).
    pub(crate) fn between(&self, kind: usize, after: u64, last: u64) -> Vec<u64> {
        if after >= last {
            return Vec::new();
        }
        let range = self.changes.range(after + 1..=last);
        range
            .filter(|(_, (key, _))| key.kind == kind)
            .map(|(revision, _)| *revision)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, value: u64) -> Change {
        let name = name.to_owned();
        (Key { kind: 0, name }, Some(value))
    }

    #[test]
    fn a_revision_has_one_change_and_never_decreases() {
        let mut revisions = Revisions::default();
        revisions.changed(5, &change("a", 1)).unwrap();
        revisions.changed(5, &change("a", 1)).unwrap();
        assert!(revisions.changed(5, &change("a", 2)).is_err());
        assert!(revisions.changed(5, &change("b", 1)).is_err());
        revisions.told(7);
        revisions.started(7).unwrap();
        assert!(revisions.started(6).is_err());
        assert_eq!(revisions.between(0, 4, 7), [5]);
        assert_eq!(revisions.between(0, 5, 7), [0; 0]);
        assert_eq!(revisions.between(1, 0, 7), [0; 0]);
        assert_eq!(revisions.gap(4, 5), None);
        assert_eq!(revisions.gap(4, 7), Some(6));
        assert_eq!(revisions.gap(7, 4), None);
    }
}
