//! Records the revisions that at least one client has received from the server.
//!
//! Guarantees: [`Revisions::changed`] returns an error if two different changes have the same revision.
//! [`Revisions::started`] returns an error if a server process starts at a lower revision than a client has
//! received from an earlier server process. [`Revisions::find_gap`] returns an error if no client has received the
//! change of a revision, or if a watch ended early for no reason.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

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
    /// The changes that at least one watcher can't receive any more.
    missed: Vec<Missed>,
    /// The highest revision that [`Revisions::find_gap`] has checked.
    checked: u64,
}

/// A range of revisions whose changes a watcher may have missed, because it has sent a new list.
#[derive(Debug)]
pub(crate) struct Missed {
    pub(crate) range: RangeInclusive<u64>,
    pub(crate) reason: Reason,
}

/// The reason why the server has rejected the revision of a watch, and what the watcher has therefore missed.
#[derive(Debug)]
pub(crate) enum Reason {
    /// A restart of the server, or the first start: the watcher may have missed the whole range.
    Restart,
    /// A change of this definition between a list and the watch: the watcher may have missed the whole range.
    Change(Key),
    /// A change of this definition during an earlier watch. The watch was complete up to this change, so nothing is
    /// missed before the definition's first change in the range.
    ChangeAfterWatch(Key),
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

    /// Records that a watcher may not have received the changes of a range of revisions.
    pub(crate) fn missed(&mut self, missed: Missed) {
        self.missed.push(missed);
    }

    /// Returns whether a watcher may have missed the change of a revision.
    fn is_missed(&self, revision: u64, missed: &Missed) -> bool {
        let is_reached = |definition: &Key| {
            let changes = self.changes.range(*missed.range.start()..=revision);
            changes.into_iter().any(|(_, (key, _))| key == definition)
        };
        missed.range.contains(&revision)
            && match &missed.reason {
                Reason::Restart | Reason::Change(_) => true,
                Reason::ChangeAfterWatch(definition) => is_reached(definition),
            }
    }

    /// Checks the revisions that all watchers cover: the revisions up to `last` that no watcher has missed.
    ///
    /// `last` is the lowest of the revisions that the watchers have reached. Returns the number of revisions that this
    /// call has checked.
    ///
    /// # Errors
    /// Returns an error if no client has received the change of a revision, or if a definition did not change although
    /// a watcher reports that this has ended its watch.
    pub(crate) fn find_gap(&mut self, last: u64) -> Result<usize> {
        let is_missed = |revision| self.missed.iter().any(|it| self.is_missed(revision, it));
        let covered = (self.checked + 1..=last).filter(|revision| !is_missed(*revision));
        let mut count = 0;
        for revision in covered {
            ensure!(
                self.changes.contains_key(&revision),
                "the watches did not receive revision {revision}"
            );
            count += 1;
        }
        for missed in self.missed.iter().filter(|it| *it.range.end() <= last) {
            self.check_reason(missed)?;
        }
        self.checked = self.checked.max(last);
        self.missed.retain(|missed| *missed.range.end() > last);
        Ok(count)
    }

    /// Checks that the definition that ended a watch has changed.
    ///
    /// Does not check this if another watcher, perhaps that of the definitions, may have missed the change at a restart.
    fn check_reason(&self, missed: &Missed) -> Result<()> {
        let (Reason::Change(definition) | Reason::ChangeAfterWatch(definition)) = &missed.reason
        else {
            return Ok(());
        };
        let range = &missed.range;
        let mut changes = self.changes.range(range.clone());
        let restarts = self
            .missed
            .iter()
            .filter(|other| matches!(other.reason, Reason::Restart));
        let mut restarts = restarts.map(|other| &other.range);
        ensure!(
            changes.any(|(_, (key, _))| key == definition)
                || restarts.any(|it| it.start() <= range.end() && range.start() <= it.end()),
            "a watch from {} was refused as too old, although {definition} did not change up to {}",
            range.start() - 1,
            range.end()
        );
        Ok(())
    }

    /// Returns the number of times that an object of a kind was created again after its deletion.
    pub(crate) fn recreated(&self, kind: usize) -> usize {
        let (mut deleted, mut count) = (BTreeSet::new(), 0);
        let changes = self.changes.values().filter(|(key, _)| key.kind == kind);
        for (key, value) in changes {
            if value.is_none() {
                deleted.insert(key);
            } else {
                count += usize::from(deleted.remove(key));
            }
        }
        count
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
    }

    #[test]
    fn a_revision_that_no_client_received_is_a_gap_unless_a_watcher_missed_it() {
        let mut revisions = Revisions::default();
        let missed = |range, reason| Missed { range, reason };
        revisions.missed(missed(0..=4, Reason::Restart));
        revisions.changed(5, &change("a", 1)).unwrap();
        assert_eq!(revisions.find_gap(5).unwrap(), 1);
        assert_eq!(revisions.find_gap(5).unwrap(), 0);
        revisions.missed(missed(6..=7, Reason::Restart));
        revisions.changed(8, &change("a", 2)).unwrap();
        assert_eq!(revisions.find_gap(8).unwrap(), 1);
        assert!(revisions.find_gap(9).is_err());
        // The watch was complete up to the change of the definition at revision 9.
        revisions.missed(missed(9..=11, Reason::ChangeAfterWatch(change("b", 1).0)));
        assert!(revisions.find_gap(9).is_err());
        revisions.changed(9, &change("b", 1)).unwrap();
        assert_eq!(revisions.find_gap(11).unwrap(), 0);
        // The definition changed between a list at revision 11 and the watch, which therefore delivered nothing.
        revisions.missed(missed(12..=14, Reason::Change(change("b", 1).0)));
        revisions.changed(13, &change("b", 1)).unwrap();
        assert_eq!(revisions.find_gap(14).unwrap(), 0);
        // A range after the checked revisions has no effect.
        revisions.missed(missed(17..=18, Reason::ChangeAfterWatch(change("b", 1).0)));
        revisions.changed(15, &change("a", 3)).unwrap();
        assert_eq!(revisions.find_gap(15).unwrap(), 1);
    }

    #[test]
    fn only_a_change_of_its_definition_or_a_restart_ends_a_watch() {
        let definition = change("b", 1);
        let ended = |other: RangeInclusive<u64>| {
            let mut revisions = Revisions::default();
            revisions.changed(1, &change("a", 1)).unwrap();
            revisions.changed(2, &definition).unwrap();
            revisions.changed(3, &change("a", 2)).unwrap();
            let change = Reason::Change(definition.0.clone());
            for (range, reason) in [(other, Reason::Restart), (3..=3, change)] {
                revisions.missed(Missed { range, reason });
            }
            revisions
        };
        assert!(ended(0..=2).find_gap(3).is_err());
        assert_eq!(ended(0..=2).find_gap(2).unwrap(), 0, "it can still come");
        assert!(ended(0..=3).find_gap(3).is_ok());
        let mut changed = ended(0..=2);
        changed.missed[1].range = 2..=3;
        assert!(changed.find_gap(3).is_ok());
    }

    #[test]
    fn an_object_is_recreated_by_the_first_change_after_its_deletion() {
        let mut revisions = Revisions::default();
        let deleted = (change("a", 1).0, None);
        let changes = [
            change("a", 1),
            deleted,
            change("b", 1),
            change("a", 2),
            change("a", 3),
        ];
        for (revision, change) in (1..).zip(&changes) {
            revisions.changed(revision, change).unwrap();
        }
        assert_eq!(revisions.recreated(0), 1);
        assert_eq!(revisions.recreated(1), 0);
    }
}
