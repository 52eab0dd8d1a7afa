//! Comparison of two lists of answers, step by step, until the first unexplained difference.

use crate::{
    component::{Accepted, Component, Moment},
    oracle::Version,
    sequence::{Answer, Sequence, Step},
};

/// Result of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Number of compared steps.
    pub(crate) compared: usize,
    /// The divergences, each with the index of its step.
    pub(crate) accepted: Vec<(usize, &'static str)>,
    /// The first difference that is not a divergence.
    pub(crate) failure: Option<Failure>,
}

/// A difference.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The version of client-go.
    pub(crate) version: Version,
    /// The index of the operation.
    pub(crate) at: usize,
    /// The reason, if the answers are equal.
    pub(crate) reason: Option<&'static str>,
}

/// Compares the answers of one version with the library's.
pub(crate) fn compare(
    component: &Component,
    version: Version,
    sequence: &Sequence,
    (ours, theirs): (&[Step], &[Option<Answer>]),
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut comparable = true;
    for at in 0..sequence.operations.len() {
        let fails = |reason| Failure {
            version,
            at,
            reason,
        };
        if let Some(reason) = (component.must_not)(&ours[at]) {
            outcome.failure = Some(fails(Some(reason)));
            return outcome;
        }
        if !comparable {
            continue;
        }
        outcome.compared = at + 1;
        let Some(their) = &theirs[at] else { continue };
        if ours[at].answer.agrees(their) {
            continue;
        }
        let moment = Moment {
            sequence,
            at,
            ours,
            theirs,
        };
        match (component.recognise)(&moment) {
            Some(Accepted::Here(name)) => outcome.accepted.push((at, name)),
            Some(Accepted::Several(names)) => {
                let here = names.into_iter().map(|name| (at, name));
                outcome.accepted.extend(here);
            }
            Some(Accepted::FromHere(name)) => {
                outcome.accepted.push((at, name));
                comparable = false;
            }
            None => {
                outcome.failure = Some(fails(None));
                return outcome;
            }
        }
    }
    outcome
}

#[cfg(test)]
mod tests;
