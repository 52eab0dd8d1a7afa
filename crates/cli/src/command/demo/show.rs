//! Prints the reported steps as they arrive, and decides when the demo has ended.
//!
//! Guarantees: the demo ends because of the reported steps, or after a time without steps. Otherwise it ends
//! at its deadline.

use std::time::Duration;

use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{Goal, Options, narration::Narration, progress::Progress};
use crate::{
    control_plane::step::{Kind, Step},
    interrupt::{Interrupt, Signal},
    output,
};

/// Time without steps after which the demo ends if its goal is reached. Late status updates are still printed
/// within this time.
const SETTLED: Duration = Duration::from_millis(200);

/// Time without steps after which no further progress is expected.
///
/// A pod that is meant to fail runs only for a fraction of this time, so its failure is not missed.
const QUIET: Duration = Duration::from_secs(2);

/// The result of the demo, with the text to print.
pub(super) enum Verdict {
    /// The goal is reached. Contains a summary.
    Reached(String),
    /// A loop is left out, and progress stopped before that loop's first step. Contains a description of the
    /// state.
    Stopped(String),
    /// The demo ended before its goal was reached. Contains the missing step.
    NotReached(String),
}

/// Prints the steps of one demo as lines, and tracks the progress to the goal.
pub(super) struct Show {
    goal: Goal,
    progress: Progress,
    narration: Narration,
    began: Instant,
    deadline: Duration,
    last_step: Instant,
}

/// The reason why the output loop was woken.
enum Woken {
    Told(Step),
    LinesDue,
    Silence,
    Deadline,
}

impl Show {
    pub(super) fn new(options: &Options, began: Instant) -> Self {
        let goal = Goal {
            replicas: options.replicas,
            failures: options.pods_fail,
            acts: options.target.acts(),
            without: options.without,
        };
        Self {
            goal,
            progress: Progress::new(goal),
            narration: Narration::new(began, goal.replicas + goal.failures),
            began,
            deadline: options.deadline,
            last_step: began,
        }
    }

    /// Prints the reported steps until the demo has ended, and returns its result.
    ///
    /// # Errors
    /// Returns the signal if one arrives before the end.
    pub(super) async fn watch(
        &mut self,
        steps: &mut mpsc::Receiver<Step>,
        interrupt: &mut Interrupt,
    ) -> Result<Verdict, Signal> {
        self.last_step = Instant::now();
        let ended = loop {
            let woken = tokio::select! {
                biased;
                signal = interrupt.next() => break Err(signal),
                Some(step) = steps.recv() => Woken::Told(step),
                () = until(self.narration.next_due()) => Woken::LinesDue,
                () = sleep_until(self.last_step + self.silence_allowed()) => Woken::Silence,
                () = sleep_until(self.began + self.deadline) => Woken::Deadline,
            };
            match woken {
                Woken::Told(step) => {
                    self.last_step = step.at.max(self.last_step);
                    self.progress.take(&step);
                    self.narration.take(step);
                }
                Woken::LinesDue => {
                    for line in self.narration.due(Instant::now()) {
                        output::say(line);
                    }
                }
                Woken::Silence => break Ok(self.verdict()),
                Woken::Deadline => break Ok(self.overdue()),
            }
        };
        for line in self.narration.rest() {
            output::say(line);
        }
        ended
    }

    /// Returns the maximum time without steps, after which the demo ends.
    fn silence_allowed(&self) -> Duration {
        let is_reached = self.progress.missing().is_none();
        match (is_reached, self.goal.without) {
            (true, None) => SETTLED,
            (true, Some(_)) => QUIET,
            (false, _) if self.progress.pending().is_some() => QUIET,
            (false, _) => self.deadline,
        }
    }

    fn verdict(&self) -> Verdict {
        if self.progress.missing().is_some() {
            return self.overdue();
        }
        if let Some(standstill) = self.progress.standstill() {
            let quiet = QUIET.as_secs();
            return Verdict::Stopped(format!(
                "Nothing has moved for {quiet} s, as expected: {standstill}."
            ));
        }
        let failed = self.progress.count(Kind::PodFailed);
        let replicas = self.goal.replicas;
        let seconds = self.last_step.duration_since(self.began).as_secs_f64();
        Verdict::Reached(format!(
            "Reached after {seconds:.1} s. Replicas ready: {replicas} of {replicas}. Failed and replaced: {failed}."
        ))
    }

    fn overdue(&self) -> Verdict {
        let Some(missing) = self.progress.missing() else {
            return self.verdict();
        };
        let deadline = self.deadline.as_secs_f64();
        Verdict::NotReached(match self.progress.pending() {
            Some(why) => {
                format!("{missing}; the scheduler {why}; request less with --cpu or --replicas")
            }
            None => format!("{missing}, within {deadline:.1} s; allow more time with --deadline"),
        })
    }
}

/// Waits until the time `then`. Never completes if `then` is `None`.
async fn until(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}
