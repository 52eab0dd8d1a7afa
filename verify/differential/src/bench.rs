//! [`Bench`]: runs the same sequences on both sides.

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

/// Number of sequences sent in one batch.
const AT_ONCE: usize = 250;

/// Batch size for conversations, which run one at a time.
const IN_TURN: usize = 50;

/// The oracles.
pub(crate) struct Bench {
    oracles: BTreeMap<Version, Oracle>,
}

/// Result of a run over seeds.
#[derive(Default)]
pub(crate) struct Tally {
    /// The behaviours and divergences that occurred.
    pub(crate) coverage: Coverage,
    /// The differences, in order of seeds.
    pub(crate) findings: Vec<Finding>,
}

/// The answers of both sides to one sequence.
pub(crate) struct Told {
    /// The library's answers.
    pub(crate) ours: Vec<Step>,
    /// The answers of each version of client-go.
    pub(crate) theirs: Vec<(Version, Vec<Option<Answer>>)>,
}

impl Bench {
    /// Builds and starts the oracles.
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

    /// Runs the sequences of these seeds and compares.
    ///
    /// With `first_only` it ends after the batch with the first difference.
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

    /// Shortens a sequence with a difference.
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

    /// Formats a finding, with the answers of both sides to each operation.
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

    /// Runs one sequence on both sides.
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
    /// Compares with every version, newest first.
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

    /// Returns the first difference, if there is one.
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
