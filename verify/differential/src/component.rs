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

/// The comparison of one part of the library with client-go.
///
/// Contains the functions that generate the sequences of operations, run them on the library, and judge
/// the differences.
pub(crate) struct Component {
    /// The name of the component in this program and in the Go programs that run client-go.
    pub(crate) name: &'static str,
    /// Draws a random sequence of operations.
    pub(crate) draw: fn(&mut Draw) -> Sequence,
    /// Returns the versions of client-go that can run the sequence.
    pub(crate) versions: fn(&Sequence) -> &'static [Version],
    /// Runs the sequence on the library, and returns one step per operation. If a [`Bug`] is given, the run
    /// contains this deliberate fault, to test whether the comparison with client-go detects the fault.
    pub(crate) replay: fn(&Sequence, Option<Bug>) -> Vec<Step>,
    /// Creates the [`Counterpart`] that answers the requests of client-go during a sequence.
    ///
    /// `None` if client-go sends no requests when it runs this component.
    pub(crate) counterpart: Option<NewCounterpart>,
    /// The names of all behaviors that the library must show in a run.
    ///
    /// A behavior is, for example, a kind of operation, a type of delta, or a branch of the library's code.
    pub(crate) behaviours: &'static [&'static str],
    /// Returns the intentional difference that explains two different answers, or `None` if the difference is
    /// not intentional.
    pub(crate) recognise: fn(&Moment<'_>) -> Option<Accepted>,
    /// Returns the guarantee of the library that the step violates, or `None` if the step violates none. The
    /// guarantees do not depend on client-go's answer.
    pub(crate) must_not: fn(&Step) -> Option<&'static str>,
}

/// A function that creates the [`Counterpart`] for a sequence. The counterpart answers the
/// requests of client-go.
pub(crate) type NewCounterpart = fn(&Sequence) -> Box<dyn Counterpart>;

/// An operation whose two answers differ, with its sequence and the answers to all operations.
pub(crate) struct Moment<'a> {
    /// The sequence that contains the operation.
    pub(crate) sequence: &'a Sequence,
    /// The index of the operation whose answers differ.
    pub(crate) at: usize,
    /// The library's answers to the sequence, one step per operation.
    pub(crate) ours: &'a [Step],
    /// The answers of one version of client-go to the sequence. `None` for an operation that this version
    /// does not support.
    pub(crate) theirs: &'a [Option<Answer>],
}

/// The intentional differences, identified by name, that explain why two answers to one
/// operation differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// One intentional difference. The answers to later operations are still compared.
    Here(&'static str),
    /// Several intentional differences. The answers to later operations are still compared.
    Several(Vec<&'static str>),
    /// One intentional difference after which the states of the library and of client-go differ. The answers
    /// to later operations are not compared.
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

    /// Returns client-go's answer to the operation, or `None` if the version does not support the operation.
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

/// Always returns `None`. Components without additional guarantees use this function as their
/// [`Component::must_not`].
pub(crate) fn nothing_more(_: &Step) -> Option<&'static str> {
    None
}
