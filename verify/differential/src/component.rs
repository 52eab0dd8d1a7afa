//! [`Component`]: a part of the library that has a counterpart in client-go. What each must be able to
//! do stands in its table; everything else is the same for all.

use crate::{
    draw::Draw,
    oracle::{Counterpart, Version},
    planted::Bug,
    sequence::{Answer, Sequence, Step},
};

/// How a component is drawn, asked and judged.
pub(crate) struct Component {
    /// Its name, on both sides.
    pub(crate) name: &'static str,
    /// Draws a sequence.
    pub(crate) draw: fn(&mut Draw) -> Sequence,
    /// Which versions of client-go can be asked it.
    pub(crate) versions: fn(&Sequence) -> &'static [Version],
    /// Carries it out here, faultily if a bug is planted: a step per operation.
    pub(crate) replay: fn(&Sequence, Option<Bug>) -> Vec<Step>,
    /// Whom client-go's side of it talks to in the midst of a sequence, if it does.
    pub(crate) counterpart: Option<NewCounterpart>,
    /// What a run has to have shown: verbs, types of deltas, branches.
    pub(crate) behaviours: &'static [&'static str],
    /// Which divergence it is that two answers differ, if it is one.
    pub(crate) recognise: fn(&Moment<'_>) -> Option<Accepted>,
    /// What is wrong with a step whatever client-go says: what a divergence promises of ours.
    pub(crate) must_not: fn(&Step) -> Option<&'static str>,
}

/// Makes whom a sequence is a conversation with.
pub(crate) type NewCounterpart = fn(&Sequence) -> Box<dyn Counterpart>;

/// Two answers that differ, with all that came before.
pub(crate) struct Moment<'a> {
    /// What was asked.
    pub(crate) sequence: &'a Sequence,
    /// Which operation it is.
    pub(crate) at: usize,
    /// What all operations gave here.
    pub(crate) ours: &'a [Step],
    /// What all operations gave there; `None` where that version can't be asked.
    pub(crate) theirs: &'a [Option<Answer>],
}

/// A difference that is on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// This one; what follows can be compared.
    Here(&'static str),
    /// All of these; what follows can be compared.
    Several(Vec<&'static str>),
    /// This one; from here on both are in different states.
    FromHere(&'static str),
}

impl Moment<'_> {
    /// The verb of the operation.
    pub(crate) fn verb(&self) -> &'static str {
        self.sequence.operations[self.at].verb
    }

    /// What it gave here.
    pub(crate) fn our(&self) -> &Answer {
        &self.ours[self.at].answer
    }

    /// What it gave there.
    pub(crate) fn their(&self) -> Option<&Answer> {
        self.theirs[self.at].as_ref()
    }

    /// Whether this operation has shown a behaviour here.
    pub(crate) fn saw(&self, behaviour: &str) -> bool {
        self.ours[self.at].seen.contains(&behaviour)
    }

    /// Whether an operation of one of these verbs came before.
    pub(crate) fn after(&self, verbs: &[&str]) -> bool {
        let before = &self.sequence.operations[..self.at];
        before.iter().any(|done| verbs.contains(&done.verb))
    }
}

/// For components that have no such rule.
pub(crate) fn nothing_more(_: &Step) -> Option<&'static str> {
    None
}
