//! Remembers how many objects follow a page of a list, so that they are not counted again for the next page.
//!
//! A count is the number of objects from the start of a page to the end of the list. The count for a page is
//! the count for the previous page minus the number of objects on the previous page.
//!
//! Guarantees: at most [`COUNTS_MAX`] counts are kept. If no count is kept for a page, the server counts the
//! objects again.

use std::collections::{BTreeMap, VecDeque};

use crate::resource::CollectionId;

/// Maximum number of list positions in [`Remaining`]. Above this number, the oldest position is dropped.
///
/// A client that reads a list page by page needs one position at a time.
const COUNTS_MAX: usize = 1_024;

/// Start of a page of a list at one revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) collection: CollectionId,
    /// Number of times that the store was reset to an older revision before the list.
    ///
    /// After such a reset, the store uses the same revisions again for other states.
    pub(crate) epoch: u64,
    pub(crate) revision: u64,
    /// Key prefix of the listed objects.
    pub(crate) prefix: String,
    /// Minimum key of the objects in the page, without the prefix.
    pub(crate) start: String,
}

/// Stores, for some positions in lists, the number of objects from the position to the end of the list.
#[derive(Debug, Default)]
pub(crate) struct Remaining {
    counts: BTreeMap<Position, usize>,
    /// The positions in `counts`, oldest first.
    order: VecDeque<Position>,
}

impl Remaining {
    pub(crate) fn get(&self, position: &Position) -> Option<usize> {
        self.counts.get(position).copied()
    }

    pub(crate) fn keep(&mut self, position: Position, count: usize) {
        if self.counts.insert(position.clone(), count).is_some() {
            return;
        }
        self.order.push_back(position);
        if self.order.len() > COUNTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(start: usize) -> Position {
        Position {
            collection: CollectionId(0),
            epoch: 0,
            revision: 1,
            prefix: String::new(),
            start: format!("n/{start}"),
        }
    }

    #[test]
    fn the_oldest_count_is_dropped_first() {
        let mut remaining = Remaining::default();
        for start in 0..=COUNTS_MAX {
            remaining.keep(position(start), start);
            remaining.keep(position(start), start);
        }
        assert_eq!(remaining.get(&position(0)), None);
        assert_eq!(remaining.get(&position(1)), Some(1));
        assert_eq!(remaining.get(&position(COUNTS_MAX)), Some(COUNTS_MAX));
        assert_eq!(remaining.order.len(), remaining.counts.len());
    }
}
