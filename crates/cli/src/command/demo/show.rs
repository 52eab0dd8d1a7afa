//! Prints the steps of the demo, and determines when the demo ends and whether it has succeeded.
//!
//! A step is an action or an observation that a control loop of the demo reports.
//!
//! Guarantees: the demo ends when its goal is reached, when it can make no further progress, or at its
//! deadline.

use std::time::Duration;

use kube_informer_control_plane::step::{Kind, Step};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{Goal, Options, narration::Narration, progress::Progress};
use crate::{
    interrupt::{Interrupt, Signal},
    output,
};

/// Time without a new step after which the demo ends, if the goal is reached and no loop is disabled.
const SETTLED: Duration = Duration::from_millis(200);

/// Time without a new step after which the demo ends because it can't proceed.
///
/// The demo can't proceed in two cases: the user disabled the control loop that must do the next step, or the
/// scheduler can't bind a pod to a node.
const QUIET: Duration = Duration::from_secs(2);

/// The result of the demo, with a text that the demo prints.
pub(super) enum Verdict {
    /// The demo has reached its goal. The text is a summary.
    Reached(String),
    /// The demo can't proceed without a control loop that the user excluded. The text explains why.
    Stopped(String),
    /// The demo ended before its goal was reached. The text states what is missing and what to change.
    NotReached(String),
}

pub(super) struct Show {
    goal: Goal,
    progress: Progress,
    narration: Narration,
    began: Instant,
    deadline: Duration,
    last_step: Instant,
}

/// The reason why [`Show::watch`] continues after it has waited.
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

    /// Prints the reported steps until the demo has ended, and returns the result of the demo.
    ///
    /// # Errors
    /// Returns the signal if one arrives before the demo has ended.
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

    /// Returns the time without a new step after which the demo ends.
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

async fn until(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}
