//! Defines [`Set`], a set of paths to fields, as a tree.
//!
//! Guarantees: no part of the tree is without a path, so two equal sets have equal trees.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::path::PathElement;

/// A set of paths to fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(BTreeMap<PathElement, Node>);

/// The paths that begin with the path of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// Whether the path of the node itself is in the set.
    pub(super) is_member: bool,
    pub(super) below: Set,
}

impl Node {
    /// A node with its own path only.
    pub(super) fn leaf() -> Node {
        Node {
            is_member: true,
            below: Set::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }

    /// Adds the paths of another node.
    pub(super) fn add(&mut self, other: Node) {
        self.is_member |= other.is_member;
        self.below.add(other.below);
    }
}

impl Set {
    /// Creates a set from paths of member names.
    pub(crate) fn of(paths: &[&[&str]]) -> Set {
        let mut set = Set::default();
        for path in paths {
            let node = path.iter().rev().fold(Node::leaf(), |node, name| {
                let below = Set(BTreeMap::from([(PathElement::field(name), node)]));
                Node {
                    is_member: false,
                    below,
                }
            });
            set.add(node.below);
        }
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (&PathElement, &Node)> {
        self.0.iter()
    }

    pub(super) fn get(&self, step: &PathElement) -> Option<&Node> {
        self.0.get(step)
    }

    /// Adds the paths of a node at a step. An empty node adds nothing.
    pub(super) fn insert(&mut self, step: PathElement, node: Node) {
        if node.is_empty() {
            return;
        }
        match self.0.entry(step) {
            Entry::Vacant(place) => {
                place.insert(node);
            }
            Entry::Occupied(mut place) => place.get_mut().add(node),
        }
    }

    /// Replaces the paths at a step and below it.
    pub(super) fn replace(&mut self, step: PathElement, node: Node) {
        self.0.insert(step, node);
    }

    /// Adds the paths of another set.
    pub(super) fn add(&mut self, other: Set) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for (step, node) in other.0 {
            self.insert(step, node);
        }
    }

    /// Returns the paths that are in both sets, with the steps of this set.
    ///
    /// An equal step can have another text, since 1 equals 1.0.
    pub(super) fn intersection(&self, other: &Set) -> Set {
        let common = |step: &PathElement, node: &Node, other: &Node| {
            let node = Node {
                is_member: node.is_member && other.is_member,
                below: node.below.intersection(&other.below),
            };
            (!node.is_empty()).then(|| (step.clone(), node))
        };
        // The loop is over the smaller side, since many managers are compared with one change.
        if self.0.len() <= other.0.len() {
            let nodes = self.0.iter();
            let nodes = nodes.filter_map(|(step, node)| common(step, node, other.0.get(step)?));
            return Set(nodes.collect());
        }
        let nodes = other.0.iter().filter_map(|(step, other)| {
            let (step, node) = self.0.get_key_value(step)?;
            common(step, node, other)
        });
        Set(nodes.collect())
    }

    /// Removes the paths of another set. The paths below a removed path remain.
    pub(super) fn subtract(&mut self, other: &Set) {
        if other.is_empty() {
            return;
        }
        self.0.retain(|step, node| {
            if let Some(other) = other.0.get(step) {
                node.is_member &= !other.is_member;
                node.below.subtract(&other.below);
            }
            !node.is_empty()
        });
    }

    /// Removes the paths of another set, and all paths below them.
    pub(super) fn subtract_all(&mut self, other: &Set) {
        if other.is_empty() {
            return;
        }
        self.0.retain(|step, node| match other.0.get(step) {
            Some(other) if other.is_member => false,
            Some(other) => {
                node.below.subtract_all(&other.below);
                !node.is_empty()
            }
            None => true,
        });
    }

    /// Calls `visit` with every path: the members of a node before the paths below them. Stops at an `Err`.
    pub(super) fn each_path<E>(
        &self,
        path: &mut Vec<PathElement>,
        visit: &mut impl FnMut(&[PathElement]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (step, node) in &self.0 {
            if node.is_member {
                path.push(step.clone());
                let done = visit(path);
                path.pop();
                done?;
            }
        }
        for (step, node) in &self.0 {
            path.push(step.clone());
            let done = node.below.each_path(path, visit);
            path.pop();
            done?;
        }
        Ok(())
    }

    /// Returns the number of paths.
    pub(super) fn len(&self) -> usize {
        let count = |node: &Node| usize::from(node.is_member) + node.below.len();
        self.0.values().map(count).sum()
    }
}

impl FromIterator<(PathElement, Node)> for Set {
    fn from_iter<I: IntoIterator<Item = (PathElement, Node)>>(nodes: I) -> Set {
        let mut set = Set::default();
        for (step, node) in nodes {
            set.insert(step, node);
        }
        set
    }
}
