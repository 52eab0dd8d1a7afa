//! Defines [`Component`], a part of the library that has an equivalent in client-go, such as a queue.
//!
//! A component is a struct of functions and names. The rest of the program uses only these functions and
//! names, and does not depend on a particular component.

use crate::{
    draw::Draw,
    oracle::{Counterpart, Version},
    planted::Bug,
    sequence::{Answer, Sequence, Step},
};

/// A part of the library that is compared with its equivalent in client-go.
pub(crate) struct Component {
    /// The name of the component, also in the Go programs that run client-go.
    pub(crate) name: &'static str,
    /// Draws a random sequence of operations.
    pub(crate) draw: fn(&mut Draw) -> Sequence,
    /// Returns the versions of client-go that can run the sequence.
    pub(crate) versions: fn(&Sequence) -> &'static [Version],
    /// Runs the sequence on the library, or on a variant of the library with the bug if one is given.
    pub(crate) replay: fn(&Sequence, Option<Bug>) -> Vec<Step>,
    /// Creates the [`Counterpart`], a fake API server, if client-go sends HTTP requests in this component.
    pub(crate) counterpart: Option<NewCounterpart>,
    /// Names of all operations, such as `add`, and of all library behaviors, such as "Pop of an empty queue".
    ///
    /// The tested sequences must cover each of them.
    pub(crate) behaviours: &'static [&'static str],
    /// Returns the intentional differences that explain different answers to an operation, if any.
    pub(crate) recognise: fn(&Moment<'_>) -> Option<Accepted>,
    /// Returns the guarantee that a step of the library violates, if any.
    pub(crate) must_not: fn(&Step) -> Option<&'static str>,
}

/// A function that creates the [`Counterpart`], a fake API server for client-go, for one sequence.
pub(crate) type NewCounterpart = fn(&Sequence) -> Box<dyn Counterpart>;

/// An operation for which the answers of the library and of client-go differ.
pub(crate) struct Moment<'a> {
    /// The sequence that contains the operation.
    pub(crate) sequence: &'a Sequence,
    /// The index of the operation whose answers differ.
    pub(crate) at: usize,
    /// The library's results, one per operation of `sequence`.
    pub(crate) ours: &'a [Step],
    /// The answers of one version of client-go. `None` for an operation that this version does not support.
    pub(crate) theirs: &'a [Option<Answer>],
}

/// The intentional differences that explain different answers to one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// One intentional difference. The comparison continues with the next operation.
    Here(&'static str),
    /// Several intentional differences. The comparison continues with the next operation.
    Several(Vec<&'static str>),
    /// One intentional difference. Later answers of the sequence are not compared, because the library and
    /// client-go have different states after the difference.
    FromHere(&'static str),
}

impl Moment<'_> {
    /// Returns the verb of the operation whose answers differ.
    pub(crate) fn verb(&self) -> &'static str {
        self.sequence.operations[self.at].verb
    }

    /// Returns the library's answer to the operation.
    pub(crate) fn our(&self) -> &Answer {
        &self.ours[self.at].answer
    }

    /// Returns client-go's answer, or `None` for an unsupported operation.
    pub(crate) fn their(&self) -> Option<&Answer> {
        self.theirs[self.at].as_ref()
    }

    /// Returns whether the library showed this behavior in the operation.
    pub(crate) fn saw(&self, behaviour: &str) -> bool {
        self.ours[self.at].seen.contains(&behaviour)
    }

    /// Returns whether an earlier operation of the sequence has one of these verbs.
    pub(crate) fn after(&self, verbs: &[&str]) -> bool {
        let before = &self.sequence.operations[..self.at];
        before.iter().any(|done| verbs.contains(&done.verb))
    }
}

/// The [`must_not`](Component::must_not) function of components without guarantees.
pub(crate) fn nothing_more(_: &Step) -> Option<&'static str> {
    None
}
