//! The nodes of the tree that Go's parser builds.

use super::class::Class;

/// Kind of a node, in Go's order: classes after literals, and the most general class last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Op {
    NoMatch,
    EmptyMatch,
    Literal,
    Class,
    AnyNotNewline,
    Any,
    BeginLine,
    EndLine,
    BeginText,
    EndText,
    WordBoundary,
    NoWordBoundary,
    Capture,
    Star,
    Plus,
    Quest,
    Repeat,
    Concat,
    Alternate,
    /// On the stack only: an open group without a capture.
    Group,
    /// On the stack only: an open group with a capture.
    CaptureGroup,
    /// On the stack only: the alternatives before it are complete.
    VerticalBar,
}

impl Op {
    /// Whether the node only marks a place on the stack.
    pub(super) fn is_mark(self) -> bool {
        self >= Op::Group
    }

    /// Whether a node of this kind can always be part of a class; a literal can if it has one rune.
    fn is_class(self) -> bool {
        matches!(self, Op::Class | Op::AnyNotNewline | Op::Any)
    }
}

/// Flags of the syntax, `(?imsU)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    /// `i`: letters match in both cases.
    pub(super) const FOLD: Flags = Flags(1);
    /// `s`: `.` matches a newline.
    pub(super) const DOT_NEWLINE: Flags = Flags(2);
    /// The opposite of `m`: `^` and `$` match at the ends of the text only.
    pub(super) const ONE_LINE: Flags = Flags(4);
    /// `U`: repetitions prefer fewer copies.
    pub(super) const NON_GREEDY: Flags = Flags(8);

    pub(super) fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(super) fn with(self, flag: Flags) -> Flags {
        Flags(self.0 | flag.0)
    }

    pub(super) fn without(self, flag: Flags) -> Flags {
        Flags(self.0 & !flag.0)
    }

    pub(super) fn toggled(self, flag: Flags) -> Flags {
        Flags(self.0 ^ flag.0)
    }

    pub(super) fn inverted(self) -> Flags {
        Flags(!self.0)
    }
}

/// Index of a node in its [`Tree`].
pub(super) type NodeId = usize;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) flags: Flags,
    pub(super) subs: Vec<NodeId>,
    /// Code points of an [`Op::Literal`].
    pub(super) runes: Vec<u32>,
    /// Code points of an [`Op::Class`].
    pub(super) class: Class,
    /// Copies of an [`Op::Repeat`].
    pub(super) copies: Copies,
}

/// Bounds of a counted repetition. Without `max`, it has no upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Copies {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
}

impl Node {
    pub(super) fn new(op: Op) -> Node {
        Node {
            op,
            flags: Flags::default(),
            subs: Vec::new(),
            runes: Vec::new(),
            class: Class::default(),
            copies: Copies::default(),
        }
    }

    /// Length of Go's list `Rune`, which holds the runes of a literal or two for each range of a class.
    pub(super) fn rune_count(&self) -> usize {
        self.runes.len() + 2 * self.class.ranges().len()
    }

    /// Whether the node matches exactly one code point out of a set (`isCharClass` in Go).
    pub(super) fn is_class(&self) -> bool {
        self.op.is_class() || self.op == Op::Literal && self.runes.len() == 1
    }
}

/// A limit that the pattern exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Go's limit of the nesting depth.
    Depth,
    /// Go's limit of the program size.
    Size,
    /// The limit of the memory for classes, which Go does not have.
    Ranges,
}
