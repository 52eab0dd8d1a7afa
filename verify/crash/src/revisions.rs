//! Every revision that was ever told, by whoever heard of it.
//!
//! Guarantees: a revision that is given to two changes is found, and one that lies before what was told in an earlier life.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::object::Key;

/// A change: an object's number, or that it is gone.
pub(crate) type Change = (Key, Option<u64>);

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Revisions {
    changes: BTreeMap<u64, Change>,
    /// The highest that was in an answer of any kind.
    highest: u64,
}

impl Revisions {
    /// Somebody was told a revision, perhaps of a list.
    pub(crate) fn told(&mut self, revision: u64) {
        self.highest = self.highest.max(revision);
    }

    /// Somebody was told of a change.
    ///
    /// # Errors
    /// Its revision is another's.
    pub(crate) fn changed(&mut self, revision: u64, change: &Change) -> Result<()> {
        self.told(revision);
        let known = self
            .changes
            .entry(revision)
            .or_insert_with(|| change.clone());
        ensure!(
            known == change,
            "revision {revision} was given twice: to {known:?} and to {change:?}"
        );
        Ok(())
    }

    /// A server has started at a revision.
    ///
    /// # Errors
    /// More was told before.
    pub(crate) fn started(&mut self, revision: u64) -> Result<()> {
        ensure!(
            revision >= self.highest,
            "a server started at revision {revision}, and {} was told before",
            self.highest
        );
        self.told(revision);
        Ok(())
    }

    /// The first revision above one and up to another that nobody knows as a change.
    pub(crate) fn gap(&self, after: u64, last: u64) -> Option<u64> {
        (after + 1..=last).find(|revision| !self.changes.contains_key(revision))
    }

    /// The changes of a kind above one revision and up to another.
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
    fn a_revision_is_one_change_and_none_comes_before_what_was_told() {
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
