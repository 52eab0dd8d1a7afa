//! How long a watch that the server breaks off with an internal error is opened again instead of
//! listed after.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock;

/// A minute without such an error, and the next one is the first again: `minResetPeriod` of
/// client-go's `RetryWithDeadline`.
const RESET_AFTER: Duration = Duration::from_secs(60);

/// Allows retries until so long after the first of a series of errors; pure, told the time.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    /// Zero allows none.
    max: Duration,
    /// The first error of the series, and when it was gone on after the last one.
    series: Option<(Instant, Instant)>,
}

impl RetryBudget {
    pub(crate) fn new(max: Duration) -> Self {
        Self { max, series: None }
    }

    /// Notes an error; whether it may be retried. A refusal ends the series.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        if self.max.is_zero() {
            return false;
        }
        let first = match self.series {
            Some((first, last)) if now.duration_since(last) < RESET_AFTER => first,
            _ => now,
        };
        let allowed = now.duration_since(first) <= self.max;
        self.series = allowed.then_some((first, now));
        allowed
    }

    /// The retry waits for so long first, which is no time without an error.
    pub(crate) fn paused(&mut self, pause: Duration) {
        if let Some((_, last)) = &mut self.series {
            *last = clock::after(*last, pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the errors, each so many seconds after the one before, are retried in a row.
    fn retries(max: u64, gaps: &[u64]) -> usize {
        let mut budget = RetryBudget::new(Duration::from_secs(max));
        let mut now = Instant::now();
        let mut allowed = |gap: &u64| {
            now += Duration::from_secs(*gap);
            budget.allows(now)
        };
        gaps.iter().take_while(|gap| allowed(gap)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_budget_nothing_is_retried() {
        assert_eq!(retries(0, &[0]), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn errors_are_retried_until_the_budget_has_run_out_since_the_first() {
        assert_eq!(retries(30, &[1; 100]), 31);
        assert_eq!(retries(30, &[0, 30, 1]), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_without_an_error_begins_anew() {
        let mut gaps = vec![1; 9];
        gaps.push(60);
        gaps.extend([1; 100]);
        assert_eq!(retries(30, &gaps), 40);
        gaps[9] = 59;
        assert_eq!(retries(30, &gaps), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_refusal_the_next_error_is_the_first_again() {
        let mut budget = RetryBudget::new(Duration::from_secs(30));
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        assert!(budget.allows(now));
        assert!(!budget.allows(at(31)));
        assert!(budget.allows(at(32)));
        assert!(budget.allows(at(62)));
        assert!(!budget.allows(at(63)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_before_a_retry_is_no_minute_without_an_error() {
        let mut budget = RetryBudget::new(Duration::from_secs(100));
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        assert!(budget.allows(now));
        budget.paused(Duration::from_secs(60));
        assert!(budget.allows(at(60)));
        budget.paused(Duration::from_secs(60));
        assert!(!budget.allows(at(120)), "the series began at zero");

        assert!(budget.allows(at(200)));
        budget.paused(Duration::from_secs(60));
        assert!(budget.allows(at(320)), "a minute after the pause");
        budget.paused(Duration::MAX);
    }
}
