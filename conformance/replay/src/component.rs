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
pub struct Component {
    /// Its name, on both sides.
    pub name: &'static str,
    /// Draws a sequence.
    pub draw: fn(&mut Draw) -> Sequence,
    /// Which versions of client-go can be asked it.
    pub versions: fn(&Sequence) -> &'static [Version],
    /// Carries it out here, faultily if a bug is planted: a step per operation.
    pub replay: fn(&Sequence, Option<Bug>) -> Vec<Step>,
    /// What a run has to have shown: verbs, types of deltas, branches.
    pub behaviours: &'static [&'static str],
    /// Which divergence it is that two answers differ, if it is one.
    pub recognise: fn(&Moment<'_>) -> Option<Accepted>,
    /// What is wrong with a step although client-go does the same: the other half of a divergence.
    pub must_not: fn(&Step) -> Option<&'static str>,
}

/// A difference that is on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// This one; what follows can be compared.
    Here(&'static str),
    /// This one; from here on both are in different states.
    FromHere(&'static str),
}

/// All of them, in the order in which they run.
pub const COMPONENTS: [&Component; 5] = [
    &delta_fifo::COMPONENT,
    &in_order::COMPONENT,
    &indexer::COMPONENT,
    &workqueue::COMPONENT,
    &rate_limiter::COMPONENT,
];

/// For components that have no such rule.
pub fn nothing_more(_: &Step) -> Option<&'static str> {
    None
}
