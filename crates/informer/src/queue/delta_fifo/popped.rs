//! [`Popped`]: the deltas of one key.

use std::collections::BTreeSet;

use super::DeltaFifo;
use crate::{
    object::{ObjectName, SourceId},
    reflector::{Delta, DeltaKind},
};

/// All deltas of one key, removed from the queue as one unit.
#[doc(alias = "Deltas")]
#[derive(Debug)]
pub struct Popped<K> {
    /// The key.
    pub name: ObjectName,
    /// The deltas, oldest first; never empty.
    #[doc(alias = "Deltas")]
    pub deltas: Vec<Delta<K>>,
    /// Whether they belong to the first list.
    #[doc(alias = "isInInitialList")]
    pub in_initial_list: bool,
}

impl<K> Popped<K> {
    /// Returns the newest delta.
    #[doc(alias = "Newest")]
    pub fn newest(&self) -> Option<&Delta<K>> {
        self.deltas.last()
    }

    /// Returns the oldest delta.
    #[doc(alias = "Oldest")]
    pub fn oldest(&self) -> Option<&Delta<K>> {
        self.deltas.first()
    }
}

impl<K> DeltaFifo<K> {
    /// Removes the oldest deltas of a key that has more than `room`; `None` if it has not.
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

    /// Removes a unit, and returns the source whose first list ends with it.
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

/// Merges two consecutive deletions: the older one is kept, because it has the final state, unless its final state
/// is unknown.
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
