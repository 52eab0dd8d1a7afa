//! Shrinking: the shortest sequence found that still shows a difference, and its text.

use std::fmt::Write as _;

use anyhow::Result;

use crate::{
    bench::{Bench, Finding},
    compare::Failure,
    component::Component,
    planted::Bug,
    sequence::Sequence,
};

/// Says whether a sequence shows a difference, and which; both sides are asked anew.
type Judge<'a> = &'a mut dyn FnMut(&Sequence) -> Result<Option<Failure>>;

/// Leaves out what is not needed to see a difference, until nothing can be left out: operations, objects
/// of lists, changes of batches, and the larger part of numbers.
///
/// # Errors
/// Those of `judge`.
pub(crate) fn shrink(finding: &mut Finding, judge: Judge<'_>) -> Result<()> {
    finding.sequence.operations.truncate(finding.failure.at + 1);
    let mut size = finding.sequence.operations.len().div_ceil(2);
    while size > 0 {
        let dropped = drop_runs(finding, size, judge)?;
        if !dropped || size > 1 {
            size /= 2;
        }
    }
    for at in (0..finding.sequence.operations.len()).rev() {
        drop_parts(finding, at, judge)?;
        lessen(finding, at, judge)?;
    }
    Ok(())
}

/// Tries to do without each run of so many operations; whether one was not needed.
fn drop_runs(finding: &mut Finding, size: usize, judge: Judge<'_>) -> Result<bool> {
    let mut dropped = false;
    let mut at = 0;
    while at < finding.sequence.operations.len() {
        let mut shorter = finding.sequence.clone();
        let end = (at + size).min(shorter.operations.len());
        shorter.operations.drain(at..end);
        if still_fails(finding, shorter, judge)? {
            dropped = true;
        } else {
            at += size;
        }
    }
    Ok(dropped)
}

/// Tries to do without each object of a list, and each change of a batch.
fn drop_parts(finding: &mut Finding, at: usize, judge: Judge<'_>) -> Result<()> {
    let mut part = 0;
    loop {
        let mut shorter = finding.sequence.clone();
        // What differs now may do so earlier.
        let Some(operation) = shorter.operations.get_mut(at) else {
            return Ok(());
        };
        if part < operation.things.len() {
            operation.things.remove(part);
        } else if part < operation.things.len() + operation.batch.len() {
            operation.batch.remove(part - operation.things.len());
        } else {
            return Ok(());
        }
        part += usize::from(!still_fails(finding, shorter, judge)?);
    }
}

/// Tries to do with half of a number, and again.
fn lessen(finding: &mut Finding, at: usize, judge: Judge<'_>) -> Result<()> {
    loop {
        let mut less = finding.sequence.clone();
        match less.operations.get_mut(at) {
            Some(operation) if operation.number > 1 => operation.number /= 2,
            _ => return Ok(()),
        }
        if !still_fails(finding, less, judge)? {
            return Ok(());
        }
    }
}

/// Takes another sequence if it shows a difference too.
fn still_fails(finding: &mut Finding, mut other: Sequence, judge: Judge<'_>) -> Result<bool> {
    let Some(failure) = judge(&other)? else {
        return Ok(false);
    };
    other.operations.truncate(failure.at + 1);
    finding.failure = failure;
    finding.sequence = other;
    Ok(true)
}

/// Writes a finding, with what both sides said of each operation.
///
/// # Errors
/// An oracle has ended.
pub(crate) fn show(
    bench: &mut Bench,
    component: &Component,
    bug: Option<Bug>,
    finding: &Finding,
) -> Result<String> {
    let Finding {
        seed,
        sequence,
        failure,
    } = finding;
    let told = bench.tell_one(component, bug, sequence)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        oracle::Version,
        sequence::{Operation, Thing},
    };

    /// Fails where a list that has "x" comes behind a pass of at least 5.
    fn difference(sequence: &Sequence) -> Option<Failure> {
        let operations = &sequence.operations;
        let long = |operation: &Operation| operation.verb == "pass" && operation.number >= 5;
        let listed = |operation: &Operation| operation.things.iter().any(|thing| thing.key == "x");
        let begin = operations.iter().position(long).unwrap_or(operations.len());
        let at = operations[begin..].iter().position(listed);
        at.map(|at| Failure {
            version: Version::V37,
            at: begin + at,
            reason: None,
        })
    }

    #[test]
    fn what_is_left_is_what_the_difference_needs() {
        let thing = |key: &str| Thing {
            key: key.to_owned(),
            ..Thing::default()
        };
        let mut operations = Vec::new();
        for _ in 0..20 {
            operations.push(Operation::new("pass").number(100));
            operations.push(Operation::new("len"));
            operations.push(Operation {
                things: ["a", "x", "b"].map(thing).into(),
                ..Operation::new("replace")
            });
        }
        let sequence = Sequence {
            component: "made_up",
            flags: Vec::new(),
            limiter: None,
            operations,
        };
        let failure = difference(&sequence).unwrap();
        let mut finding = Finding {
            seed: 1,
            sequence,
            failure,
        };
        shrink(&mut finding, &mut |sequence| Ok(difference(sequence))).unwrap();
        let left = finding.sequence.operations.iter().map(ToString::to_string);
        assert_eq!(left.collect::<Vec<_>>(), ["pass 6", "replace: (x@)"]);
        assert_eq!(finding.failure.at, 1);
    }
}
