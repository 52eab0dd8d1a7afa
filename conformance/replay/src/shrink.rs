//! Shrinking: the shortest sequence found that still shows a difference, and its text.

use std::fmt::Write as _;

use anyhow::Result;

use crate::{
    bench::{Bench, Finding},
    component::Component,
    planted::Bug,
    sequence::Sequence,
};

/// Leaves out what is not needed to see a difference, until nothing can be left out.
///
/// # Errors
/// An oracle has ended.
pub(crate) fn shrink(
    bench: &mut Bench,
    component: &Component,
    bug: Option<Bug>,
    finding: &mut Finding,
) -> Result<()> {
    finding.sequence.operations.truncate(finding.failure.at + 1);
    let mut size = finding.sequence.operations.len().div_ceil(2);
    while size > 0 {
        let dropped = drop_runs(bench, component, bug, finding, size)?;
        if !dropped || size > 1 {
            size /= 2;
        }
    }
    drop_items(bench, component, bug, finding)
}

/// Tries to do without each run of so many operations; whether one was not needed.
fn drop_runs(
    bench: &mut Bench,
    component: &Component,
    bug: Option<Bug>,
    finding: &mut Finding,
    size: usize,
) -> Result<bool> {
    let mut dropped = false;
    let mut at = 0;
    while at < finding.sequence.operations.len() {
        let mut shorter = finding.sequence.clone();
        let end = (at + size).min(shorter.operations.len());
        shorter.operations.drain(at..end);
        if still_fails(bench, component, bug, finding, shorter)? {
            dropped = true;
        } else {
            at += size;
        }
    }
    Ok(dropped)
}

/// Tries to do without each object of each list, and each change of each batch.
fn drop_items(
    bench: &mut Bench,
    component: &Component,
    bug: Option<Bug>,
    finding: &mut Finding,
) -> Result<()> {
    for at in (0..finding.sequence.operations.len()).rev() {
        let parts = |sequence: &Sequence| {
            let operation = sequence.operations.get(at);
            operation.map_or(0, |operation| {
                operation.things.len() + operation.batch.len()
            })
        };
        for part in (0..parts(&finding.sequence)).rev() {
            let mut shorter = finding.sequence.clone();
            let operation = &mut shorter.operations[at];
            if part < operation.things.len() {
                operation.things.remove(part);
            } else {
                operation.batch.remove(part - operation.things.len());
            }
            still_fails(bench, component, bug, finding, shorter)?;
        }
    }
    Ok(())
}

/// Takes the shorter sequence if it shows a difference too.
fn still_fails(
    bench: &mut Bench,
    component: &Component,
    bug: Option<Bug>,
    finding: &mut Finding,
    mut shorter: Sequence,
) -> Result<bool> {
    let told = bench.tell_one(component, bug, &shorter)?;
    let Some(failure) = told.failure(component, &shorter) else {
        return Ok(false);
    };
    shorter.operations.truncate(failure.at + 1);
    finding.failure = failure;
    finding.sequence = shorter;
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
