//! [`Coverage`]: counts the behaviours that the sequences of a run have shown.
//!
//! A run that shows a required behaviour too rarely fails, because it would prove nothing about that
//! behaviour.

use std::collections::BTreeMap;

use harness::coverage::{Counts, required};

use crate::{
    component::Component,
    oracle::Version,
    sequence::{Answer, Sequence, Step},
};

/// Minimum of the median length of all sequences.
const MEDIAN_LENGTH: usize = 40;

/// Counts of one component.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    lengths: Vec<usize>,
    /// Number of occurrences of each behaviour.
    seen: Counts<&'static str>,
    /// Number of comparisons of each behaviour with a version.
    compared: Counts<(Version, &'static str)>,
    /// Number of occurrences of each divergence.
    accepted: Counts<&'static str>,
    /// Number of divergences per behaviour.
    differing: BTreeMap<&'static str, Counts<&'static str>>,
}

impl Coverage {
    /// Records a sequence with the library's steps.
    pub(crate) fn drawn(&mut self, sequence: &Sequence, ours: &[Step]) {
        self.lengths.push(sequence.operations.len());
        for (operation, step) in sequence.operations.iter().zip(ours) {
            for behaviour in behaviours(operation.verb, step) {
                self.seen.count(behaviour);
            }
        }
    }

    /// Records the compared steps of a sequence with a version, and their divergences.
    pub(crate) fn compared(
        &mut self,
        version: Version,
        sequence: &Sequence,
        (ours, theirs): (&[Step], &[Option<Answer>]),
        accepted: &[(usize, &'static str)],
    ) {
        let steps = sequence.operations.iter().zip(ours).zip(theirs);
        for ((operation, step), their) in steps {
            if their.is_some() {
                for behaviour in behaviours(operation.verb, step) {
                    self.compared.count((version, behaviour));
                }
            }
        }
        for (at, name) in accepted {
            self.accepted.count(*name);
            for behaviour in behaviours(sequence.operations[*at].verb, &ours[*at]) {
                self.differing.entry(behaviour).or_default().count(*name);
            }
        }
    }

    /// Returns the number of sequences.
    pub(crate) fn sequences(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the number of occurrences of a behaviour.
    pub(crate) fn seen(&self, behaviour: &str) -> usize {
        self.seen.of(behaviour)
    }

    /// Returns the number of comparisons of a behaviour with a version.
    pub(crate) fn asked(&self, version: Version, behaviour: &'static str) -> usize {
        self.compared.of(&(version, behaviour))
    }

    /// Returns the divergences of steps that showed this behaviour.
    pub(crate) fn divergences(&self, behaviour: &str) -> Vec<&'static str> {
        let counts = self.differing.get(behaviour).into_iter();
        counts
            .flat_map(Counts::iter)
            .map(|(name, _)| *name)
            .collect()
    }

    /// Returns the number of occurrences of each divergence.
    pub(crate) fn accepted(&self) -> &Counts<&'static str> {
        &self.accepted
    }

    /// Returns the median length of the sequences.
    pub(crate) fn median(&self) -> usize {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or_default()
    }

    /// Returns complaints about behaviours that are too rare, and sequences that are too short.
    pub(crate) fn findings(&self, component: &Component) -> Vec<String> {
        let mut findings = self
            .seen
            .rare(component.behaviours, required(self.sequences()));
        let strange = self.seen.iter().map(|(seen, _)| seen);
        let strange = strange.filter(|seen| !component.behaviours.contains(seen));
        findings.extend(strange.map(|seen| format!("{seen:?} is not in the table of behaviours")));
        if self.median() < MEDIAN_LENGTH {
            findings.push(format!(
                "the median length is {}, at least {MEDIAN_LENGTH} are needed",
                self.median()
            ));
        }
        findings
    }
}

/// Returns the behaviours of one step, without duplicates.
fn behaviours(verb: &'static str, step: &Step) -> Vec<&'static str> {
    let mut behaviours = step.seen.clone();
    behaviours.push(verb);
    behaviours.sort_unstable();
    behaviours.dedup();
    behaviours
}
