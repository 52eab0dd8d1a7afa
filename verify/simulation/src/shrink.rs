//! Shrinking: the shortest schedule found that still fails.

use crate::{life::Life, world::Wrong};

/// Leaves out the steps that are not needed to see a failure, until none can be left out, and says
/// what fails then. `judge` lives a life.
pub(crate) fn shrink(
    life: &mut Life,
    mut wrong: Wrong,
    judge: &mut dyn FnMut(&Life) -> Option<Wrong>,
) -> Wrong {
    let mut size = life.steps.len().div_ceil(2);
    while size > 0 {
        let mut dropped = false;
        let mut at = 0;
        while at < life.steps.len() {
            let mut shorter = life.clone();
            let end = (at + size).min(shorter.steps.len());
            shorter.steps.drain(at..end);
            if let Some(still) = judge(&shorter) {
                (*life, wrong) = (shorter, still);
                dropped = true;
            } else {
                at += size;
            }
        }
        if !dropped || size > 1 {
            size /= 2;
        }
    }
    wrong
}

/// Keeps only the steps of these places.
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
    fn what_is_left_is_what_the_failure_needs() {
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
