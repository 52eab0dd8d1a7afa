//! [`Component`]: a part of the library that has a counterpart in client-go.
//!
//! A component is a table of functions and names. The rest of the program uses only this table, and does not
//! depend on a particular component.

use crate::{
    draw::Draw,
    oracle::{Counterpart, Version},
    planted::Bug,
    sequence::{Answer, Sequence, Step},
};

/// Draws, runs and compares the sequences of one part of the library.
pub(crate) struct Component {
    /// The name, which both sides use.
    pub(crate) name: &'static str,
    /// Draws a sequence.
    pub(crate) draw: fn(&mut Draw) -> Sequence,
    /// Returns the versions of client-go that can run a sequence.
    pub(crate) versions: fn(&Sequence) -> &'static [Version],
    /// Runs a sequence on the library, with the planted bug if one is given. Returns one step per operation.
    pub(crate) replay: fn(&Sequence, Option<Bug>) -> Vec<Step>,
    /// Creates the peer of client-go during a sequence, if the component needs one.
    pub(crate) counterpart: Option<NewCounterpart>,
    /// The behaviours that a run must show: verbs, types of deltas, branches.
    pub(crate) behaviours: &'static [&'static str],
    /// Returns the divergence that explains a difference between two answers; `None` if there is none.
    pub(crate) recognise: fn(&Moment<'_>) -> Option<Accepted>,
    /// Returns the guarantee that a step violates. It does not depend on client-go's answer, because the
    /// library gives these guarantees where client-go differs.
    pub(crate) must_not: fn(&Step) -> Option<&'static str>,
}

/// Creates the peer of a sequence.
pub(crate) type NewCounterpart = fn(&Sequence) -> Box<dyn Counterpart>;

/// Two different answers to an operation, and the sequence that contains it.
pub(crate) struct Moment<'a> {
    /// The sequence.
    pub(crate) sequence: &'a Sequence,
    /// The index of the operation whose answers differ.
    pub(crate) at: usize,
    /// The steps of the library.
    pub(crate) ours: &'a [Step],
    /// The answers of client-go; `None` for an operation that this version does not support.
    pub(crate) theirs: &'a [Option<Answer>],
}

/// An intentional difference, which a component has recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// One divergence; the answers after it are compared.
    Here(&'static str),
    /// Several divergences; the answers after them are compared.
    Several(Vec<&'static str>),
    /// One divergence, after which the states differ, so the later answers are not compared.
    FromHere(&'static str),
}

impl Moment<'_> {
    /// Returns the verb of the operation.
    pub(crate) fn verb(&self) -> &'static str {
        self.sequence.operations[self.at].verb
    }

    /// Returns the library's answer.
    pub(crate) fn our(&self) -> &Answer {
        &self.ours[self.at].answer
    }

    /// Returns client-go's answer; `None` if its version does not support the operation.
    pub(crate) fn their(&self) -> Option<&Answer> {
        self.theirs[self.at].as_ref()
    }

    /// Returns whether the library showed a behaviour in this operation.
    pub(crate) fn saw(&self, behaviour: &str) -> bool {
        self.ours[self.at].seen.contains(&behaviour)
    }

    /// Returns whether an earlier operation has one of these verbs.
    pub(crate) fn after(&self, verbs: &[&str]) -> bool {
        let before = &self.sequence.operations[..self.at];
        before.iter().any(|done| verbs.contains(&done.verb))
    }
}

/// The [`Component::must_not`] of components without guarantees of this kind.
pub(crate) fn nothing_more(_: &Step) -> Option<&'static str> {
    None
}
