//! Defines [`Tree`], an ordered map with cheap clones, implemented as a B+ tree with shared nodes.
//!
//! Guarantees:
//! - cloning a tree increments one reference count;
//! - changes of one tree do not affect its clones;
//! - a change copies only those nodes on the path to its key that the tree shares with a clone;
//! - replacing the value of an existing key copies no keys;
//! - [`Tree::diff`] does not compare the entries of a leaf that both trees share;
//! - the vectors of a node have no spare capacity.

use std::{cmp::Ordering, mem, ops::Bound, slice, sync::Arc};

use derive_where::derive_where;
mod diff;

/// An ordered map with cheap clones, and with at most `WIDTH` entries or children per node.
#[derive_where(Clone, Default)]
pub(crate) struct Tree<K, V, const WIDTH: usize = 16> {
    root: Arc<Node<K, V>>,
    len: usize,
}

/// A node of a [`Tree`]. All leaves have the same depth; only an empty tree's root has no entries.
#[derive_where(Clone; V)]
#[derive_where(Default)]
enum Node<K, V> {
    #[derive_where(default)]
    Leaf(Leaf<K, V>),
    Branch(Branch<K, V>),
}

/// A leaf of the tree: sorted keys, and their values at the same positions.
#[derive_where(Clone; V)]
#[derive_where(Default)]
struct Leaf<K, V> {
    keys: Arc<Vec<K>>,
    values: Vec<V>,
}

/// An inner node of a [`Tree`], with one more child than keys.
///
/// Key `n` is greater than all keys below child `n`, and less than or equal to all keys below child `n + 1`.
#[derive_where(Clone)]
struct Branch<K, V> {
    keys: Arc<Vec<K>>,
    children: Vec<Arc<Node<K, V>>>,
}

/// The new right node and its separating key, if the node was split.
type Split<K, V> = Option<(K, Arc<Node<K, V>>)>;

impl<K: Ord, V, const WIDTH: usize> Tree<K, V, WIDTH> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let mut node = &self.root;
        loop {
            match &**node {
                Node::Branch(branch) => node = &branch.children[branch.position(key)],
                Node::Leaf(leaf) => {
                    let at = search(&leaf.keys, key).ok()?;
                    return leaf.values.get(at);
                }
            }
        }
    }

    pub(crate) fn iter(&self) -> Iter<'_, K, V, impl Fn(&K) -> bool> {
        self.range(Bound::Unbounded, |_| true)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the entries from the bound `from` on. Ends before the first key for which `within` is false.
    ///
    /// If `within` is false for a key, `within` must also be false for all greater keys. The iterator does
    /// not call `within` for every key.
    pub(crate) fn range<W: Fn(&K) -> bool>(&self, from: Bound<&K>, within: W) -> Iter<'_, K, V, W> {
        let mut iter = Iter {
            pending: Vec::new(),
            leaf: [].iter().zip(&[]),
            within,
        };
        let mut node = &self.root;
        loop {
            match &**node {
                Node::Branch(branch) => {
                    let at = match from {
                        Bound::Unbounded => 0,
                        Bound::Included(key) | Bound::Excluded(key) => branch.position(key),
                    };
                    iter.pending.push(branch.children[at + 1..].iter());
                    node = &branch.children[at];
                }
                Node::Leaf(leaf) => {
                    let at = match from {
                        Bound::Unbounded => 0,
                        Bound::Included(key) => leaf.keys.partition_point(|own| own < key),
                        Bound::Excluded(key) => leaf.keys.partition_point(|own| own <= key),
                    };
                    iter.enter(leaf, at);
                    return iter;
                }
            }
        }
    }
}

impl<K: Ord + Clone, V: Clone, const WIDTH: usize> Tree<K, V, WIDTH> {
    /// Builds a tree with full nodes from entries with strictly ascending keys.
    pub(crate) fn from_ordered(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut entries = entries.into_iter();
        let (mut len, mut level) = (0, Vec::new());
        while let Some((keys, values)) = some_of(&mut entries, WIDTH) {
            len += keys.len();
            level.push((keys[0].clone(), Arc::new(Node::Leaf(Leaf { keys, values }))));
        }
        while level.len() > 1 {
            let mut nodes = level.into_iter();
            level = Vec::new();
            while let Some((mut keys, children)) = some_of(&mut nodes, WIDTH) {
                let first = remove_exact(Arc::make_mut(&mut keys), 0);
                level.push((first, Arc::new(Node::Branch(Branch { keys, children }))));
            }
        }
        level
            .pop()
            .map_or_else(Self::default, |(_, root)| Self { root, len })
    }

    /// Inserts a key or replaces its value, and returns the previous value.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let root = Arc::make_mut(&mut self.root);
        let (old, split) = root.insert::<WIDTH>(key, value, true);
        if let Some((key, right)) = split {
            let left = Arc::clone(&self.root);
            self.root = Arc::new(Node::Branch(Branch {
                keys: Arc::new(vec![key]),
                children: vec![left, right],
            }));
        }
        self.len += usize::from(old.is_none());
        old
    }

    /// Removes a key and returns its value. Copies no node if the key is absent.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.get(key)?;
        let old = Arc::make_mut(&mut self.root).remove::<WIDTH>(key);
        while let Node::Branch(Branch { children, .. }) = &*self.root
            && let [only] = &children[..]
        {
            self.root = Arc::clone(only);
        }
        if self.root.len() == 0 {
            *self = Self::default();
        } else {
            self.len -= 1;
        }
        old
    }
}

impl<K: Ord, V> Branch<K, V> {
    /// Returns the position of the only child whose subtree can contain the key.
    fn position(&self, key: &K) -> usize {
        match search(&self.keys, key) {
            Ok(at) => at + 1,
            Err(at) => at,
        }
    }
}

impl<K, V> Node<K, V> {
    /// Returns the number of entries or children.
    fn len(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.values.len(),
            Self::Branch(branch) => branch.children.len(),
        }
    }
}

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    /// Inserts an entry into this subtree.
    ///
    /// Returns the previous value of the key, and the new right node if this node was split.
    ///
    /// `is_last` is true if this node is the rightmost node of its level.
    fn insert<const WIDTH: usize>(
        &mut self,
        key: K,
        value: V,
        is_last: bool,
    ) -> (Option<V>, Split<K, V>) {
        let middle = WIDTH.div_ceil(2);
        match self {
            Self::Leaf(leaf) => {
                let at = match search(&leaf.keys, &key) {
                    Ok(at) => return (Some(mem::replace(&mut leaf.values[at], value)), None),
                    Err(at) => at,
                };
                insert_exact(Arc::make_mut(&mut leaf.keys), at, key);
                insert_exact(&mut leaf.values, at, value);
                // Entries of a list arrive in order, so the left node stays full.
                let middle = if is_last && at == WIDTH { at } else { middle };
                (
                    None,
                    (leaf.values.len() > WIDTH).then(|| leaf.split(middle)),
                )
            }
            Self::Branch(branch) => {
                let at = branch.position(&key);
                let is_last = is_last && at + 1 == branch.children.len();
                let child = Arc::make_mut(&mut branch.children[at]);
                let (old, split) = child.insert::<WIDTH>(key, value, is_last);
                let Some((key, right)) = split else {
                    return (old, None);
                };
                insert_exact(Arc::make_mut(&mut branch.keys), at, key);
                insert_exact(&mut branch.children, at + 1, right);
                let middle = if is_last { WIDTH } else { middle };
                (
                    old,
                    (branch.children.len() > WIDTH).then(|| branch.split(middle)),
                )
            }
        }
    }

    fn remove<const WIDTH: usize>(&mut self, key: &K) -> Option<V> {
        match self {
            Self::Leaf(leaf) => {
                let at = search(&leaf.keys, key).ok()?;
                remove_exact(Arc::make_mut(&mut leaf.keys), at);
                Some(remove_exact(&mut leaf.values, at))
            }
            Self::Branch(branch) => {
                let at = branch.position(key);
                let old = Arc::make_mut(&mut branch.children[at]).remove::<WIDTH>(key);
                branch.mend::<WIDTH>(at);
                old
            }
        }
    }

    /// Appends the contents of `right`, the next node on the same level.
    ///
    /// `key` separates the two nodes in the parent.
    fn append(&mut self, key: K, right: Self) {
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => {
                append_exact(
                    Arc::make_mut(&mut left.keys),
                    Arc::unwrap_or_clone(right.keys),
                );
                append_exact(&mut left.values, right.values);
            }
            (Self::Branch(left), Self::Branch(right)) => {
                let keys = Arc::make_mut(&mut left.keys);
                keys.push(key);
                append_exact(keys, Arc::unwrap_or_clone(right.keys));
                append_exact(&mut left.children, right.children);
            }
            _ => unreachable!("all leaves are equally far from the root"),
        }
    }
}

impl<K: Clone, V> Leaf<K, V> {
    fn split(&mut self, at: usize) -> (K, Arc<Node<K, V>>) {
        let keys = split_exact(Arc::make_mut(&mut self.keys), at);
        let values = split_exact(&mut self.values, at);
        let first = keys[0].clone();
        let keys = Arc::new(keys);
        (first, Arc::new(Node::Leaf(Self { keys, values })))
    }
}

impl<K: Ord + Clone, V: Clone> Branch<K, V> {
    fn split(&mut self, at: usize) -> (K, Arc<Node<K, V>>) {
        let own = Arc::make_mut(&mut self.keys);
        let keys = Arc::new(split_exact(own, at));
        let between = remove_exact(own, at - 1);
        let children = split_exact(&mut self.children, at);
        (between, Arc::new(Node::Branch(Self { keys, children })))
    }

    /// Removes the child at position `at` if this child is empty. Merges the child with a neighbor if both
    /// are small.
    fn mend<const WIDTH: usize>(&mut self, at: usize) {
        let len = self.children[at].len();
        if len == 0 {
            remove_exact(&mut self.children, at);
            if !self.keys.is_empty() {
                remove_exact(Arc::make_mut(&mut self.keys), at.saturating_sub(1));
            }
        } else if len <= WIDTH / 4 {
            let joint = |left: &usize| {
                let pair = self.children.get(*left..*left + 2);
                pair.is_some_and(|pair| pair[0].len() + pair[1].len() <= WIDTH * 3 / 4)
            };
            let lefts = [at.checked_sub(1), Some(at)].into_iter().flatten();
            if let Some(left) = lefts.into_iter().find(joint) {
                let right = remove_exact(&mut self.children, left + 1);
                let key = remove_exact(Arc::make_mut(&mut self.keys), left);
                Arc::make_mut(&mut self.children[left]).append(key, Arc::unwrap_or_clone(right));
            }
        }
    }
}

/// Returns the keys and the values of the next entries, at most `width`; `None` if no entry is left.
fn some_of<K, V>(
    entries: &mut impl Iterator<Item = (K, V)>,
    width: usize,
) -> Option<(Arc<Vec<K>>, Vec<V>)> {
    let (mut keys, mut values) = (Vec::with_capacity(width), Vec::with_capacity(width));
    for (key, value) in entries.take(width) {
        keys.push(key);
        values.push(value);
    }
    keys.shrink_to_fit();
    values.shrink_to_fit();
    (!keys.is_empty()).then(|| (Arc::new(keys), values))
}

/// Returns the position of a key, like `slice::binary_search`.
///
/// Unlike the standard library, uses conditional branches. The CPU can then predict the next position and
/// load the key there early.
fn search<K: Ord>(keys: &[K], key: &K) -> Result<usize, usize> {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        let middle = low.midpoint(high);
        match keys[middle].cmp(key) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => high = middle,
        }
    }
    Err(low)
}

fn insert_exact<T>(vec: &mut Vec<T>, at: usize, item: T) {
    vec.reserve_exact(1);
    vec.insert(at, item);
}

fn remove_exact<T>(vec: &mut Vec<T>, at: usize) -> T {
    let item = vec.remove(at);
    vec.shrink_to_fit();
    item
}

fn append_exact<T>(vec: &mut Vec<T>, mut items: Vec<T>) {
    vec.reserve_exact(items.len());
    vec.append(&mut items);
    vec.shrink_to_fit();
}

fn split_exact<T>(vec: &mut Vec<T>, at: usize) -> Vec<T> {
    let mut right = vec.split_off(at);
    right.shrink_to_fit();
    vec.shrink_to_fit();
    right
}

pub(crate) struct Iter<'a, K, V, W> {
    /// For each level from the root down, the nodes that were not visited yet.
    pending: Vec<slice::Iter<'a, Arc<Node<K, V>>>>,
    leaf: std::iter::Zip<slice::Iter<'a, K>, slice::Iter<'a, V>>,
    within: W,
}

impl<'a, K, V, W: Fn(&K) -> bool> Iter<'a, K, V, W> {
    fn enter(&mut self, leaf: &'a Leaf<K, V>, from: usize) {
        let (keys, values) = (&leaf.keys[from..], &leaf.values[from..]);
        let mut end = keys.len();
        if keys.last().is_some_and(|last| !(self.within)(last)) {
            end = keys.partition_point(&self.within);
            self.pending.clear();
        }
        self.leaf = keys[..end].iter().zip(&values[..end]);
    }

    /// Advances to the next leaf, if there is one.
    #[cold]
    fn advance(&mut self) -> Option<()> {
        let mut node = loop {
            match self.pending.last_mut()?.next() {
                Some(node) => break node,
                None => drop(self.pending.pop()),
            }
        };
        loop {
            match &**node {
                Node::Branch(branch) => {
                    let mut children = branch.children.iter();
                    node = children.next()?;
                    self.pending.push(children);
                }
                Node::Leaf(leaf) => {
                    self.enter(leaf, 0);
                    return Some(());
                }
            }
        }
    }
}

impl<'a, K, V, W: Fn(&K) -> bool> Iterator for Iter<'a, K, V, W> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.leaf.next() {
                return Some(entry);
            }
            self.advance()?;
        }
    }
}

#[cfg(test)]
mod tests;
