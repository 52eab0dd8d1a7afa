//! Defines [`Diff`], an iterator over the differences between two trees. The iterator skips nodes that both
//! trees share.

use std::{cmp::Ordering, slice, sync::Arc};

use super::{Node, Tree};

impl<K: Ord, V: PartialEq, const WIDTH: usize> Tree<K, V, WIDTH> {
    /// Returns the keys whose values differ, in ascending order, with their values in `to`.
    ///
    /// The value of a removed key is `None`. Nodes that both trees share are skipped.
    pub(crate) fn diff<'a>(&'a self, to: &'a Self) -> Diff<'a, K, V> {
        Diff {
            old: Cursor::new(&self.root),
            new: Cursor::new(&to.root),
        }
    }
}

pub(crate) struct Diff<'a, K, V> {
    old: Cursor<'a, K, V>,
    new: Cursor<'a, K, V>,
}

impl<'a, K: Ord, V: PartialEq> Iterator for Diff<'a, K, V> {
    type Item = (&'a K, Option<&'a V>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.align();
            let (old, new) = (self.old.entry(), self.new.entry());
            let order = match (old, new) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            if order.is_le() {
                self.old.at += 1;
            }
            if order.is_ge() {
                self.new.at += 1;
            }
            match (order, old, new) {
                (Ordering::Less, Some((key, _)), _) => return Some((key, None)),
                (Ordering::Equal, Some((_, old)), Some((_, new))) if old == new => {}
                (_, _, Some((key, value))) => return Some((key, Some(value))),
                (_, _, None) => {}
            }
        }
    }
}

impl<K, V> Diff<'_, K, V> {
    /// Moves each cursor to its next entry that must be compared, or to the end of its tree. Skips nodes that
    /// both trees share.
    fn align(&mut self) {
        loop {
            let (old, new) = (self.old.node(), self.new.node());
            if let (Some(old), Some(new)) = (old, new)
                && Arc::ptr_eq(old, new)
            {
                // Both cursors are at the beginning of this node, because all entries before it have been
                // compared.
                self.old.skip();
                self.new.skip();
                continue;
            }
            // The cursor with the higher node descends first. Both cursors thus reach a shared node at the
            // highest possible level.
            let (old, new) = (self.old.height_of_branch(), self.new.height_of_branch());
            if old > 0 && old >= new {
                self.old.descend();
            }
            if new > 0 && new >= old {
                self.new.descend();
            }
            if old == 0 && new == 0 {
                let left = [self.old.leave(), self.new.leave()];
                if left == [false; 2] {
                    return;
                }
            }
        }
    }
}

/// A position in a tree: the start of a node, or an entry of a leaf.
struct Cursor<'a, K, V> {
    /// For each level from the root down, the nodes that the cursor has not passed yet. The last level starts
    /// with the current node.
    levels: Vec<&'a [Arc<Node<K, V>>]>,
    height: usize,
    /// Index of the next entry, if the current node is a leaf.
    at: usize,
}

impl<'a, K, V> Cursor<'a, K, V> {
    fn new(root: &'a Arc<Node<K, V>>) -> Self {
        let (mut height, mut node) = (0, root);
        while let Node::Branch(branch) = &**node {
            node = &branch.children[0];
            height += 1;
        }
        Self {
            levels: vec![slice::from_ref(root)],
            height,
            at: 0,
        }
    }

    fn node(&self) -> Option<&'a Arc<Node<K, V>>> {
        self.levels.last()?.first()
    }

    /// Returns the height of the current node: 0 for a leaf, 1 for its parent. Also returns 0 at the end of
    /// the tree.
    fn height_of_branch(&self) -> usize {
        match self.levels.len() {
            0 => 0,
            depth => self.height + 1 - depth,
        }
    }

    fn entry(&self) -> Option<(&'a K, &'a V)> {
        match &**self.node()? {
            Node::Leaf(leaf) => Some((leaf.keys.get(self.at)?, leaf.values.get(self.at)?)),
            Node::Branch(_) => None,
        }
    }

    fn descend(&mut self) {
        if let Some(Node::Branch(branch)) = self.node().map(|node| &**node) {
            self.levels.push(&branch.children);
        }
    }

    /// Advances past the current leaf if it has no more entries, and returns whether the cursor has advanced.
    fn leave(&mut self) -> bool {
        let is_over = self.node().is_some() && self.entry().is_none();
        if is_over {
            self.skip();
        }
        is_over
    }

    /// Advances the cursor past the current node.
    fn skip(&mut self) {
        self.at = 0;
        while let Some(level) = self.levels.last_mut() {
            *level = &level[1..];
            if !level.is_empty() {
                return;
            }
            self.levels.pop();
        }
    }
}
