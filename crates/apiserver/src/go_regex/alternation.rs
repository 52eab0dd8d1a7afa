//! Concatenation, alternation and groups on the parser's stack.

use super::measure::{COPIES_MAX, copies_allowed};
use super::node::{Copies, Flags, Limit, NodeId, Op};
use super::tree::Tree;

/// Why a repetition is invalid.
pub(super) enum RepeatError {
    NoArgument,
    TooManyCopies,
    Limit(Limit),
}

impl Tree {
    /// Repeats the part on top of the stack. `flags` has [`Flags::NON_GREEDY`] if it prefers fewer copies.
    pub(super) fn repeat(
        &mut self,
        op: Op,
        copies: Copies,
        flags: Flags,
    ) -> Result<(), RepeatError> {
        let top = self.stack.last().copied();
        let Some(sub) = top.filter(|id| !self.nodes[*id].op.is_mark()) else {
            return Err(RepeatError::NoArgument);
        };
        let id = self.node(op);
        let node = &mut self.nodes[id];
        node.flags = flags;
        node.copies = copies;
        node.subs = vec![sub];
        self.stack.pop();
        self.stack.push(id);
        self.check_limits(id).map_err(RepeatError::Limit)?;
        let is_counted = copies.max.unwrap_or(copies.min) >= 2;
        if is_counted && !copies_allowed(&self.nodes, id, COPIES_MAX) {
            return Err(RepeatError::TooManyCopies);
        }
        Ok(())
    }

    /// Replaces the parts above the topmost mark by their concatenation.
    fn concat(&mut self) -> Result<(), Limit> {
        self.join_literals(None);
        let parts = self.pop_parts();
        let id = if parts.is_empty() {
            self.node(Op::EmptyMatch)
        } else {
            self.collapse(&parts, Op::Concat)?
        };
        self.push(id)
    }

    /// Replaces the parts above the topmost mark, which is a group, by their alternation.
    fn alternate(&mut self) -> Result<(), Limit> {
        let parts = self.pop_parts();
        if let Some(last) = parts.last() {
            self.clean_alternative(*last);
        }
        let id = if parts.is_empty() {
            self.node(Op::NoMatch)
        } else {
            self.collapse(&parts, Op::Alternate)?
        };
        self.push(id)
    }

    /// Removes the parts above the topmost mark from the stack, and returns them.
    fn pop_parts(&mut self) -> Vec<NodeId> {
        let parts = self.stack.iter().rev();
        let count = parts
            .take_while(|id| !self.nodes[**id].op.is_mark())
            .count();
        self.stack.split_off(self.stack.len() - count)
    }

    /// Ends an alternative at a vertical bar.
    pub(super) fn end_alternative(&mut self) -> Result<(), Limit> {
        self.concat()?;
        if self.lower_alternative() {
            return Ok(());
        }
        self.push_op(Op::VerticalBar)
    }

    /// Moves the alternative on top of the stack below the vertical bar under it, if there is one.
    ///
    /// Below a vertical bar, the parts of the stack are alternatives. Two classes become one.
    fn lower_alternative(&mut self) -> bool {
        let [.., bar, top] = self.stack[..] else {
            return false;
        };
        if self.nodes[bar].op != Op::VerticalBar {
            return false;
        }
        let below = self.stack.len().checked_sub(3);
        if let Some(at) = below {
            let previous = self.stack[at];
            if self.nodes[top].is_class() && self.nodes[previous].is_class() {
                let is_more_complex = self.nodes[top].op > self.nodes[previous].op;
                let (kept, merged) = if is_more_complex {
                    (top, previous)
                } else {
                    (previous, top)
                };
                self.stack[at] = kept;
                self.merge_class(kept, merged);
                self.reuse(merged);
                self.stack.pop();
                return true;
            }
            self.clean_alternative(previous);
        }
        let length = self.stack.len();
        self.stack.swap(length - 2, length - 1);
        true
    }

    /// Ends the alternation above the topmost group.
    pub(super) fn end_alternation(&mut self) -> Result<(), Limit> {
        self.concat()?;
        if self.lower_alternative() {
            self.stack.pop();
        }
        self.alternate()
    }

    /// Ends the topmost group, whose alternation has ended. Returns false if no group is open.
    pub(super) fn end_group(&mut self) -> Result<bool, Limit> {
        let [.., group, content] = self.stack[..] else {
            return Ok(false);
        };
        self.stack.truncate(self.stack.len() - 2);
        let node = &mut self.nodes[group];
        self.flags = node.flags;
        match node.op {
            Op::Group => self.push(content)?,
            Op::CaptureGroup => {
                node.op = Op::Capture;
                node.subs = vec![content];
                self.push(group)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
