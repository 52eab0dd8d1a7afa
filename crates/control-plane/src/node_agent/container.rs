//! The life of a pod's simulated containers. All containers of a pod share one life.

use std::{cmp, time::Duration};

use jiff::Timestamp;

use super::plan::Plan;

/// Delay of the first repeated restart. Each further one doubles it; `ContainerBackOff` of the kubelet.
const BACK_OFF: Duration = Duration::from_secs(10);

/// Maximum delay of a restart; `MaxContainerBackOff` of the kubelet.
const BACK_OFF_MAX: Duration = Duration::from_secs(300);

/// The containers of one pod on a node.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) plan: Plan,
    pub(super) state: State,
    pub(super) restarts: i32,
    /// The end of the previous run.
    pub(super) last: Option<End>,
    /// The starts and ends that the node agent has not logged yet.
    pub(super) happened: Vec<Happening>,
}

/// A start or an end of the containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Started(Timestamp),
    Ended(End),
}

/// What the containers do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Starting {
        until: Timestamp,
    },
    Running {
        since: Timestamp,
    },
    /// Ended, and about to be started again.
    BackOff {
        until: Timestamp,
    },
    Ended(End),
}

/// The end of a run of the containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) code: i32,
    pub(super) started: Timestamp,
    pub(super) at: Timestamp,
}

impl Life {
    pub(super) fn new(plan: Plan, now: Timestamp) -> Self {
        let until = later(now, plan.start_delay);
        Self {
            plan,
            state: State::Starting { until },
            restarts: 0,
            last: None,
            happened: Vec::new(),
        }
    }

    /// Brings the containers to their state at `now`. Returns the time of their next change, if there is one.
    pub(super) fn advance(&mut self, now: Timestamp) -> Option<Timestamp> {
        loop {
            let at = self.next_change(now)?;
            if at > now {
                return Some(at);
            }
            self.state = match &self.state {
                State::Starting { .. } => State::Running { since: at },
                State::Running { since } => self.ended(*since, at),
                State::BackOff { .. } => {
                    self.restarts += 1;
                    State::Running { since: at }
                }
                State::Ended(_) => return None,
            };
            if let State::Running { since } = self.state {
                self.happened.push(Happening::Started(since));
            }
        }
    }

    /// Returns the next time at which the state changes, or at which the containers become ready.
    fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.state {
            State::Starting { until } | State::BackOff { until } => Some(*until),
            State::Running { since } => {
                let end = self.plan.end.map(|(after, _)| later(*since, after));
                let ready = self.plan.ready_delay.map(|delay| later(*since, delay));
                let ready = ready.filter(|ready| *ready > now);
                end.into_iter().chain(ready).min()
            }
            State::Ended(_) => None,
        }
    }

    fn ended(&mut self, started: Timestamp, at: Timestamp) -> State {
        let code = self.plan.end.map_or(0, |(_, code)| code);
        let end = End { code, started, at };
        self.happened.push(Happening::Ended(end.clone()));
        if !self.plan.restart.is_due(code) {
            return State::Ended(end);
        }
        self.last = Some(end);
        let until = later(at, back_off(self.restarts));
        State::BackOff { until }
    }

    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        let State::Running { since } = &self.state else {
            return false;
        };
        self.plan
            .ready_delay
            .is_some_and(|delay| later(*since, delay) <= now)
    }
}

/// Returns the delay of the next restart: none for the first, then 10 s, 20 s, and so on.
fn back_off(restarts: i32) -> Duration {
    match u32::try_from(restarts) {
        Ok(0) | Err(_) => Duration::ZERO,
        Ok(restarts) => {
            let doubled = BACK_OFF.saturating_mul(2_u32.saturating_pow(restarts - 1));
            cmp::min(doubled, BACK_OFF_MAX)
        }
    }
}

fn later(from: Timestamp, delay: Duration) -> Timestamp {
    from.checked_add(delay).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::{super::plan::Restart, *};

    fn life(end: Option<(u64, i32)>, restart: Restart) -> Life {
        let seconds = Duration::from_secs;
        let plan = Plan {
            start_delay: seconds(1),
            ready_delay: Some(seconds(2)),
            stop_delay: seconds(0),
            end: end.map(|(after, code)| (seconds(after), code)),
            restart,
            log: String::new(),
        };
        Life::new(plan, at(0))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn containers_start_become_ready_and_run_on() {
        let mut life = life(None, Restart::Always);
        assert_eq!(life.advance(at(0)), Some(at(1)));
        assert_eq!(life.state, State::Starting { until: at(1) });
        assert_eq!(life.advance(at(1)), Some(at(3)));
        assert!(!life.is_ready(at(2)));
        assert_eq!(life.advance(at(3)), None);
        assert!(life.is_ready(at(3)));
    }

    #[test]
    fn failing_containers_are_restarted_with_growing_delays() {
        let mut life = life(Some((5, 3)), Restart::OnFailure);
        let mut starts = Vec::new();
        let mut now = at(0);
        for _ in 0..40 {
            let next = life.advance(now).unwrap();
            if let State::Running { since } = life.state
                && starts.last() != Some(&since)
            {
                starts.push(since);
            }
            now = next;
        }
        let seconds: Vec<i64> = starts.iter().map(|start| start.as_second()).collect();
        // Each run takes 5 s; between them are 0, 10, 20, 40, 80, 160, 300 and 300 s.
        assert_eq!(seconds[..9], [1, 6, 21, 46, 91, 176, 341, 646, 951]);
        assert_eq!(life.last.unwrap().code, 3);
    }

    #[test]
    fn a_late_look_sees_all_that_has_happened() {
        let mut life = life(Some((5, 0)), Restart::Never);
        assert_eq!(life.advance(at(100)), None);
        let end = End {
            code: 0,
            started: at(1),
            at: at(6),
        };
        assert_eq!(life.state, State::Ended(end));
        let mut life = self::life(Some((5, 0)), Restart::OnFailure);
        life.advance(at(100));
        assert!(
            matches!(life.state, State::Ended(_)),
            "exit code 0 is no failure"
        );
    }
}
