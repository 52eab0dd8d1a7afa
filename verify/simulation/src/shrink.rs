//! Shortens a failing simulated run by removing steps that are not needed to reproduce the failure.

use std::convert::Infallible;

use harness::shrink::leave_out;

use crate::{life::Life, world::Wrong};

/// Removes from `life` the steps that are not needed for a failure, and returns the failure of the shortened
/// run.
///
/// `wrong` is the failure of the unshortened run. `judge` simulates a run, and returns its failure, if any.
pub(crate) fn shrink(
    life: &mut Life,
    mut wrong: Wrong,
    judge: &mut dyn FnMut(&Life) -> Option<Wrong>,
) -> Wrong {
    let Ok(()) = leave_out(life.steps.len(), |range| {
        let mut shorter = life.clone();
        shorter.steps.drain(range);
        let still = judge(&shorter);
        Ok::<_, Infallible>(still.map(|still| {
            (*life, wrong) = (shorter, still);
            life.steps.len()
        }))
    });
    wrong
}

/// Keeps only the steps of `life` whose numbers are in `places`.
///
/// The number of a step is its index in the unshortened run.
pub(crate) fn keep(life: &mut Life, places: &[usize]) {
    life.steps.retain(|(at, _)| places.contains(at));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        draw::draw,
        life::{Change, Step},
    };

    #[test]
    fn only_elements_that_the_failure_needs_are_left() {
        let is_burst = |step: &Step| matches!(step, Step::Change(Change::Burst(_)));
        let fails = |life: &Life| {
            let bursts = life.steps.iter().filter(|(_, step)| is_burst(step));
            (bursts.count() >= 2).then(|| "two bursts".to_owned())
        };
        let mut life = (1..100)
            .map(draw)
            .find(|life| fails(life).is_some())
            .expect("a life with two bursts");
        let wrong = shrink(&mut life, String::new(), &mut |life| fails(life));
        assert_eq!(wrong, "two bursts");
        assert_eq!(life.steps.len(), 2);

        let mut again = draw(life.seed);
        let places: Vec<_> = life.steps.iter().map(|(at, _)| *at).collect();
        keep(&mut again, &places);
        assert_eq!(again.to_string(), life.to_string());
    }
}
