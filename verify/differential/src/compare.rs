//! Comparison: step by step, until two answers differ and no divergence says why.

use crate::{
    component::{Accepted, Component},
    oracle::Version,
    sequence::{Answer, Sequence, Step},
};

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

/// What a comparison came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// How many steps were compared.
    pub(crate) compared: usize,
    /// The divergences that were met, with the step.
    pub(crate) accepted: Vec<(usize, &'static str)>,
    /// The first difference that is none.
    pub(crate) failure: Option<Failure>,
}

/// A difference.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// With which version.
    pub(crate) version: Version,
    /// At which operation.
    pub(crate) at: usize,
    /// Why, if the answers are the same.
    pub(crate) reason: Option<&'static str>,
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

/// Compares what one version gave with ours.
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
