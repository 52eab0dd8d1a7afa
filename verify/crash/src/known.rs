//! Derives the expected state of each object on the server from the acknowledged and
//! the pending writes.
//!
//! A pending write is a request whose response has not been received.
//!
//! Guarantees: an object has at most one pending write and therefore at most two possible states. Each object
//! has only one writer at a time. A writer waits for the response to a write before it, or another one, sends the next
//! write.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

use crate::object::{Key, Seen};

/// The last acknowledged state and the pending write of every object.
#[derive(Debug, Default)]
pub(crate) struct Known(BTreeMap<Key, History>);

/// The last acknowledged state of one object, and its pending write.
#[derive(Debug, Default)]
struct History {
    /// The last acknowledged state: the number stored in the object, and the object's revision.
    ///
    /// `None` if the object did not exist.
    acknowledged: Option<(u64, u64)>,
    open: Open,
}

/// The pending write of one object, which the server may or may not have stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    /// No write is pending.
    #[default]
    Nothing,
    Value(u64),
    Gone,
}

impl Known {
    /// Returns the number and the revision in the last acknowledged state of an object.
    ///
    /// Returns `None` if the object does not exist.
    pub(crate) fn state(&self, key: &Key) -> Option<(u64, u64)> {
        self.0.get(key)?.acknowledged
    }

    /// Returns whether the response to a write of an object has not been received.
    pub(crate) fn is_pending(&self, key: &Key) -> bool {
        let history = self.0.get(key);
        history.is_some_and(|history| history.open != Open::Nothing)
    }

    /// Records a write before it is sent; `value` is `None` for a deletion.
    pub(crate) fn tried(&mut self, key: &Key, value: Option<u64>) {
        self.0.entry(key.clone()).or_default().open = value.map_or(Open::Gone, Open::Value);
    }

    /// Records that the server acknowledged a write.
    ///
    /// `value` contains the number in the object and the object's new revision. It is `None` for a deletion.
    pub(crate) fn done(&mut self, key: &Key, value: Option<(u64, u64)>) {
        let history = self.0.entry(key.clone()).or_default();
        history.acknowledged = value;
        history.open = Open::Nothing;
    }

    /// Records that no object of a kind exists, because the kind's definition does not exist.
    pub(crate) fn emptied(&mut self, kind: usize) {
        self.0.retain(|key, _| key.kind != kind);
    }

    /// Compares the expected states with the `stored` objects, and records the stored states as acknowledged.
    ///
    /// Returns the number of pending writes that the server has stored. Does not count the server's own later writes,
    /// which keep the number in an object.
    ///
    /// # Errors
    /// Returns an error if an acknowledged state is missing, or if an unexpected state is stored.
    pub(crate) fn compare(&mut self, stored: &[Seen]) -> Result<usize> {
        let mut found: BTreeMap<&Key, &Seen> =
            stored.iter().map(|seen| (&seen.key, seen)).collect();
        ensure!(found.len() == stored.len(), "an object is stored twice");
        let mut took_place = 0;
        for (key, history) in &mut self.0 {
            let seen = found.remove(key).map(|seen| (seen.value, seen.revision));
            let is_acknowledged = seen == history.acknowledged;
            let before = history.acknowledged.map_or(0, |(_, revision)| revision);
            let is_open = match (history.open, seen) {
                (Open::Value(open), Some((value, revision))) => open == value && revision > before,
                (Open::Gone, None) => true,
                _ => false,
            };
            ensure!(
                is_acknowledged || is_open,
                "{key} is {seen:?}, but was acknowledged as {:?}, with an unanswered write of {:?}",
                history.acknowledged,
                history.open
            );
            let value = |state: Option<(u64, u64)>| state.map(|(value, _)| value);
            took_place += usize::from(value(seen) != value(history.acknowledged));
            *history = History {
                acknowledged: seen,
                open: Open::Nothing,
            };
        }
        let stranger = found.into_keys().next();
        stranger.map_or(Ok(took_place), |key| {
            Err(anyhow::anyhow!("{key} is stored, but was never written"))
        })
    }

    /// Returns the acknowledged number and revision of each existing object of a kind, by object name.
    ///
    /// `kind` is an index in [`KINDS`](crate::object::KINDS).
    pub(crate) fn of_kind(&self, kind: usize) -> BTreeMap<String, (u64, u64)> {
        let of_kind = self.0.iter().filter(|(key, _)| key.kind == kind);
        of_kind
            .filter_map(|(key, history)| Some((key.name.clone(), history.acknowledged?)))
            .collect()
    }

    /// Returns the acknowledged object with the highest revision, and this revision.
    ///
    /// # Errors
    /// Returns an error if no acknowledged object exists.
    pub(crate) fn newest(&self) -> Result<(Key, u64)> {
        let there = self.0.iter();
        let there = there.filter_map(|(key, history)| Some((key, history.acknowledged?.1)));
        let newest = there.max_by_key(|(_, revision)| *revision);
        newest
            .map(|(key, revision)| (key.clone(), revision))
            .context("nothing is stored")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            kind: 0,
            name: name.to_owned(),
        }
    }

    fn seen(name: &str, value: u64, revision: u64) -> Seen {
        Seen {
            key: key(name),
            value,
            revision,
        }
    }

    /// Returns the expected states of an object with the pending write `open`.
    ///
    /// In its last acknowledged state, the object contains the number 1 and has revision 5.
    fn known(open: Open) -> Known {
        let mut known = Known::default();
        known.tried(&key("a"), Some(1));
        known.done(&key("a"), Some((1, 5)));
        match open {
            Open::Nothing => {}
            Open::Value(value) => known.tried(&key("a"), Some(value)),
            Open::Gone => known.tried(&key("a"), None),
        }
        known
    }

    #[test]
    fn an_acknowledged_state_must_be_stored_unchanged() {
        assert_eq!(known(Open::Nothing).compare(&[seen("a", 1, 5)]).unwrap(), 0);
        for stored in [vec![], vec![seen("a", 2, 6)], vec![seen("a", 1, 6)]] {
            assert!(known(Open::Nothing).compare(&stored).is_err(), "{stored:?}");
        }
        let with_stranger = [seen("a", 1, 5), seen("b", 1, 6)];
        assert!(known(Open::Nothing).compare(&with_stranger).is_err());
    }

    #[test]
    fn an_unanswered_write_may_or_may_not_be_stored() {
        let update = || known(Open::Value(2));
        assert_eq!(update().compare(&[seen("a", 1, 5)]).unwrap(), 0);
        assert_eq!(update().compare(&[seen("a", 2, 6)]).unwrap(), 1);
        for stored in [vec![], vec![seen("a", 2, 5)], vec![seen("a", 3, 6)]] {
            assert!(update().compare(&stored).is_err(), "{stored:?}");
        }
        assert_eq!(
            known(Open::Value(1)).compare(&[seen("a", 1, 6)]).unwrap(),
            0,
            "the server has written the status"
        );
        let deletion = || known(Open::Gone);
        assert_eq!(deletion().compare(&[seen("a", 1, 5)]).unwrap(), 0);
        let mut gone = deletion();
        assert_eq!(gone.compare(&[]).unwrap(), 1);
        assert!(
            gone.compare(&[seen("a", 1, 5)]).is_err(),
            "the state is known after a comparison"
        );
    }
}
