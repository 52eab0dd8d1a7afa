//! [`Coverage`]: what the sequences of a run have shown. Sequences that show nothing prove nothing.

use std::collections::BTreeMap;

use crate::{
    component::Component,
    oracle::Version,
    sequence::{Answer, Sequence, Step},
};

/// At least so often everything must have been seen ...
const REQUIRED: usize = 100;
/// ... in so many sequences. Fewer sequences need as much less.
const PER_SEQUENCES: usize = 2000;

/// The middle one of all sequences' lengths must not be less.
const MEDIAN_LENGTH: usize = 40;

/// What was seen of one component.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    lengths: Vec<usize>,
    /// How often each behaviour was seen.
    seen: BTreeMap<&'static str, usize>,
    /// How often it was compared with a version.
    compared: BTreeMap<(Version, &'static str), usize>,
    /// How often each divergence was met, and at which behaviours.
    accepted: BTreeMap<&'static str, usize>,
    differing: BTreeMap<&'static str, BTreeMap<&'static str, usize>>,
}

impl Coverage {
    /// A sequence was drawn and carried out.
    pub(crate) fn drawn(&mut self, sequence: &Sequence, ours: &[Step]) {
        self.lengths.push(sequence.operations.len());
        for (operation, step) in sequence.operations.iter().zip(ours) {
            for behaviour in behaviours(operation.verb, step) {
                *self.seen.entry(behaviour).or_default() += 1;
            }
        }
    }

    /// So much of it was compared with a version, with these divergences.
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
                    *self.compared.entry((version, behaviour)).or_default() += 1;
                }
            }
        }
        for (at, name) in accepted {
            *self.accepted.entry(name).or_default() += 1;
            for behaviour in behaviours(sequence.operations[*at].verb, &ours[*at]) {
                let of = self.differing.entry(behaviour).or_default();
                *of.entry(name).or_default() += 1;
            }
        }
    }

    /// How many sequences there were.
    pub(crate) fn sequences(&self) -> usize {
        self.lengths.len()
    }

    /// How often a behaviour was seen.
    pub(crate) fn seen(&self, behaviour: &str) -> usize {
        self.seen.get(behaviour).copied().unwrap_or_default()
    }

    /// How often a version was asked about it.
    pub(crate) fn asked(&self, version: Version, behaviour: &'static str) -> usize {
        self.compared
            .get(&(version, behaviour))
            .copied()
            .unwrap_or_default()
    }

    /// The divergences that showed in steps of this behaviour.
    pub(crate) fn divergences(&self, behaviour: &str) -> Vec<&'static str> {
        let names = self.differing.get(behaviour).into_iter();
        names.flat_map(BTreeMap::keys).copied().collect()
    }

    /// How often each divergence was met.
    pub(crate) fn accepted(&self) -> &BTreeMap<&'static str, usize> {
        &self.accepted
    }

    /// The middle one of the lengths.
    pub(crate) fn median(&self) -> usize {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or_default()
    }

    /// What is too rare, or too short.
    pub(crate) fn findings(&self, component: &Component) -> Vec<String> {
        let required = REQUIRED * self.sequences() / PER_SEQUENCES;
        let rare = component
            .behaviours
            .iter()
            .filter(|behaviour| self.seen(behaviour) < required);
        let mut findings: Vec<_> = rare
            .map(|behaviour| {
                let seen = self.seen(behaviour);
                format!("{behaviour:?} was seen {seen} times, at least {required} are needed")
            })
            .collect();
        let strange = self
            .seen
            .keys()
            .filter(|seen| !component.behaviours.contains(seen));
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

/// What one step has shown, each once.
fn behaviours(verb: &'static str, step: &Step) -> Vec<&'static str> {
    let mut behaviours = step.seen.clone();
    behaviours.push(verb);
    behaviours.sort_unstable();
    behaviours.dedup();
    behaviours
}
