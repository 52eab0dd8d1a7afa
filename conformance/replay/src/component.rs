//! [`Component`]: a part of the library that has a counterpart in client-go. What each must be able to
//! do stands in its table; everything else is the same for all.

use crate::{
    compare::Moment,
    delta_fifo,
    draw::Draw,
    in_order, indexer,
    oracle::Version,
    planted::Bug,
    rate_limiter,
    sequence::{Sequence, Step},
    workqueue,
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
    /// What a run has to have shown: verbs, types of deltas, branches.
    pub(crate) behaviours: &'static [&'static str],
    /// Which divergence it is that two answers differ, if it is one.
    pub(crate) recognise: fn(&Moment<'_>) -> Option<Accepted>,
    /// What is wrong with a step whatever client-go says: what a divergence promises of ours.
    pub(crate) must_not: fn(&Step) -> Option<&'static str>,
}

/// A difference that is on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// This one; what follows can be compared.
    Here(&'static str),
    /// This one; from here on both are in different states.
    FromHere(&'static str),
}

/// All of them, in the order in which they run.
pub(crate) const COMPONENTS: [&Component; 5] = [
    &delta_fifo::COMPONENT,
    &in_order::COMPONENT,
    &indexer::COMPONENT,
    &workqueue::COMPONENT,
    &rate_limiter::COMPONENT,
];

/// For components that have no such rule.
pub(crate) fn nothing_more(_: &Step) -> Option<&'static str> {
    None
}
