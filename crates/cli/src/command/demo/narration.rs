//! Converts the steps that control loops report into output lines, in the order of revisions.
//!
//! A step is an observation or an action of a control loop.
//!
//! Guarantees:
//! - each step is delayed by at most [`HOLD`]. Steps that wait at the same time are ordered by revision and
//!   kind;
//! - the times of the lines never decrease. A line shows the time at which its step was observed, or the
//!   previous line's time if that is later;
//! - a step of the kind [`Kind::NotMine`] has a line only if it is the first such step of its control loop.
//!   In such a step, a node agent ignores a pod without a node;
//! - with at most [`FEW`] pods, each step of any other kind has a line;
//! - with more pods, the first [`FIRST`] steps of each other kind in one control loop have a line each. Later
//!   steps share summary lines, which state the number of steps so far.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube_informer_control_plane::step::{Kind, Step};
use tokio::time::Instant;

use crate::output::Line;

/// Delay of a step's output, because a step with an earlier revision may arrive later.
pub(super) const HOLD: Duration = Duration::from_millis(30);

/// Maximum number of pods for which every step has its own line.
const FEW: u32 = 12;

/// Number of steps with a line each before the summary lines begin, if there are more than [`FEW`] pods.
///
/// The steps of each control loop and each [`Kind`] are counted separately.
const FIRST: u64 = 3;

/// Approximate number of summary lines per control loop and [`Kind`] of step.
const SUMS: u64 = 10;

/// The reported steps that are not printed yet.
pub(super) struct Narration {
    began: Instant,
    /// Number of steps per summary line; 1 if each step has its own line.
    every: u64,
    arrived: u64,
    /// Time of the most recently returned line, since the start of the demo.
    latest: Duration,
    /// Steps that wait to be converted into lines, by revision, kind and order of arrival.
    held: BTreeMap<(u64, Kind, u64), Step>,
    told: BTreeMap<(Arc<str>, Kind), u64>,
}

impl Narration {
    pub(super) fn new(began: Instant, pods: u32) -> Self {
        let every = if pods <= FEW {
            1
        } else {
            (u64::from(pods) / SUMS).max(2)
        };
        Self {
            began,
            every,
            arrived: 0,
            latest: Duration::ZERO,
            held: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, step: Step) {
        // A revision that is not a number can't be ordered, so the step precedes all others.
        let revision = step.revision.to_string().parse().unwrap_or(0);
        self.arrived += 1;
        self.held.insert((revision, step.kind, self.arrived), step);
    }

    /// Returns when to call [`Narration::due`] next, or `None` if no step is waiting.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.held.values().map(|step| step.at + HOLD).min()
    }

    /// Returns the lines of the waiting steps that were observed at least [`HOLD`] ago, ordered by revision.
    ///
    /// Steps that were observed later are included if they precede one of these steps in this order.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Line> {
        let due = self.held.iter().filter(|(_, step)| step.at + HOLD <= now);
        let Some(last) = due.map(|(key, _)| *key).max() else {
            return Vec::new();
        };
        let rest = self.held.split_off(&(last.0, last.1, last.2 + 1));
        let due = std::mem::replace(&mut self.held, rest);
        due.into_values()
            .filter_map(|step| self.line(step))
            .collect()
    }

    /// Returns the lines of all waiting steps.
    pub(super) fn rest(&mut self) -> Vec<Line> {
        let held = std::mem::take(&mut self.held);
        held.into_values()
            .filter_map(|step| self.line(step))
            .collect()
    }

    fn line(&mut self, step: Step) -> Option<Line> {
        let told = self
            .told
            .entry((Arc::clone(&step.who), step.kind))
            .or_default();
        *told += 1;
        // Every node agent observes all pods without a node, so one line of this kind is enough.
        let first = if step.kind == Kind::NotMine { 1 } else { FIRST };
        let text = match *told {
            number if step.kind == Kind::NotMine && number > first => return None,
            number if self.every == 1 || number <= first => step.text,
            number if number % self.every == 0 => format!("… {number} so far: {}", step.text),
            _ => return None,
        };
        // A step may be observed after its effect, on another connection. Its line is still earlier.
        let seen = step.at.saturating_duration_since(self.began);
        self.latest = self.latest.max(seen);
        Some(Line {
            at: self.latest,
            who: step.who.to_string(),
            text,
            object: step.object,
            revision: step.revision.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at: Instant, kind: Kind, revision: u64) -> Step {
        Step {
            at,
            who: "scheduler".into(),
            kind,
            object: format!("pod/{revision}"),
            revision: revision.into(),
            text: "bound".to_owned(),
        }
    }

    fn revisions(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.revision.as_str()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_cause_observed_shortly_after_its_effect_is_printed_first() {
        let began = Instant::now();
        let mut narration = Narration::new(began, 3);
        narration.take(step(began, Kind::PodRuns, 9));
        let later = began + Duration::from_millis(5);
        narration.take(step(later, Kind::PodBound, 8));
        narration.take(step(later, Kind::PodBound, 12));
        assert!(narration.due(began + HOLD / 2).is_empty());
        assert_eq!(narration.next_due(), Some(began + HOLD));
        assert_eq!(revisions(&narration.due(began + HOLD)), ["8", "9"]);
        assert_eq!(revisions(&narration.due(later + HOLD)), ["12"]);
        assert_eq!(narration.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_the_lines_never_decreases() {
        let began = Instant::now();
        let mut narration = Narration::new(began, 3);
        let millis = Duration::from_millis;
        for (at, kind, revision) in [
            (2, Kind::PodBound, 7),
            (3, Kind::PodRuns, 9),
            (8, Kind::PodBound, 8),
            (9, Kind::PodRuns, 10),
        ] {
            narration.take(step(began + millis(at), kind, revision));
        }
        let lines = narration.rest();
        assert_eq!(revisions(&lines), ["7", "8", "9", "10"]);
        let times: Vec<Duration> = lines.iter().map(|line| line.at).collect();
        assert_eq!(times, [2, 8, 8, 9].map(millis));
        // This step arrives after its effect was printed.
        narration.take(step(began + millis(5), Kind::PodBound, 6));
        assert_eq!(narration.rest()[0].at, millis(9));
    }

    #[tokio::test(start_paused = true)]
    async fn many_steps_of_a_kind_are_summarized() {
        let began = Instant::now();
        let mut narration = Narration::new(began, 500);
        for revision in 1..=500 {
            narration.take(step(began, Kind::PodBound, revision));
        }
        let lines = narration.rest();
        assert_eq!(lines.len(), 13);
        let last = lines.last().unwrap();
        assert_eq!(
            (last.text.as_str(), last.revision.as_str()),
            ("… 500 so far: bound", "500")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn few_steps_have_one_line_each() {
        let began = Instant::now();
        let mut narration = Narration::new(began, 12);
        for revision in 1..=12 {
            narration.take(step(began, Kind::PodBound, revision));
            narration.take(step(began, Kind::NotMine, revision));
        }
        assert_eq!(
            narration.rest().len(),
            13,
            "a step of another agent is printed once"
        );
    }
}
