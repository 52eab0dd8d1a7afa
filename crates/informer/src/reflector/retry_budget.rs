//! Limits the time for which a reflector resumes watches that the server ends with `InternalError` (500).
//!
//! The reflector resumes the watch from its last revision while [`RetryBudget::allows`] returns `true`.
//! Otherwise, the reflector lists again.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock;

/// Time without an error after which a series of errors ends.
///
/// The value is `minResetPeriod` of client-go's `RetryWithDeadline`.
const RESET_AFTER: Duration = Duration::from_secs(60);

/// Allows retries for a limited time after the first error of a series.
///
/// A series ends after [`RESET_AFTER`] without an error.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    /// An error is retried if at most this time has passed since the first error of the series. Zero disables
    /// retries.
    max: Duration,
    /// For the current series of errors: the time of the first error, and the start of the error-free time.
    ///
    /// The error-free time starts at the last error, or at the end of the pause that followed this error.
    series: Option<(Instant, Instant)>,
}

impl RetryBudget {
    pub(crate) fn new(max: Duration) -> Self {
        Self { max, series: None }
    }

    /// Records an error at the time `now`, and returns whether to retry.
    ///
    /// If the result is `false`, the time limit starts again with the next error.
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

    /// Records a pause of the reflector after an error. The pause does not count as time without an error.
    pub(crate) fn paused(&mut self, pause: Duration) {
        if let Some((_, last)) = &mut self.series {
            *last = clock::after(*last, pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates errors, and returns the number of retries that a [`RetryBudget`] allows before it rejects a
    /// retry.
    ///
    /// `max` is the budget in seconds. `gaps` contains the seconds that pass before each error.
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
    async fn errors_are_retried_until_the_budget_since_the_first_is_used_up() {
        assert_eq!(retries(30, &[1; 100]), 31);
        assert_eq!(retries(30, &[0, 30, 1]), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_without_an_error_resets_the_budget() {
        let mut gaps = vec![1; 9];
        gaps.push(60);
        gaps.extend([1; 100]);
        assert_eq!(retries(30, &gaps), 40);
        gaps[9] = 59;
        assert_eq!(retries(30, &gaps), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_rejected_retry_the_next_error_counts_as_the_first() {
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
    async fn a_pause_before_a_retry_does_not_count_as_time_without_an_error() {
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
