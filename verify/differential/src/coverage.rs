//! Counts how often the library shows each behavior in the operation sequences of a run.
//!
//! A behavior is, for example, a kind of operation or a type of delta. A run compares one component, which is
//! a part of the library, with its equivalent in client-go. Each component lists its behaviors. A run fails
//! if one of these behaviors occurs too rarely, because the run then proves nothing about this behavior.

use std::collections::BTreeMap;

use harness::{
    coverage::{Counts, required},
    seeds::Origin,
};

use crate::{
    component::Component,
    oracle::Version,
    sequence::{Answer, Sequence, Step},
};

/// Required minimum of the median number of operations per sequence.
const MEDIAN_LENGTH: usize = 40;

/// Counts of the behaviors, and of the intentional differences from client-go, in a run of one [`Component`].
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    lengths: Vec<usize>,
    /// Number of operations in which the library showed each behavior.
    seen: Counts<&'static str>,
    /// Number of compared operations, by version of client-go and behavior of the library.
    compared: Counts<(Version, &'static str)>,
    /// Number of occurrences of each intentional difference, by name.
    accepted: Counts<&'static str>,
    /// For each behavior, the counts of the intentional differences in operations with this behavior.
    differing: BTreeMap<&'static str, Counts<&'static str>>,
}

impl Coverage {
    /// Records the length of a sequence, and the behaviors that the library showed in its steps `ours`.
    pub(crate) fn drawn(&mut self, sequence: &Sequence, ours: &[Step]) {
        self.lengths.push(sequence.operations.len());
        for (operation, step) in sequence.operations.iter().zip(ours) {
            for behaviour in behaviours(operation.verb, step) {
                self.seen.count(behaviour);
            }
        }
    }

    /// Records the operations that were compared with a version of client-go.
    ///
    /// `accepted` contains the operation index and the name of each intentional difference.
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

    pub(crate) fn sequences(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the number of operations in which the library showed this behavior.
    pub(crate) fn seen(&self, behaviour: &str) -> usize {
        self.seen.of(behaviour)
    }

    /// Returns the number of operations with `behaviour` that were compared with `version` of client-go.
    pub(crate) fn asked(&self, version: Version, behaviour: &'static str) -> usize {
        self.compared.of(&(version, behaviour))
    }

    /// Returns the names of the intentional differences in operations with this behavior.
    pub(crate) fn divergences(&self, behaviour: &str) -> Vec<&'static str> {
        let counts = self.differing.get(behaviour).into_iter();
        counts
            .flat_map(Counts::iter)
            .map(|(name, _)| *name)
            .collect()
    }

    /// Returns how often each intentional difference occurred, by name.
    pub(crate) fn accepted(&self) -> &Counts<&'static str> {
        &self.accepted
    }

    /// Returns the median number of operations in the recorded sequences.
    pub(crate) fn median(&self) -> usize {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or_default()
    }

    /// Returns a message for each reason why the coverage is not sufficient.
    pub(crate) fn findings(&self, component: &Component, origin: Origin) -> Vec<String> {
        let mut findings = self
            .seen
            .rare(component.behaviours, required(origin, self.sequences()));
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

/// Returns `verb` and the behaviors that the library showed in one operation, without duplicates.
fn behaviours(verb: &'static str, step: &Step) -> Vec<&'static str> {
    let mut behaviours = step.seen.clone();
    behaviours.push(verb);
    behaviours.sort_unstable();
    behaviours.dedup();
    behaviours
}
