//! [`Schedule`] determines when each listener receives a resync. A listener is a registered handler or
//! subscription.
//!
//! This module does not wait and does not read the clock: the caller passes the current time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

use crate::clock;

/// Minimum resync period, equal to client-go's `minimumResyncPeriod`.
const MINIMUM: Duration = Duration::from_secs(1);

/// Resync period and next resync time of each listener of one informer.
///
/// One timer checks for all listeners which resyncs are due. The interval of this timer is the check period:
/// the shortest of the default period and the periods that listeners requested before the informer started.
/// If the default period is zero, resyncs are disabled.
#[derive(Debug)]
pub(super) struct Schedule<Id> {
    default: Duration,
    check: Duration,
    listeners: BTreeMap<Id, Period>,
    ticks_at: Option<Instant>,
    started: bool,
}

#[derive(Debug)]
struct Period {
    requested: Duration,
    /// Resync period in effect for the listener, or zero if resyncs are disabled.
    every: Duration,
    next: Instant,
}

impl<Id: Ord + Copy> Schedule<Id> {
    pub(super) fn new(default: Duration) -> Self {
        Self {
            default,
            check: default,
            listeners: BTreeMap::new(),
            ticks_at: None,
            started: false,
        }
    }

    pub(super) fn add(&mut self, id: Id, requested: Option<Duration>, now: Instant) {
        let mut requested = requested.unwrap_or(self.default);
        if !requested.is_zero() && requested < MINIMUM {
            tracing::warn!(?requested, "a resync period under 1 s is raised to 1 s");
            requested = MINIMUM;
        }
        if !requested.is_zero() && requested < self.check {
            if self.started {
                tracing::warn!(
                    ?requested,
                    check_period = ?self.check,
                    "the informer has started; a shorter resync period is raised to its check period"
                );
                requested = self.check;
            } else {
                self.check = requested;
                for listener in self.listeners.values_mut() {
                    listener.every = effective(listener.requested, requested);
                    listener.next = clock::after(now, listener.every);
                }
            }
        }
        if !requested.is_zero() && self.check.is_zero() {
            tracing::warn!(
                ?requested,
                "the informer has no resync period, so the period of its handler has no effect"
            );
        }
        let every = effective(requested, self.check);
        let next = clock::after(now, every);
        let listener = Period {
            requested,
            every,
            next,
        };
        self.listeners.insert(id, listener);
    }

    pub(super) fn remove(&mut self, id: Id) {
        self.listeners.remove(&id);
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.started = true;
        self.ticks_at = (!self.check.is_zero()).then(|| clock::after(now, self.check));
        for listener in self.listeners.values_mut() {
            listener.next = clock::after(now, listener.every);
        }
    }

    /// Returns the time of the timer's next tick, if the timer runs.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.ticks_at
    }

    /// Returns the listeners whose resync period has elapsed at `now`, and starts their next period.
    pub(super) fn tick(&mut self, now: Instant) -> BTreeSet<Id> {
        self.ticks_at = self.ticks_at.map(|_| clock::after(now, self.check));
        let mut due = BTreeSet::new();
        for (id, listener) in &mut self.listeners {
            if !listener.every.is_zero() && now >= listener.next {
                listener.next = clock::after(now, listener.every);
                due.insert(*id);
            }
        }
        due
    }
}

fn effective(requested: Duration, check: Duration) -> Duration {
    if requested.is_zero() || check.is_zero() {
        return Duration::ZERO;
    }
    requested.max(check)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: u64 = 3600;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn due(schedule: &mut Schedule<u8>, start: Instant, second: u64) -> Vec<u8> {
        schedule.tick(start + secs(second)).into_iter().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_listener_is_due_at_its_own_period() {
        let now = Instant::now();
        let mut schedule = Schedule::new(secs(1));
        for (id, period) in [(0, 0), (2, 2), (3, 3)] {
            schedule.add(id, Some(secs(period)), now);
        }
        schedule.start(now);
        let trace: Vec<_> = (1..=6)
            .map(|second| due(&mut schedule, now, second))
            .collect();
        assert_eq!(
            trace,
            [vec![], vec![2], vec![3], vec![2], vec![], vec![2, 3]]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn before_the_start_a_smaller_period_lowers_the_check_period() {
        let now = Instant::now();
        let mut schedule = Schedule::new(secs(12 * H));
        for (id, (requested, check)) in [
            (None, 12 * H),
            (Some(60), 60),
            (Some(55), 55),
            (Some(5), 5),
            (Some(90), 5),
        ]
        .into_iter()
        .enumerate()
        {
            schedule.add(id, requested.map(secs), now);
            assert_eq!(schedule.check, secs(check));
        }
        schedule.start(now);
        let periods: Vec<_> = schedule
            .listeners
            .values()
            .map(|l| l.every.as_secs())
            .collect();
        assert_eq!(periods, [12 * H, 60, 55, 5, 90]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_start_a_smaller_period_is_raised_to_the_check_period() {
        let now = Instant::now();
        let mut schedule = Schedule::new(secs(30));
        schedule.start(now);
        schedule.add(1, Some(secs(5)), now);
        assert_eq!(schedule.check, secs(30));
        assert_eq!(due(&mut schedule, now, 29), [0; 0]);
        assert_eq!(due(&mut schedule, now, 30), [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn periods_under_a_second_are_raised_and_zero_means_none() {
        let now = Instant::now();
        let mut schedule = Schedule::new(secs(12));
        schedule.add(1, Some(Duration::from_millis(10)), now);
        schedule.add(2, Some(Duration::ZERO), now);
        schedule.start(now);
        assert_eq!(schedule.next_tick(), Some(now + secs(1)));
        assert_eq!(due(&mut schedule, now, 1), [1]);
        assert_eq!(due(&mut schedule, now, 1000), [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_period_of_zero_means_no_resync_for_anyone() {
        let now = Instant::now();
        let mut schedule = Schedule::new(Duration::ZERO);
        schedule.add(1, Some(secs(5)), now);
        schedule.start(now);
        assert_eq!(schedule.next_tick(), None);
        assert_eq!(due(&mut schedule, now, 1000), [0; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_removed_listener_is_not_due() {
        let now = Instant::now();
        let mut schedule = Schedule::new(secs(1));
        schedule.add(1, None, now);
        schedule.add(2, None, now);
        schedule.start(now);
        schedule.remove(1);
        assert_eq!(due(&mut schedule, now, 1), [2]);
        schedule.remove(2);
        assert_eq!(due(&mut schedule, now, 2), [0; 0]);
    }
}
