//! The deltas of one key, as a unit.

use crate::{
    object::ObjectName,
    reflector::{Delta, DeltaKind},
};

/// All deltas of one key, taken out at one go.
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
    /// The newest delta.
    #[doc(alias = "Newest")]
    pub fn newest(&self) -> Option<&Delta<K>> {
        self.deltas.last()
    }

    /// The oldest delta.
    #[doc(alias = "Oldest")]
    pub fn oldest(&self) -> Option<&Delta<K>> {
        self.deltas.first()
    }
}

/// Of two deletions in a row the older one stays, for it has the final state; unless it is one
/// whose final state is unknown.
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
