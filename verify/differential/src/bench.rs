//! Runs the same sequences of operations on the library and on client-go, and compares the answers.
//!
//! Each version of client-go runs in a separate Go process, called an oracle. This module does not
//! generate the sequences.

use std::{collections::BTreeMap, fmt::Write as _, thread};

use anyhow::Result;

use crate::{
    compare::{Failure, Outcome, compare},
    component::Component,
    coverage::Coverage,
    draw::Draw,
    oracle::{Oracle, Version},
    planted::Bug,
    sequence::{Answer, Sequence, Step},
    shrink::{Finding, shrink},
};

/// Maximum number of sequences per batch for an oracle, a Go process with client-go.
const AT_ONCE: usize = 250;

/// Maximum number of sequences per batch if client-go sends HTTP requests, to which this program responds.
///
/// The sequences of such a batch are sent to the Go process one after the other.
const IN_TURN: usize = 50;

/// The running oracles: one Go process for each version of client-go.
pub(crate) struct Bench {
    oracles: BTreeMap<Version, Oracle>,
}

/// The result of the comparisons of one component, over all seeds of a run.
#[derive(Default)]
pub(crate) struct Tally {
    /// Counts of the library's behaviors, such as "Pop of an empty queue", and of the intentional
    /// differences.
    pub(crate) coverage: Coverage,
    /// The sequences with an unintentional difference or a violated guarantee, in the order of their seeds.
    pub(crate) findings: Vec<Finding>,
}

/// The answers of the library and of client-go to the operations of one sequence.
pub(crate) struct Told {
    /// The library's answers, one step per operation.
    pub(crate) ours: Vec<Step>,
    /// The answers of each client-go version, newest first; `None` for an unsupported operation.
    pub(crate) theirs: Vec<(Version, Vec<Option<Answer>>)>,
}

impl Bench {
    /// Builds and starts the oracle of each version of client-go.
    ///
    /// # Errors
    /// Returns an error if an oracle can't be built or started.
    pub(crate) fn new() -> Result<Self> {
        let mut oracles = BTreeMap::new();
        for version in Version::ALL {
            let binary = Oracle::build(version)?;
            oracles.insert(version, Oracle::start(&binary)?);
        }
        Ok(Self { oracles })
    }

    /// Runs one sequence per seed on the library and on client-go, and compares the answers.
    ///
    /// The sequences run in batches. With `first_only`, the run ends after the first batch with a finding.
    ///
    /// # Errors
    /// Returns an error if an oracle has ended.
    pub(crate) fn run(
        &mut self,
        component: &Component,
        bug: Option<Bug>,
        seeds: &[u64],
        first_only: bool,
    ) -> Result<Tally> {
        let mut tally = Tally::default();
        let at_once = if component.counterpart.is_some() {
            IN_TURN
        } else {
            AT_ONCE
        };
        for seeds in seeds.chunks(at_once) {
            let draw = |seed: &u64| (component.draw)(&mut Draw::new(component.name, *seed));
            let sequences: Vec<_> = seeds.iter().map(draw).collect();
            let told = self.tell(component, bug, &sequences)?;
            for ((seed, sequence), told) in seeds.iter().zip(sequences).zip(told) {
                let failure = tally.take(component, &sequence, &told);
                tally.findings.extend(failure.map(|failure| Finding {
                    seed: *seed,
                    sequence,
                    failure,
                }));
            }
            if first_only && !tally.findings.is_empty() {
                break;
            }
        }
        Ok(tally)
    }

    /// Replaces the sequence of a finding with a shorter sequence that still fails, if there is one.
    ///
    /// # Errors
    /// Returns an error if an oracle has ended.
    pub(crate) fn shrink(
        &mut self,
        component: &Component,
        bug: Option<Bug>,
        finding: &mut Finding,
    ) -> Result<()> {
        shrink(finding, &mut |sequence| {
            let told = self.tell_one(component, bug, sequence)?;
            Ok(told.failure(component, sequence))
        })
    }

    /// Formats a finding's operations with the answers of the library and of client-go.
    ///
    /// # Errors
    /// Returns an error if an oracle has ended.
    pub(crate) fn show(
        &mut self,
        component: &Component,
        bug: Option<Bug>,
        finding: &Finding,
    ) -> Result<String> {
        let Finding {
            seed,
            sequence,
            failure,
        } = finding;
        let told = self.tell_one(component, bug, sequence)?;
        let mut text = format!(
            "{} seed {seed}, options {:?}",
            component.name, sequence.flags
        );
        if let Some(limiter) = &sequence.limiter {
            write!(text, ", limiter {limiter}")?;
        }
        text += "\n";
        let theirs = told
            .theirs
            .iter()
            .find(|(version, _)| *version == failure.version);
        for (at, operation) in sequence.operations.iter().enumerate() {
            let ours = &told.ours[at].answer;
            let their = theirs.and_then(|(_, theirs)| theirs[at].as_ref());
            match their {
                Some(their) if ours.agrees(their) => writeln!(text, "  {operation:<44} {ours}")?,
                None => writeln!(text, "  {operation:<44} {ours} (only here)")?,
                Some(their) => {
                    writeln!(text, "  {operation}")?;
                    writeln!(text, "      {}: {their}", failure.version)?;
                    writeln!(text, "      here:           {ours}")?;
                }
            }
        }
        if let Some(reason) = failure.reason {
            writeln!(text, "  {reason}")?;
        }
        Ok(text)
    }

    /// Returns the answers of the library and of client-go to one sequence.
    ///
    /// # Errors
    /// Returns an error if an oracle has ended.
    pub(crate) fn tell_one(
        &mut self,
        component: &Component,
        bug: Option<Bug>,
        sequence: &Sequence,
    ) -> Result<Told> {
        let mut told = self.tell(component, bug, std::slice::from_ref(sequence))?;
        Ok(told.swap_remove(0))
    }

    fn tell(
        &mut self,
        component: &Component,
        bug: Option<Bug>,
        sequences: &[Sequence],
    ) -> Result<Vec<Told>> {
        thread::scope(|scope| {
            let asked: Vec<_> = self
                .oracles
                .iter_mut()
                .map(|(version, oracle)| {
                    let is_for =
                        |sequence: &&Sequence| (component.versions)(sequence).contains(version);
                    let for_it: Vec<_> = sequences.iter().filter(is_for).collect();
                    (
                        *version,
                        scope.spawn(move || ask(oracle, component, &for_it)),
                    )
                })
                .collect();
            let replay = |sequence| Told {
                ours: (component.replay)(sequence, bug),
                theirs: Vec::new(),
            };
            let mut told: Vec<_> = sequences.iter().map(replay).collect();
            for (version, asked) in asked {
                let answers = asked.join().expect("sending sequences does not panic")?;
                let is_for = |(sequence, _): &(&Sequence, &mut Told)| {
                    (component.versions)(sequence).contains(&version)
                };
                let for_it = sequences.iter().zip(&mut told).filter(is_for);
                for ((_, told), answers) in for_it.zip(answers) {
                    told.theirs.push((version, answers));
                }
            }
            Ok(told)
        })
    }
}

fn ask(
    oracle: &mut Oracle,
    component: &Component,
    sequences: &[&Sequence],
) -> Result<Vec<Vec<Option<Answer>>>> {
    let Some(counterpart) = component.counterpart else {
        return oracle.ask(sequences);
    };
    let answers = sequences
        .iter()
        .map(|sequence| oracle.converse(sequence, &mut *counterpart(sequence)));
    answers.collect()
}

impl Told {
    /// Compares the library's answers with those of each client-go version, newest first.
    pub(crate) fn outcomes(
        &self,
        component: &Component,
        sequence: &Sequence,
    ) -> Vec<(Version, Outcome)> {
        let theirs = self.theirs.iter();
        let outcomes = theirs.map(|(version, theirs)| {
            let answers = (self.ours.as_slice(), theirs.as_slice());
            (*version, compare(component, *version, sequence, answers))
        });
        outcomes.collect()
    }

    /// Returns the failure for the newest version of client-go whose comparison fails, if any.
    pub(crate) fn failure(&self, component: &Component, sequence: &Sequence) -> Option<Failure> {
        let outcomes = self.outcomes(component, sequence);
        outcomes
            .into_iter()
            .find_map(|(_, outcome)| outcome.failure)
    }
}

impl Tally {
    fn take(&mut self, component: &Component, sequence: &Sequence, told: &Told) -> Option<Failure> {
        self.coverage.drawn(sequence, &told.ours);
        let mut failure = None;
        for ((version, theirs), (_, outcome)) in
            told.theirs.iter().zip(told.outcomes(component, sequence))
        {
            let answers = (&told.ours[..outcome.compared], &theirs[..outcome.compared]);
            self.coverage
                .compared(*version, sequence, answers, &outcome.accepted);
            failure = failure.or(outcome.failure);
        }
        failure
    }
}
