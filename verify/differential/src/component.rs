//! [`Component`]: a part of the library that has a counterpart in client-go.
//!
//! A component is a table of functions and names; the rest of the program treats all components alike.

use crate::{
    draw::Draw,
    oracle::{Counterpart, Version},
    planted::Bug,
    sequence::{Answer, Sequence, Step},
};

/// How the sequences of a component are drawn, run and compared.
pub(crate) struct Component {
    /// The component's name, on both sides.
    pub(crate) name: &'static str,
    /// Draws a sequence.
    pub(crate) draw: fn(&mut Draw) -> Sequence,
    /// The versions of client-go that can run a sequence.
    pub(crate) versions: fn(&Sequence) -> &'static [Version],
    /// Runs a sequence on the library, with a planted bug if there is one: a step per operation.
    pub(crate) replay: fn(&Sequence, Option<Bug>) -> Vec<Step>,
    /// The peer that client-go's side talks to while a sequence runs, if it needs one.
    pub(crate) counterpart: Option<NewCounterpart>,
    /// What a run must see: verbs, types of deltas, branches.
    pub(crate) behaviours: &'static [&'static str],
    /// The divergence that explains why two answers differ, if one does.
    pub(crate) recognise: fn(&Moment<'_>) -> Option<Accepted>,
    /// What is wrong with a step, whatever client-go answers: a divergence states what ours must do.
    pub(crate) must_not: fn(&Step) -> Option<&'static str>,
}

/// Creates the peer of a sequence.
pub(crate) type NewCounterpart = fn(&Sequence) -> Box<dyn Counterpart>;

/// Two answers that differ, and the sequence up to them.
pub(crate) struct Moment<'a> {
    /// The sequence.
    pub(crate) sequence: &'a Sequence,
    /// The place of the operation whose answers differ.
    pub(crate) at: usize,
    /// The steps of the library.
    pub(crate) ours: &'a [Step],
    /// The answers of client-go; `None` for an operation that this version does not have.
    pub(crate) theirs: &'a [Option<Answer>],
}

/// A difference on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// One divergence; the answers after it are compared.
    Here(&'static str),
    /// Several divergences; the answers after them are compared.
    Several(Vec<&'static str>),
    /// One divergence; both sides are in different states after it, so the rest is not compared.
    FromHere(&'static str),
}

impl Moment<'_> {
    /// The verb of the operation.
    pub(crate) fn verb(&self) -> &'static str {
        self.sequence.operations[self.at].verb
    }

    /// The library's answer.
    pub(crate) fn our(&self) -> &Answer {
        &self.ours[self.at].answer
    }

    /// The answer of client-go.
    pub(crate) fn their(&self) -> Option<&Answer> {
        self.theirs[self.at].as_ref()
    }

    /// Whether the library showed a behaviour in this operation.
    pub(crate) fn saw(&self, behaviour: &str) -> bool {
        self.ours[self.at].seen.contains(&behaviour)
    }

    /// Whether an earlier operation has one of these verbs.
    pub(crate) fn after(&self, verbs: &[&str]) -> bool {
        let before = &self.sequence.operations[..self.at];
        before.iter().any(|done| verbs.contains(&done.verb))
    }
}

/// The `must_not` of components without such a rule.
pub(crate) fn nothing_more(_: &Step) -> Option<&'static str> {
    None
}
