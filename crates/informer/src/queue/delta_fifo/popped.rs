//! Removes keys with their deltas from a [`DeltaFifo`], and merges consecutive deletions of a key.
//!
//! Defines [`Popped`], a key that was removed from the queue together with its deltas.

use std::collections::BTreeSet;

use super::DeltaFifo;
use crate::{
    object::{ObjectName, SourceId},
    reflector::{Delta, DeltaKind},
};

/// A key that [`DeltaFifo::pop`] has removed from the queue, with all deltas that were queued for it.
#[doc(alias = "Deltas")]
#[derive(Debug)]
pub struct Popped<K> {
    /// The key: the name of the object, unless [`DeltaFifo::key_func`] sets other keys.
    pub name: ObjectName,
    /// The deltas, the oldest first. Never empty when returned by the queue.
    #[doc(alias = "Deltas")]
    pub deltas: Vec<Delta<K>>,
    /// Whether any of the deltas belongs to the first list of its reflector.
    #[doc(alias = "isInInitialList")]
    pub in_initial_list: bool,
}

impl<K> Popped<K> {
    /// Returns the newest delta of the key; `None` if [`deltas`](Self::deltas) is empty.
    #[doc(alias = "Newest")]
    pub fn newest(&self) -> Option<&Delta<K>> {
        self.deltas.last()
    }

    /// Returns the oldest delta of the key; `None` if [`deltas`](Self::deltas) is empty.
    #[doc(alias = "Oldest")]
    pub fn oldest(&self) -> Option<&Delta<K>> {
        self.deltas.first()
    }
}

impl<K> DeltaFifo<K> {
    /// Removes and returns the oldest `room` deltas of a key, or returns `None` if the key has at most `room`
    /// deltas.
    pub(super) fn take_part(&mut self, name: &ObjectName, room: usize) -> Option<Vec<Delta<K>>> {
        let deltas = self.items.get_mut(name)?;
        if deltas.len() <= room {
            return None;
        }
        self.waiting -= room;
        Some(deltas.drain(..room).collect())
    }

    pub(super) fn is_initial(&self, deltas: &[Delta<K>]) -> bool {
        let mut sources = deltas.iter().map(|delta| delta.source);
        sources.any(|source| self.population.is_initial(source))
    }

    /// Removes a key from the queue, and returns it with all its deltas; `None` if the key is not queued.
    ///
    /// Also returns a source whose first list ends with this key, if any. If several first lists end with
    /// this key, the remaining sources are appended to the field `completed`.
    pub(super) fn take(&mut self, name: ObjectName) -> Option<(Popped<K>, Option<SourceId>)> {
        let deltas = self.items.remove(&name)?;
        self.waiting -= deltas.len();
        let in_initial_list = self.is_initial(&deltas);
        let sources: BTreeSet<SourceId> = deltas.iter().map(|delta| delta.source).collect();
        let mut completes = None;
        for source in sources {
            match self.population.popped(source) {
                Some(source) if completes.is_none() => completes = Some(source),
                another => self.completed.extend(another),
            }
        }
        let popped = Popped {
            name,
            deltas,
            in_initial_list,
        };
        Some((popped, completes))
    }
}

/// Removes one of the last two deltas of a key if both are deletions from the same reflector.
///
/// Keeps the older deletion if its final state is known, and otherwise the newer deletion.
pub(super) fn merge_deletions<K>(deltas: &mut Vec<Delta<K>>) {
    let [.., older, newer] = deltas.as_slice() else {
        return;
    };
    if older.source != newer.source {
        return;
    }
    let (DeltaKind::Deleted(older), DeltaKind::Deleted(_)) = (&older.kind, &newer.kind) else {
        return;
    };
    let at = deltas.len() - if older.is_final_state_unknown() { 2 } else { 1 };
    deltas.remove(at);
}
