//! Shortens a failing sequence by removing the operations and objects that are not needed for the failure.

use anyhow::Result;
use harness::shrink::leave_out;

use crate::{compare::Failure, sequence::Sequence};

/// A sequence for which the comparison of the library with client-go failed.
pub(crate) struct Finding {
    pub(crate) seed: u64,
    pub(crate) sequence: Sequence,
    /// The first difference between the library and client-go, or the first violated guarantee.
    pub(crate) failure: Failure,
}

/// Runs a sequence on the library and on client-go, and returns the first failure.
type Judge<'a> = &'a mut dyn FnMut(&Sequence) -> Result<Option<Failure>>;

/// Replaces the sequence of `finding` with a shorter sequence that still fails.
///
/// The shorter sequence may show a different failure.
///
/// # Errors
/// Returns the errors of `judge`.
pub(crate) fn shrink(finding: &mut Finding, judge: Judge<'_>) -> Result<()> {
    finding.sequence.operations.truncate(finding.failure.at + 1);
    leave_out(finding.sequence.operations.len(), |range| {
        let mut shorter = finding.sequence.clone();
        shorter.operations.drain(range);
        let fails = still_fails(finding, shorter, judge)?;
        anyhow::Ok(fails.then_some(finding.sequence.operations.len()))
    })?;
    for at in (0..finding.sequence.operations.len()).rev() {
        drop_parts(finding, at, judge)?;
        lessen(finding, at, judge)?;
    }
    Ok(())
}

/// Removes the unneeded objects and batch entries from the operation at index `at`.
fn drop_parts(finding: &mut Finding, at: usize, judge: Judge<'_>) -> Result<()> {
    let mut part = 0;
    loop {
        let mut shorter = finding.sequence.clone();
        // The difference of a shorter sequence may be at an earlier operation.
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

/// Halves the field `number` of the operation at index `at`, as long as the sequence still fails.
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

/// Runs the sequence `other`, and returns whether the sequence fails.
///
/// Stores a failing sequence and its failure in `finding`.
fn still_fails(finding: &mut Finding, mut other: Sequence, judge: Judge<'_>) -> Result<bool> {
    let Some(failure) = judge(&other)? else {
        return Ok(false);
    };
    other.operations.truncate(failure.at + 1);
    finding.failure = failure;
    finding.sequence = other;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        oracle::Version,
        sequence::{Operation, Thing},
    };

    /// Simulates a comparison that fails at the first operation on the object `x` after a long pass.
    ///
    /// A long pass is an operation with the verb `pass` and a `number` of at least 5.
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
    fn only_parts_that_the_difference_needs_are_left() {
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
