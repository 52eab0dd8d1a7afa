//! The tree that Go's parser builds, and the stack on which the parser builds it.
//!
//! The limits of Go count nodes that were allocated, and measure the tree after Go's factoring. The tree
//! therefore allocates, reuses and rewrites nodes as Go does, and its nodes have the fields that decide how.
//! Guarantees: the tree matches the text that the pattern matches. It does not record which group matched.

use super::class::{Class, RUNE_MAX};
use super::fold::{lowest, simple_fold};
use super::measure::{Measures, RANGES_MAX, RUNES_MAX};
use super::node::{Flags, Limit, Node, NodeId, Op};

/// The nodes of a pattern that is being parsed.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Flags in effect at the current place of the pattern.
    pub(super) flags: Flags,
    pub(super) nodes: Vec<Node>,
    /// Nodes to reuse, the last one first.
    free: Vec<NodeId>,
    /// Complete parts and marks, the last one on top.
    pub(super) stack: Vec<NodeId>,
    /// Sum of the rune counts of all nodes pushed.
    runes: usize,
    /// Sum of the lengths of the classes in the pattern.
    ranges: usize,
    measures: Measures,
}

impl Tree {
    pub(super) fn node(&mut self, op: Op) -> NodeId {
        let node = Node::new(op);
        if let Some(id) = self.free.pop() {
            self.nodes[id] = node;
            return id;
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub(super) fn reuse(&mut self, id: NodeId) {
        self.measures.forget_height(id);
        self.free.push(id);
    }

    /// Pushes a new node with the flags in effect.
    pub(super) fn push_op(&mut self, op: Op) -> Result<(), Limit> {
        let id = self.node(op);
        self.nodes[id].flags = self.flags;
        self.push(id)
    }

    /// Makes `id` the class `class` with the flags in effect, and pushes it.
    pub(super) fn push_class(&mut self, id: NodeId, class: Class) -> Result<(), Limit> {
        self.ranges += class.ranges().len();
        if self.ranges > RANGES_MAX {
            return Err(Limit::Ranges);
        }
        self.nodes[id].flags = self.flags;
        self.nodes[id].class = class;
        self.push(id)
    }

    pub(super) fn push_literal(&mut self, rune: u32) -> Result<(), Limit> {
        let id = self.node(Op::Literal);
        let node = &mut self.nodes[id];
        node.flags = self.flags;
        node.runes.push(if self.flags.has(Flags::FOLD) {
            lowest(rune)
        } else {
            rune
        });
        self.push(id)
    }

    pub(super) fn push(&mut self, id: NodeId) -> Result<(), Limit> {
        self.runes += self.nodes[id].rune_count();
        if let Some((rune, flags)) = self.class_as_literal(id) {
            if self.join_literals(Some((rune, flags))) {
                return Ok(());
            }
            let node = &mut self.nodes[id];
            node.op = Op::Literal;
            node.class = Class::default();
            node.runes = vec![rune];
            node.flags = flags;
        } else {
            self.join_literals(None);
        }
        self.stack.push(id);
        self.check_limits(id)
    }

    /// Returns the literal that equals the class `id`: one rune, or a letter in both cases.
    fn class_as_literal(&self, id: NodeId) -> Option<(u32, Flags)> {
        let node = &self.nodes[id];
        if node.op != Op::Class {
            return None;
        }
        let (first, second) = match node.class.ranges() {
            [(lo, hi)] if lo == hi => return Some((*lo, self.flags.without(Flags::FOLD))),
            [(lo, hi)] if lo + 1 == *hi => (*lo, *hi),
            [(first, hi), (second, second_hi)] if first == hi && second == second_hi => {
                (*first, *second)
            }
            _ => return None,
        };
        let is_orbit = simple_fold(first) == second && simple_fold(second) == first;
        is_orbit.then_some((first, self.flags.with(Flags::FOLD)))
    }

    /// Joins the two literals on top of the stack if their case rules agree.
    ///
    /// After a join, the top node becomes the literal `next`, if there is one. Returns whether it did.
    pub(super) fn join_literals(&mut self, next: Option<(u32, Flags)>) -> bool {
        let [.., below, top] = self.stack[..] else {
            return false;
        };
        let (kept, joined) = (&self.nodes[below], &self.nodes[top]);
        let are_literals = kept.op == Op::Literal && joined.op == Op::Literal;
        if !are_literals || kept.flags.has(Flags::FOLD) != joined.flags.has(Flags::FOLD) {
            return false;
        }
        let runes = std::mem::take(&mut self.nodes[top].runes);
        self.nodes[below].runes.extend(runes);
        if let Some((rune, flags)) = next {
            self.nodes[top].runes.push(rune);
            self.nodes[top].flags = flags;
            return true;
        }
        self.stack.pop();
        self.reuse(top);
        false
    }

    /// Cleans the class of a complete alternative, and recognizes the classes that `.` stands for.
    pub(super) fn clean_alternative(&mut self, id: NodeId) {
        let node = &mut self.nodes[id];
        if node.op != Op::Class {
            return;
        }
        node.class.clean();
        let newline = u32::from('\n');
        node.op = match node.class.ranges() {
            [(0, RUNE_MAX)] => Op::Any,
            [(0, hi), (lo, RUNE_MAX)] if *hi == newline - 1 && *lo == newline + 1 => {
                Op::AnyNotNewline
            }
            _ => return,
        };
        node.class = Class::default();
    }

    /// Checks the limits for a node that is new or has changed.
    pub(super) fn check_limits(&mut self, id: NodeId) -> Result<(), Limit> {
        if self.runes > RUNES_MAX {
            return Err(Limit::Size);
        }
        self.measures.check(&self.nodes, &self.stack, id)
    }
}
