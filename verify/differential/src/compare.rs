//! Compares the library's answers to a sequence of operations with the answers of one version of client-go.
//!
//! An intentional difference is called a divergence; [`Component::recognise`] identifies divergences. The
//! comparison ends at the first difference that is not a divergence. It continues after a divergence, unless
//! the divergence changes the answers to later operations.

use crate::{
    component::{Accepted, Component, Moment},
    oracle::Version,
    sequence::{Answer, Sequence, Step},
};

/// The result of comparing the answers to one sequence.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Number of operations up to and including the last compared operation.
    pub(crate) compared: usize,
    /// Names of the intentional differences, each with the index of its operation.
    pub(crate) accepted: Vec<(usize, &'static str)>,
    /// The first unintentional difference from client-go or violated guarantee, if any.
    pub(crate) failure: Option<Failure>,
}

/// An unintentional difference from client-go, or a violated guarantee of the library.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The version of client-go whose answers were compared.
    pub(crate) version: Version,
    /// The index of the operation at which the failure occurred.
    pub(crate) at: usize,
    /// The violated guarantee, or `None` for a difference between the answers.
    pub(crate) reason: Option<&'static str>,
}

/// Compares the library's answers to `sequence` with the answers of client-go.
///
/// Also checks the library's guarantees at each operation.
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
