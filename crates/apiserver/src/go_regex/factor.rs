//! Go's factoring of alternatives: common prefixes appear once, and runs of classes become one class.
//!
//! Factoring does not change which texts match. It changes the height and the size of the tree.

use super::class::Class;
use super::fold::append_folded;
use super::node::{Flags, Limit, Node, NodeId, Op};
use super::tree::Tree;

impl Tree {
    /// Returns a node that applies `op` to `subs`, which it merges with the parts of those that are `op` too.
    pub(super) fn collapse(&mut self, subs: &[NodeId], op: Op) -> Result<NodeId, Limit> {
        if let [only] = subs {
            return Ok(*only);
        }
        let id = self.node(op);
        let mut parts = Vec::with_capacity(subs.len());
        for sub in subs {
            if self.nodes[*sub].op == op {
                parts.append(&mut self.nodes[*sub].subs);
                self.reuse(*sub);
            } else {
                parts.push(*sub);
            }
        }
        if op == Op::Alternate {
            parts = self.factor(parts)?;
            if let [only] = parts[..] {
                self.reuse(id);
                return Ok(only);
            }
        }
        self.nodes[id].subs = parts;
        Ok(id)
    }

    /// Returns alternatives that match the same as `alternatives`.
    ///
    /// The recursion through [`Tree::collapse`] removes a prefix on each level, so its depth is at most the
    /// square root of twice the length of the pattern.
    fn factor(&mut self, alternatives: Vec<NodeId>) -> Result<Vec<NodeId>, Limit> {
        if alternatives.len() < 2 {
            return Ok(alternatives);
        }
        let alternatives = self.factor_strings(alternatives)?;
        let alternatives = self.factor_classes(alternatives)?;
        let alternatives = self.merge_classes(&alternatives);
        let is_empty = |id: &NodeId| self.nodes[*id].op == Op::EmptyMatch;
        let runs = alternatives.chunk_by(|left, right| is_empty(left) && is_empty(right));
        Ok(runs.filter_map(|run| run.last().copied()).collect())
    }

    /// Factors out the common literal prefixes of consecutive alternatives.
    fn factor_strings(&mut self, mut alternatives: Vec<NodeId>) -> Result<Vec<NodeId>, Limit> {
        let mut factored = Vec::with_capacity(alternatives.len());
        let mut start = 0;
        // The literal that starts with the common prefix of the run, and the length of the prefix.
        let mut prefix: Option<(NodeId, usize)> = None;
        for at in 0..=alternatives.len() {
            let leading = alternatives
                .get(at)
                .and_then(|id| self.leading_literal(*id));
            if let (Some((run, length)), Some(next)) = (prefix, leading) {
                let same = self.common_length(run, length, next);
                if same > 0 {
                    prefix = Some((run, same));
                    continue;
                }
            }
            match (&mut alternatives[start..at], prefix) {
                (run @ [_, _, ..], Some((literal, length))) => {
                    factored.push(self.with_string_prefix(run, literal, length)?);
                }
                (run, _) => factored.extend_from_slice(run),
            }
            start = at;
            prefix = leading.map(|id| (id, self.nodes[id].runes.len()));
        }
        Ok(factored)
    }

    /// Returns the number of runes that `next` has in common with the first `length` runes of `run`.
    fn common_length(&self, run: NodeId, length: usize, next: NodeId) -> usize {
        let (run, next) = (&self.nodes[run], &self.nodes[next]);
        if run.flags.has(Flags::FOLD) != next.flags.has(Flags::FOLD) {
            return 0;
        }
        let pairs = run.runes[..length].iter().zip(&next.runes);
        pairs.take_while(|(left, right)| left == right).count()
    }

    /// Returns the literal that `id` is or starts with.
    fn leading_literal(&self, id: NodeId) -> Option<NodeId> {
        let leading = self.first_part(id);
        (self.nodes[leading].op == Op::Literal).then_some(leading)
    }

    /// Returns the first part of a concatenation, or `id` if it is none.
    fn first_part(&self, id: NodeId) -> NodeId {
        let node = &self.nodes[id];
        match node.subs.first() {
            Some(first) if node.op == Op::Concat => *first,
            _ => id,
        }
    }

    /// Returns the concatenation of the first `length` runes of `literal` and the rest of each of `run`.
    fn with_string_prefix(
        &mut self,
        run: &mut [NodeId],
        literal: NodeId,
        length: usize,
    ) -> Result<NodeId, Limit> {
        let prefix = self.node(Op::Literal);
        self.nodes[prefix].runes = self.nodes[literal].runes[..length].to_vec();
        if self.nodes[literal].flags.has(Flags::FOLD) {
            self.nodes[prefix].flags = Flags::FOLD;
        }
        for id in run.iter_mut() {
            *id = self.without_leading_runes(*id, length);
            self.check_limits(*id)?;
        }
        self.with_prefix(prefix, run)
    }

    fn with_prefix(&mut self, prefix: NodeId, run: &[NodeId]) -> Result<NodeId, Limit> {
        let suffix = self.collapse(run, Op::Alternate)?;
        let id = self.node(Op::Concat);
        self.nodes[id].subs = vec![prefix, suffix];
        Ok(id)
    }

    /// Removes the first `length` runes of the literal that `id` is or starts with. Returns what is left.
    fn without_leading_runes(&mut self, id: NodeId, length: usize) -> NodeId {
        let literal = self.first_part(id);
        let node = &mut self.nodes[literal];
        if node.op == Op::Literal {
            node.runes.drain(..length);
            if node.runes.is_empty() {
                node.op = Op::EmptyMatch;
            }
        }
        if literal == id || self.nodes[literal].op != Op::EmptyMatch {
            return id;
        }
        self.reuse(literal);
        self.without_first_part(id)
    }

    /// Removes the first part of the concatenation `id`. Returns what is left.
    fn without_first_part(&mut self, id: NodeId) -> NodeId {
        let node = &mut self.nodes[id];
        node.subs.remove(0);
        match node.subs[..] {
            [] => node.op = Op::EmptyMatch,
            [only] => {
                self.reuse(id);
                return only;
            }
            _ => {}
        }
        id
    }

    /// Factors out a class, or a fixed number of copies of one, with which consecutive alternatives start.
    fn factor_classes(&mut self, mut alternatives: Vec<NodeId>) -> Result<Vec<NodeId>, Limit> {
        let mut factored = Vec::with_capacity(alternatives.len());
        let mut start = 0;
        let mut prefix: Option<NodeId> = None;
        for at in 0..=alternatives.len() {
            let leading = alternatives.get(at).and_then(|id| self.leading_part(*id));
            if let (Some(run), Some(next)) = (prefix, leading)
                && self.is_same_class(run, next)
            {
                continue;
            }
            match (&mut alternatives[start..at], prefix) {
                (run @ [_, _, ..], Some(prefix)) => {
                    for (position, id) in run.iter_mut().enumerate() {
                        *id = self.without_leading_part(*id, position > 0);
                        self.check_limits(*id)?;
                    }
                    factored.push(self.with_prefix(prefix, run)?);
                }
                (run, _) => factored.extend_from_slice(run),
            }
            start = at;
            prefix = leading;
        }
        Ok(factored)
    }

    fn leading_part(&self, id: NodeId) -> Option<NodeId> {
        let leading = self.first_part(id);
        let is_empty = |id: NodeId| self.nodes[id].op == Op::EmptyMatch;
        (!is_empty(id) && !is_empty(leading)).then_some(leading)
    }

    /// Whether both nodes are the same class, or as many copies of the same class.
    fn is_same_class(&self, left: NodeId, right: NodeId) -> bool {
        let (left, right) = (&self.nodes[left], &self.nodes[right]);
        if left.op != Op::Repeat || right.op != Op::Repeat {
            return left.is_class() && is_equal_class(left, right);
        }
        let is_lazy = |node: &Node| node.flags.has(Flags::NON_GREEDY);
        let (Some(left_sub), Some(right_sub)) = (left.subs.first(), right.subs.first()) else {
            return false;
        };
        let (left_sub, right_sub) = (&self.nodes[*left_sub], &self.nodes[*right_sub]);
        left.copies.max == Some(left.copies.min)
            && left.copies == right.copies
            && is_lazy(left) == is_lazy(right)
            && left_sub.is_class()
            && is_equal_class(left_sub, right_sub)
    }

    /// Removes the part that `id` is or starts with, for reuse if `reuse`. Returns what is left.
    fn without_leading_part(&mut self, id: NodeId, reuse: bool) -> NodeId {
        let leading = self.first_part(id);
        if reuse {
            self.reuse(leading);
        }
        if leading == id {
            self.node(Op::EmptyMatch)
        } else {
            self.without_first_part(id)
        }
    }

    /// Joins runs of alternatives that are classes.
    fn merge_classes(&mut self, alternatives: &[NodeId]) -> Vec<NodeId> {
        let is_class = |id: &NodeId| self.nodes[*id].is_class();
        let runs = alternatives.chunk_by(|left, right| is_class(left) && is_class(right));
        let runs: Vec<&[NodeId]> = runs.collect();
        let merged = runs.into_iter().map(|run| match run {
            [only] => *only,
            run => self.merged_class(run),
        });
        merged.collect()
    }

    fn merged_class(&mut self, run: &[NodeId]) -> NodeId {
        let rank = |id: NodeId| (self.nodes[id].op, self.nodes[id].rune_count());
        let mut most_complex = 0;
        for at in 1..run.len() {
            if rank(run[most_complex]) < rank(run[at]) {
                most_complex = at;
            }
        }
        let mut run = run.to_vec();
        run.swap(0, most_complex);
        for id in &run[1..] {
            self.merge_class(run[0], *id);
            self.reuse(*id);
        }
        self.clean_alternative(run[0]);
        run[0]
    }

    /// Adds the class `other` to the class `id`, which must be of the same kind or of a later one.
    pub(super) fn merge_class(&mut self, id: NodeId, other: NodeId) {
        let Ok([node, other]) = self.nodes.get_disjoint_mut([id, other]) else {
            return;
        };
        match node.op {
            Op::AnyNotNewline if matches_newline(other) => node.op = Op::Any,
            Op::Class if other.op == Op::Literal => append_literal(&mut node.class, other),
            Op::Class => node.class.append_all(other.class.ranges()),
            Op::Literal if node.runes != other.runes || node.flags != other.flags => {
                let mut class = Class::default();
                append_literal(&mut class, node);
                append_literal(&mut class, other);
                node.op = Op::Class;
                node.class = class;
                node.runes.clear();
            }
            _ => {}
        }
    }
}

fn is_equal_class(left: &Node, right: &Node) -> bool {
    let folds = |node: &Node| node.flags.has(Flags::FOLD);
    left.op == right.op
        && (matches!(left.op, Op::AnyNotNewline | Op::Any) || folds(left) == folds(right))
        && left.runes == right.runes
        && left.class == right.class
}

/// Adds the runes of a literal, with their orbits if it folds.
fn append_literal(class: &mut Class, literal: &Node) {
    for rune in &literal.runes {
        if literal.flags.has(Flags::FOLD) {
            append_folded(class, (*rune, *rune));
        } else {
            class.append(*rune, *rune);
        }
    }
}

fn matches_newline(node: &Node) -> bool {
    let newline = u32::from('\n');
    match node.op {
        Op::Any => true,
        Op::Class => node
            .class
            .ranges()
            .iter()
            .any(|(lo, hi)| (*lo..=*hi).contains(&newline)),
        Op::Literal => node.runes == [newline],
        _ => false,
    }
}
