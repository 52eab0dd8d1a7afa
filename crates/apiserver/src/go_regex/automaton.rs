//! Translates a tree to an automaton (NFA) over bytes.
//!
//! Guarantees: no recursion over the tree, so that its height needs no stack, and at most
//! [`AUTOMATON_BYTES_MAX`] of memory.

use std::collections::BTreeMap;

use regex_automata::nfa::thompson::{
    self, BuildError, Builder, NFA, State, Transition, WhichCaptures,
};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_syntax::hir::{Class as HirClass, ClassUnicode, ClassUnicodeRange, Hir};

use super::class::{RUNE_MAX, Range};
use super::fold::orbit;
use super::node::{Copies, Flags, Node, NodeId, Op};
use super::tree::Tree;

/// Maximum memory of an automaton in bytes.
pub(super) const AUTOMATON_BYTES_MAX: usize = 24 << 20;

const NEWLINE: u32 = 0xA;
const ANY: &[Range] = &[(0, RUNE_MAX)];
const ANY_NOT_NEWLINE: &[Range] = &[(0, NEWLINE - 1), (NEWLINE + 1, RUNE_MAX)];

/// The automaton exceeds [`AUTOMATON_BYTES_MAX`].
pub(super) struct TooLarge;

impl From<BuildError> for TooLarge {
    /// No other error is possible: the automaton has fewer states than their numbers allow, and no captures.
    fn from(_: BuildError) -> TooLarge {
        TooLarge
    }
}

/// Work that remains. The automaton is built from its end to its start.
enum Task {
    /// Build a node in front of `next`.
    Build(NodeId),
    /// Add `next` to the states that a union leads to.
    Join(StateID),
    /// Make `next` a union that leads to `next` and to `end`. The way to `next` is preferred if `is_greedy` is set.
    Skip { end: StateID, is_greedy: bool },
    /// Add `end` to the states that a union leads to.
    Leave { union: StateID, end: StateID },
    /// Continue in front of this state.
    Continue(StateID),
}

struct Translator<'a> {
    nodes: &'a [Node],
    builder: Builder,
    tasks: Vec<Task>,
    /// The state to which the part that is built next leads.
    next: StateID,
    /// Automata of classes, for their next copies.
    classes: BTreeMap<Vec<Range>, NFA>,
}

/// Builds the automaton of the node `root`.
pub(super) fn build(tree: &Tree, root: NodeId) -> Result<NFA, TooLarge> {
    let mut builder = Builder::new();
    // A match never starts or ends inside a code point, so that the engines need not check it.
    builder.set_utf8(false);
    builder.set_size_limit(Some(AUTOMATON_BYTES_MAX))?;
    builder.start_pattern()?;
    let end = builder.add_match()?;
    let end = builder.add_capture_end(end, 0)?;
    let mut translator = Translator {
        nodes: &tree.nodes,
        builder,
        tasks: vec![Task::Build(root)],
        next: end,
        classes: BTreeMap::new(),
    };
    translator.run()?;
    // The match of a search starts here, after the code points that it skips.
    let begin = translator
        .builder
        .add_capture_start(translator.next, 0, None)?;
    translator.next = begin;
    if !starts_at_begin(&tree.nodes, root) {
        // A search skips whole code points, because `\B` matches between the bytes of one. The engines would
        // skip bytes, so this loop is part of the pattern for them.
        let search = translator.builder.add_union(vec![translator.next])?;
        translator.next = search;
        translator.class(ANY)?;
        translator.builder.patch(search, translator.next)?;
        translator.next = search;
    }
    let start = translator.next;
    translator.builder.finish_pattern(start)?;
    Ok(translator.builder.build(start, start)?)
}

/// Whether the node matches at the start of the text only. May be false although it does.
fn starts_at_begin(nodes: &[Node], root: NodeId) -> bool {
    let first = |id: &NodeId| {
        let node = &nodes[*id];
        let is_sequence = matches!(node.op, Op::Capture | Op::Concat);
        node.subs.first().copied().filter(|_| is_sequence)
    };
    let last = std::iter::successors(Some(root), first).last();
    last.is_some_and(|id| nodes[id].op == Op::BeginText)
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), TooLarge> {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Build(id) => self.build(id)?,
                Task::Join(union) => self.builder.patch(union, self.next)?,
                Task::Leave { union, end } => self.builder.patch(union, end)?,
                Task::Skip { end, is_greedy } => {
                    let mut ways = vec![self.next, end];
                    if !is_greedy {
                        ways.reverse();
                    }
                    self.next = self.builder.add_union(ways)?;
                }
                Task::Continue(state) => self.next = state,
            }
        }
        Ok(())
    }

    fn build(&mut self, id: NodeId) -> Result<(), TooLarge> {
        let nodes = self.nodes;
        let node = &nodes[id];
        let subs = node.subs.iter().copied();
        match node.op {
            Op::Literal => self.literal(node)?,
            Op::Class => self.class(node.class.ranges())?,
            Op::AnyNotNewline => self.class(ANY_NOT_NEWLINE)?,
            Op::Any => self.class(ANY)?,
            Op::BeginLine => self.look(Look::StartLF)?,
            Op::EndLine => self.look(Look::EndLF)?,
            Op::BeginText => self.look(Look::Start)?,
            Op::EndText => self.look(Look::End)?,
            Op::WordBoundary => self.look(Look::WordAscii)?,
            Op::NoWordBoundary => self.look(Look::WordAsciiNegate)?,
            Op::Capture | Op::Concat => self.tasks.extend(subs.map(Task::Build)),
            Op::Alternate => self.alternation(&node.subs)?,
            Op::Star => self.repetition(node, Copies { min: 0, max: None })?,
            Op::Plus => self.repetition(node, Copies { min: 1, max: None })?,
            Op::Quest => self.repetition(
                node,
                Copies {
                    min: 0,
                    max: Some(1),
                },
            )?,
            Op::Repeat => self.repetition(node, node.copies)?,
            Op::EmptyMatch => {
                // Takes memory, which bounds the work for copies of it.
                let empty = self.builder.add_empty()?;
                self.builder.patch(empty, self.next)?;
                self.next = empty;
            }
            Op::NoMatch | Op::Group | Op::CaptureGroup | Op::VerticalBar => {
                self.next = self.builder.add_fail()?;
            }
        }
        Ok(())
    }

    fn alternation(&mut self, subs: &[NodeId]) -> Result<(), TooLarge> {
        let union = self.builder.add_union(Vec::new())?;
        self.tasks.push(Task::Continue(union));
        // The first part is preferred, so it is joined first.
        for sub in subs.iter().rev() {
            let tasks = [
                Task::Join(union),
                Task::Build(*sub),
                Task::Continue(self.next),
            ];
            self.tasks.extend(tasks);
        }
        Ok(())
    }

    /// Repeats the only part of a node. More copies are preferred, unless the node is not greedy.
    fn repetition(&mut self, node: &Node, copies: Copies) -> Result<(), TooLarge> {
        let [sub] = *node.subs else {
            return Ok(());
        };
        let is_greedy = !node.flags.has(Flags::NON_GREEDY);
        let skip = |end| Task::Skip { end, is_greedy };
        // The tasks run in the opposite order.
        let end = self.next;
        let once = if copies.max.is_some() {
            copies.min
        } else {
            copies.min.saturating_sub(1)
        };
        self.tasks.extend((0..once).map(|_| Task::Build(sub)));
        if let Some(max) = copies.max {
            let optional = (copies.min..max).flat_map(|_| [skip(end), Task::Build(sub)]);
            self.tasks.extend(optional);
            return Ok(());
        }
        if copies.min == 0 {
            // As in Go, `x*` is `(x+)?`, which has the right preference if `x` matches the empty text.
            self.tasks.push(skip(end));
        }
        let first = if is_greedy { None } else { Some(end) };
        let union = self.builder.add_union(first.into_iter().collect())?;
        if is_greedy {
            self.tasks.push(Task::Leave { union, end });
        }
        self.tasks
            .extend([Task::Join(union), Task::Build(sub), Task::Continue(union)]);
        Ok(())
    }

    fn look(&mut self, look: Look) -> Result<(), TooLarge> {
        self.next = self.builder.add_look(self.next, look)?;
        Ok(())
    }

    fn literal(&mut self, node: &Node) -> Result<(), TooLarge> {
        let folds = node.flags.has(Flags::FOLD);
        for rune in node.runes.iter().rev() {
            let orbit: Vec<Range> = orbit(*rune).map(|rune| (rune, rune)).collect();
            match char::from_u32(*rune) {
                Some(letter) if !folds || orbit.len() == 1 => self.letter(letter)?,
                _ if folds => self.class(&orbit)?,
                _ => self.next = self.builder.add_fail()?,
            }
        }
        Ok(())
    }

    fn letter(&mut self, letter: char) -> Result<(), TooLarge> {
        for byte in letter.encode_utf8(&mut [0; 4]).bytes().rev() {
            self.next = self.builder.add_range(transition(byte, byte, self.next))?;
        }
        Ok(())
    }

    /// Builds a class without its surrogates, which no text contains.
    fn class(&mut self, ranges: &[Range]) -> Result<(), TooLarge> {
        let ascii = ranges.iter().map_while(|(lo, hi)| {
            Some(transition(
                u8::try_from(*lo).ok()?,
                u8::try_from(*hi).ok()?,
                self.next,
            ))
        });
        let mut ascii: Vec<Transition> = ascii.filter(|range| range.end.is_ascii()).collect();
        if ascii.len() == ranges.len() {
            ascii.sort_unstable_by_key(|range| range.start);
            self.next = self.builder.add_sparse(ascii)?;
            return Ok(());
        }
        let class = if let Some(class) = self.classes.get(ranges) {
            class.clone()
        } else {
            let class = class_automaton(ranges)?;
            self.classes.insert(ranges.to_vec(), class.clone());
            class
        };
        let mut copies = vec![None; class.states().len()];
        self.next = self.copy(&class, class.start_anchored(), &mut copies)?;
        Ok(())
    }

    /// Adds a copy of a state of the automaton of a class, and of the states it leads to.
    ///
    /// The automaton has no cycle, and the recursion is at most as deep as a code point has bytes, twice.
    fn copy(
        &mut self,
        class: &NFA,
        state: StateID,
        copies: &mut [Option<StateID>],
    ) -> Result<StateID, TooLarge> {
        if let Some(copy) = copies[state] {
            return Ok(copy);
        }
        let copy = match class.state(state) {
            State::Match { .. } => self.next,
            State::ByteRange { trans } => {
                let next = self.copy(class, trans.next, copies)?;
                self.builder
                    .add_range(transition(trans.start, trans.end, next))?
            }
            State::Sparse(sparse) => {
                let mut transitions = Vec::with_capacity(sparse.transitions.len());
                for trans in &sparse.transitions {
                    let next = self.copy(class, trans.next, copies)?;
                    transitions.push(transition(trans.start, trans.end, next));
                }
                self.builder.add_sparse(transitions)?
            }
            State::Union { alternates } => {
                let alternates = alternates.to_vec();
                self.copy_union(class, &alternates, copies)?
            }
            State::BinaryUnion { alt1, alt2 } => self.copy_union(class, &[*alt1, *alt2], copies)?,
            State::Look { next, .. } | State::Capture { next, .. } => {
                self.copy(class, *next, copies)?
            }
            State::Dense(_) | State::Fail => self.builder.add_fail()?,
        };
        copies[state] = Some(copy);
        Ok(copy)
    }

    fn copy_union(
        &mut self,
        class: &NFA,
        states: &[StateID],
        copies: &mut [Option<StateID>],
    ) -> Result<StateID, TooLarge> {
        let mut union = Vec::with_capacity(states.len());
        for state in states {
            union.push(self.copy(class, *state, copies)?);
        }
        Ok(self.builder.add_union(union)?)
    }
}

fn transition(start: u8, end: u8, next: StateID) -> Transition {
    Transition { start, end, next }
}

/// Returns the automaton of a class. It has no look-around, and its states are never dense.
fn class_automaton(ranges: &[Range]) -> Result<NFA, TooLarge> {
    let parts = ranges
        .iter()
        .flat_map(|(lo, hi)| [(*lo, (*hi).min(0xD7FF)), ((*lo).max(0xE000), *hi)]);
    let ranges = parts.filter(|(lo, hi)| lo <= hi).filter_map(|(lo, hi)| {
        Some(ClassUnicodeRange::new(
            char::from_u32(lo)?,
            char::from_u32(hi)?,
        ))
    });
    let class = Hir::class(HirClass::Unicode(ClassUnicode::new(ranges)));
    let config = thompson::Config::new().which_captures(WhichCaptures::None);
    Ok(thompson::Compiler::new()
        .configure(config)
        .build_from_hir(&class)?)
}
