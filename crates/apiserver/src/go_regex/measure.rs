//! Go's limits of a pattern, and the measures of its nodes that they are compared with.
//!
//! Go measures sizes only when the repetitions seen so far could exceed the limit, and keeps the size of a
//! node that it reuses. Both decide which patterns it rejects, so this module does the same.
//! Guarantees: no node of the tree is higher than [`HEIGHT_MAX`], which bounds all recursion over the tree.

use super::node::{Copies, Limit, Node, NodeId, Op};

/// Maximum height of the tree (`maxHeight` in Go).
pub(super) const HEIGHT_MAX: u32 = 1000;

/// Maximum size of Go's program in instructions (`maxSize` in Go).
const SIZE_MAX: u64 = (128 << 20) / (5 * 8);

/// Maximum sum of the rune counts of all nodes pushed (`maxRunes` in Go).
pub(super) const RUNES_MAX: usize = (128 << 20) / 4;

/// Maximum sum of the lengths of all classes in ranges. `\pL` has about 650.
pub(super) const RANGES_MAX: usize = 1 << 19;

/// Maximum number of copies that a repetition and those inside it make of the innermost part.
pub(super) const COPIES_MAX: u32 = 1000;

/// What is known about the nodes of a tree.
#[derive(Debug)]
pub(super) struct Measures {
    /// Product of all repetitions seen.
    repeats: u64,
    /// The size of each node, or 0 if it is not known; `None` before sizes matter.
    sizes: Option<Vec<u64>>,
    /// The height of each node, or 0 if it is not known; `None` before heights matter.
    heights: Option<Vec<u32>>,
}

impl Default for Measures {
    fn default() -> Measures {
        Measures {
            repeats: 1,
            sizes: None,
            heights: None,
        }
    }
}

impl Measures {
    pub(super) fn forget_height(&mut self, id: NodeId) {
        if let Some(height) = self
            .heights
            .as_mut()
            .and_then(|heights| heights.get_mut(id))
        {
            *height = 0;
        }
    }

    /// Counts a repetition.
    fn multiply(&mut self, copies: Copies) {
        let factor = u64::from(copies.max.unwrap_or(copies.min)).max(1);
        self.repeats = if factor > SIZE_MAX / self.repeats {
            SIZE_MAX
        } else {
            self.repeats * factor
        };
    }

    /// Checks the height and the size of a node that is new or has changed.
    pub(super) fn check(
        &mut self,
        nodes: &[Node],
        stack: &[NodeId],
        id: NodeId,
    ) -> Result<(), Limit> {
        self.check_size(nodes, stack, id)?;
        self.check_height(nodes, stack, id)
    }

    fn check_size(&mut self, nodes: &[Node], stack: &[NodeId], id: NodeId) -> Result<(), Limit> {
        if self.sizes.is_none() {
            if nodes[id].op == Op::Repeat {
                self.multiply(nodes[id].copies);
            }
            if (nodes.len() as u64) < SIZE_MAX / self.repeats {
                return Ok(());
            }
            self.sizes = Some(Vec::new());
            for on_stack in stack {
                self.check_size(nodes, stack, *on_stack)?;
            }
        }
        let sizes = self.sizes.get_or_insert_default();
        sizes.resize(nodes.len(), 0);
        if size(nodes, id, sizes) > SIZE_MAX {
            return Err(Limit::Size);
        }
        Ok(())
    }

    fn check_height(&mut self, nodes: &[Node], stack: &[NodeId], id: NodeId) -> Result<(), Limit> {
        if nodes.len() < HEIGHT_MAX as usize {
            return Ok(());
        }
        if self.heights.is_none() {
            self.heights = Some(Vec::new());
            for on_stack in stack {
                self.check_height(nodes, stack, *on_stack)?;
            }
        }
        let heights = self.heights.get_or_insert_default();
        heights.resize(nodes.len(), 0);
        if height(nodes, id, heights) > HEIGHT_MAX {
            return Err(Limit::Depth);
        }
        Ok(())
    }
}

/// Returns the number of Go's instructions for a node, and records it.
fn size(nodes: &[Node], id: NodeId, sizes: &mut [u64]) -> u64 {
    let node = &nodes[id];
    let mut inner = 0_u64;
    for sub in &node.subs {
        let known = match sizes[*sub] {
            0 => size(nodes, *sub, sizes),
            known => known,
        };
        inner = inner.saturating_add(known);
    }
    let size = match node.op {
        Op::Literal => node.runes.len() as u64,
        Op::Capture | Op::Star => inner.saturating_add(2),
        Op::Plus | Op::Quest => inner.saturating_add(1),
        Op::Concat => inner,
        Op::Alternate => inner.saturating_add((node.subs.len() as u64).saturating_sub(1)),
        Op::Repeat => repeat_size(node.copies, inner),
        _ => 1,
    };
    sizes[id] = size.max(1);
    sizes[id]
}

/// Returns the size of a counted repetition of a part of the size `inner`.
fn repeat_size(copies: Copies, inner: u64) -> u64 {
    let min = u64::from(copies.min);
    match copies.max.map(u64::from) {
        None if min == 0 => inner.saturating_add(2),
        None => inner.saturating_mul(min).saturating_add(1),
        Some(max) => inner.saturating_mul(max).saturating_add(max - min),
    }
}

/// Returns the height of a node, and records it.
fn height(nodes: &[Node], id: NodeId, heights: &mut [u32]) -> u32 {
    let mut highest = 0;
    for sub in &nodes[id].subs {
        let known = match heights[*sub] {
            0 => height(nodes, *sub, heights),
            known => known,
        };
        highest = highest.max(known);
    }
    heights[id] = highest + 1;
    heights[id]
}

/// Whether the repetitions in a node make at most `copies` copies of any part.
///
/// The parser checks only repetitions of at least 2 copies. Each of them halves the copies allowed, so it
/// visits a node at most 10 times.
pub(super) fn copies_allowed(nodes: &[Node], id: NodeId, copies: u32) -> bool {
    let node = &nodes[id];
    let mut inner = copies;
    if node.op == Op::Repeat {
        let factor = node.copies.max.unwrap_or(node.copies.min);
        if node.copies.max == Some(0) {
            return true;
        }
        if factor > copies {
            return false;
        }
        inner = copies / factor.max(1);
    }
    node.subs
        .iter()
        .all(|sub| copies_allowed(nodes, *sub, inner))
}
