//! Tests the tree. The tests compare the tree with a `BTreeMap`, check the invariants of nodes, and count the
//! nodes that an operation visits or copies.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use proptest::{
    collection::{btree_map, vec},
    prelude::*,
};

use super::{Node, Tree};

/// A tree with at most four entries or children per node. It has several levels even with few keys.
type Narrow = Tree<u16, u32, 4>;

fn entries(tree: &Narrow) -> Vec<(u16, u32)> {
    tree.iter().map(|(key, value)| (*key, *value)).collect()
}

/// Checks the invariants of a subtree, and returns the height of this subtree.
fn check(node: &Node<u16, u32>, above: Option<u16>, below: Option<u16>, is_root: bool) -> usize {
    assert!(node.len() <= 4);
    assert!(is_root || node.len() > 0);
    let keys = match node {
        Node::Leaf(leaf) => &leaf.keys,
        Node::Branch(branch) => &branch.keys,
    };
    assert!(keys.is_sorted_by(|a, b| a < b));
    assert!(
        keys.iter()
            .all(|key| above.is_none_or(|above| *key >= above))
    );
    assert!(
        keys.iter()
            .all(|key| below.is_none_or(|below| *key < below))
    );
    match node {
        Node::Leaf(leaf) => {
            assert_eq!(leaf.keys.len(), leaf.values.len());
            assert_eq!(leaf.keys.capacity(), leaf.keys.len());
            0
        }
        Node::Branch(branch) => {
            assert_eq!(branch.keys.len() + 1, branch.children.len());
            assert!(!is_root || branch.children.len() > 1);
            let heights = branch.children.iter().enumerate().map(|(at, child)| {
                let left = at.checked_sub(1).map(|left| branch.keys[left]);
                let right = branch.keys.get(at).copied();
                check(child, left.or(above), right.or(below), false)
            });
            let heights: Vec<usize> = heights.collect();
            assert!(heights.iter().all(|height| *height == heights[0]));
            heights[0] + 1
        }
    }
}

fn nodes<'a>(node: &'a Arc<Node<u16, u32>>, into: &mut Vec<&'a Arc<Node<u16, u32>>>) {
    into.push(node);
    if let Node::Branch(branch) = &**node {
        branch.children.iter().for_each(|child| nodes(child, into));
    }
}

/// Returns the number of nodes that are in `tree` and not in `other`.
fn own_nodes(tree: &Narrow, other: &Narrow) -> usize {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    nodes(&tree.root, &mut own);
    nodes(&other.root, &mut others);
    let is_own = |node: &&Arc<_>| !others.iter().any(|other| Arc::ptr_eq(node, other));
    own.into_iter().filter(is_own).count()
}

fn ascending(len: u16) -> Narrow {
    let mut tree = Narrow::default();
    for key in 0..len {
        tree.insert(key, key.into());
    }
    tree
}

proptest! {
    #[test]
    fn a_tree_is_an_ordered_map_with_independent_clones(
        first in btree_map(0_u16..80, any::<u32>(), 0..80),
        steps in vec((any::<bool>(), 0_u16..80, any::<u32>()), 0..300),
        moment in 0_usize..300,
        from in 0_u16..82,
        to in 0_u16..82,
    ) {
        let (mut tree, mut model) = (Narrow::from_ordered(first.clone()), first);
        check(&tree.root, None, None, true);
        prop_assert_eq!(tree.len(), model.len());
        let (mut then, mut model_then) = (tree.clone(), model.clone());
        for (step, (is_insert, key, value)) in steps.into_iter().enumerate() {
            if step == moment {
                (then, model_then) = (tree.clone(), model.clone());
            }
            if is_insert || step % 3 == 0 {
                prop_assert_eq!(tree.insert(key, value), model.insert(key, value));
            } else {
                prop_assert_eq!(tree.remove(&key), model.remove(&key));
            }
            check(&tree.root, None, None, true);
            prop_assert_eq!(tree.len(), model.len());
        }
        let of_model = |model: &BTreeMap<u16, u32>| model.clone().into_iter().collect::<Vec<_>>();
        prop_assert_eq!(entries(&tree), of_model(&model));
        prop_assert_eq!(entries(&then), of_model(&model_then));
        for key in 0..82 {
            prop_assert_eq!(tree.get(&key), model.get(&key));
        }
        for bound in [Bound::Included(&from), Bound::Excluded(&from), Bound::Unbounded] {
            let found: Vec<_> = tree.range(bound, |key| *key < to).collect();
            let expected = model.range((bound.cloned(), Bound::Unbounded));
            let expected: Vec<_> = expected.take_while(|(key, _)| **key < to).collect();
            prop_assert_eq!(found, expected);
        }
        let mut patched = model_then.clone();
        let mut last = None;
        for (key, value) in then.diff(&tree) {
            prop_assert!(last < Some(*key), "in order, each once");
            last = Some(*key);
            prop_assert_ne!(model_then.get(key), value);
            match value {
                Some(value) => drop(patched.insert(*key, *value)),
                None => drop(patched.remove(key)),
            }
        }
        prop_assert_eq!(patched, model);
    }
}

#[test]
fn insertions_in_order_fill_the_leaves() {
    let tree = ascending(64);
    assert_eq!(leaves(&tree), 64 / 4);
}

fn leaves(tree: &Narrow) -> usize {
    let mut all = Vec::new();
    nodes(&tree.root, &mut all);
    let leaves = all.iter().filter(|node| matches!(****node, Node::Leaf(_)));
    leaves.count()
}

#[test]
fn small_leaves_are_merged() {
    let mut tree = ascending(64);
    for key in (0..64).filter(|key| key % 4 != 0) {
        tree.remove(&key);
    }
    assert_eq!(tree.len(), 16);
    assert!(leaves(&tree) <= 8, "{} for 16 entries", leaves(&tree));
}

#[test]
fn a_range_checks_one_key_per_leaf_up_to_its_end() {
    let checked = std::cell::Cell::new(0);
    let tree = ascending(400);
    let range = tree.range(Bound::Included(&40), |key| {
        checked.set(checked.get() + 1);
        *key < 61
    });
    assert_eq!(range.count(), 21);
    // The range has five leaves, and its end is searched for in the sixth.
    assert!(checked.get() <= 5 + 1 + 3, "{} times", checked.get());
}

#[test]
fn a_change_copies_one_node_of_each_level() {
    let before = ascending(200);
    let height = check(&before.root, None, None, true);
    let mut updated = before.clone();
    updated.insert(77, 0);
    assert_eq!(own_nodes(&updated, &before), height + 1);
    let second = Arc::clone(&updated.root);
    updated.insert(77, 1);
    assert!(
        !Arc::ptr_eq(&second, &updated.root),
        "another tree references the node"
    );
    let root = Arc::as_ptr(&updated.root);
    updated.insert(77, 2);
    assert_eq!(
        root,
        Arc::as_ptr(&updated.root),
        "no other tree references the node"
    );
    let mut unchanged = before.clone();
    assert_eq!(unchanged.remove(&1_000), None);
    assert_eq!(own_nodes(&unchanged, &before), 0);
}

/// A value that counts its comparisons in a diff. All values are equal.
#[derive(Clone)]
struct Watched<'a>(&'a std::cell::Cell<usize>);

impl PartialEq for Watched<'_> {
    fn eq(&self, _: &Self) -> bool {
        self.0.set(self.0.get() + 1);
        true
    }
}

#[test]
fn a_difference_is_found_without_visiting_shared_nodes() {
    let compared = std::cell::Cell::new(0);
    let mut before = Tree::<u16, Watched<'_>, 4>::default();
    for key in 0..10_000 {
        before.insert(key, Watched(&compared));
    }
    let mut after = before.clone();
    after.remove(&10);
    after.insert(5_000, Watched(&compared));
    after.insert(20_000, Watched(&compared));
    let found: Vec<_> = before
        .diff(&after)
        .map(|(key, value)| (*key, value.is_some()))
        .collect();
    // Equal values are no difference, even in different nodes.
    assert_eq!(found, [(10, false), (20_000, true)]);
    assert!(
        compared.get() < 3 * 4,
        "{} of 10,000 entries",
        compared.get()
    );
}

#[test]
fn a_tree_without_entries_equals_a_new_one() {
    let mut tree = ascending(100);
    for key in (0..100).rev() {
        assert_eq!(tree.remove(&key), Some(key.into()));
        check(&tree.root, None, None, true);
    }
    assert_eq!((tree.len(), tree.iter().count()), (0, 0));
    assert_eq!(tree.diff(&ascending(2)).count(), 2);
    assert_eq!(ascending(2).diff(&tree).count(), 2);
}
