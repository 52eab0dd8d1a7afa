//! Computes the pauses after a reflector's failed attempts, with exponential backoff and jitter.
//!
//! The module does not sleep, and sends no requests.

use std::time::Duration;

use tokio::time::Instant;

/// Settings for the pauses after failed attempts. The pauses grow exponentially.
///
/// Each pause is random, uniformly distributed in [d, 2d). The first d is `initial`. Every failure doubles d,
/// up to `cap`. If the server requests a longer pause with `Retry-After`, the pause has that length, up to
/// [`RETRY_AFTER_MAX`](crate::limits::RETRY_AFTER_MAX).
///
/// When attempts succeed again and none fails for `reset_after`, the next failure resets d to `initial`.
#[doc(alias = "BackoffManager")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// Minimum of the first pause. The pause is random, and less than twice this value.
    ///
    /// Default: 800 ms, as in client-go's `NewReflectorWithOptions`. Values above `cap` count as `cap`, and
    /// values below 1 ms count as 1 ms.
    pub initial: Duration,
    /// Limit for the growth of the pauses. A pause is random in [d, 2d). Each failure doubles d, up to this
    /// value.
    ///
    /// Default: 30 s. A pause is then shorter than 60 s, unless the server requests a longer pause with
    /// `Retry-After`.
    pub cap: Duration,
    /// Time without failures after which the next failure starts with `initial` again. Default: 2 min.
    ///
    /// The time is counted from the first success after a failure.
    pub reset_after: Duration,
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            cap: Duration::from_secs(30),
            reset_after: Duration::from_secs(120),
        }
    }
}

impl BackoffConfig {
    fn first(&self) -> Duration {
        self.initial.min(self.cap).max(Duration::from_millis(1))
    }
}

#[derive(Debug)]
pub(crate) struct Backoff {
    config: BackoffConfig,
    next: Duration,
    /// Time of the first success since the last failure; `None` after a failure.
    healthy_since: Option<Instant>,
    /// If true, [`first_is_free`](Self::first_is_free) returns no pause for the next failure.
    fresh: bool,
}

impl Backoff {
    pub(crate) fn new(config: BackoffConfig) -> Self {
        Self {
            next: config.first(),
            config,
            healthy_since: None,
            fresh: true,
        }
    }

    pub(crate) fn succeeded(&mut self, now: Instant) {
        self.healthy_since.get_or_insert(now);
    }

    /// Records that an attempt failed, and returns the pause before the next attempt.
    pub(crate) fn failed(&mut self, now: Instant, rng: &mut fastrand::Rng) -> Duration {
        self.note_failure(now);
        self.fresh = false;
        let delay = self.next;
        self.next = delay.saturating_mul(2).min(self.config.cap.max(delay));
        delay.saturating_add(delay.mul_f64(rng.f64()))
    }

    /// Records a failure that a server outage caused, and returns the pause before the next attempt.
    ///
    /// The next failure is retried without a pause if it is recorded with
    /// [`first_is_free`](Self::first_is_free).
    pub(crate) fn out(&mut self, now: Instant, rng: &mut fastrand::Rng) -> Duration {
        let pause = self.failed(now, rng);
        self.fresh = true;
        pause
    }

    /// Records a failure that may be retried without a pause, and returns the pause before the next attempt.
    ///
    /// The pause is zero if no other failure was recorded since the latest of these times:
    /// - the start of the reflector;
    /// - the last server outage ([`out`](Self::out));
    /// - the last period of `reset_after` without failures.
    pub(crate) fn first_is_free(&mut self, now: Instant, rng: &mut fastrand::Rng) -> Duration {
        self.note_failure(now);
        if std::mem::take(&mut self.fresh) {
            return Duration::ZERO;
        }
        self.failed(now, rng)
    }

    fn note_failure(&mut self, now: Instant) {
        let healthy = self.healthy_since.take();
        if healthy.is_some_and(|since| now.duration_since(since) >= self.config.reset_after) {
            self.next = self.config.first();
            self.fresh = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(backoff: &mut Backoff, rng: &mut fastrand::Rng, outage: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let mut now = start;
        let mut pauses = Vec::new();
        while now < start + outage {
            let pause = backoff.failed(now, rng);
            pauses.push(pause);
            now += pause;
        }
        pauses
    }

    #[tokio::test(start_paused = true)]
    async fn each_pause_is_uniform_in_d_to_2d_and_limited_by_the_cap() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig::default());
        let pauses = pauses(&mut backoff, &mut rng, Duration::from_secs(3600));
        let mut d = Duration::from_millis(800);
        for (n, pause) in pauses.iter().enumerate() {
            assert!(
                (d..2 * d).contains(pause),
                "pause {n}: {pause:?} is not in [{d:?}, 2 × {d:?})"
            );
            d = (2 * d).min(Duration::from_secs(30));
        }
        assert!(pauses.len() < 130, "{} attempts in an hour", pauses.len());
    }

    #[tokio::test(start_paused = true)]
    async fn only_two_minutes_of_health_reset_the_pauses() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig::default());
        pauses(&mut backoff, &mut rng, Duration::from_secs(600));
        let mut now = Instant::now();

        backoff.succeeded(now);
        now += Duration::from_secs(119);
        backoff.succeeded(now);
        assert!(backoff.failed(now, &mut rng) >= Duration::from_secs(30));

        backoff.succeeded(now);
        now += Duration::from_secs(120);
        assert!(backoff.failed(now, &mut rng) < Duration::from_millis(1600));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_relist_after_health_is_immediate_and_the_next_is_not() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig::default());
        let now = Instant::now();
        assert_eq!(backoff.first_is_free(now, &mut rng), Duration::ZERO);
        backoff.succeeded(now);
        assert!(backoff.first_is_free(now, &mut rng) >= Duration::from_millis(800));
        backoff.succeeded(now);
        assert_eq!(
            backoff.first_is_free(now + Duration::from_secs(120), &mut rng),
            Duration::ZERO
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_relist_after_an_outage_is_immediate_and_pauses_keep_growing() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig::default());
        let now = Instant::now();
        assert!(backoff.out(now, &mut rng) >= Duration::from_millis(800));
        assert!(backoff.out(now, &mut rng) >= Duration::from_millis(1600));
        backoff.succeeded(now);
        assert_eq!(backoff.first_is_free(now, &mut rng), Duration::ZERO);
        assert!(backoff.first_is_free(now, &mut rng) >= Duration::from_millis(3200));
        assert!(backoff.failed(now, &mut rng) >= Duration::from_millis(6400));
    }

    #[tokio::test(start_paused = true)]
    async fn health_before_an_outage_does_not_reset_the_pauses_of_the_outage() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig::default());
        backoff.succeeded(Instant::now());
        let pauses = pauses(&mut backoff, &mut rng, Duration::from_secs(3600));
        assert!(pauses.len() > 60, "{} attempts in an hour", pauses.len());
        for (n, pause) in pauses.iter().enumerate().skip(6) {
            assert!(*pause >= Duration::from_secs(30), "pause {n}: {pause:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn health_counts_from_its_first_success() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig::default());
        pauses(&mut backoff, &mut rng, Duration::from_secs(600));
        let start = Instant::now();
        for seconds in (0..=120).step_by(10) {
            backoff.succeeded(start + Duration::from_secs(seconds));
        }
        let pause = backoff.failed(start + Duration::from_secs(120), &mut rng);
        assert!(pause < Duration::from_millis(1600), "{pause:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_pause_is_within_the_cap_and_no_pause_is_zero() {
        let first = |initial, cap| {
            let config = BackoffConfig {
                initial,
                cap,
                ..BackoffConfig::default()
            };
            let mut backoff = Backoff::new(config);
            let mut rng = fastrand::Rng::with_seed(1);
            [(); 3].map(|()| backoff.failed(Instant::now(), &mut rng))
        };
        let (milli, second) = (Duration::from_millis(1), Duration::from_secs(1));
        for pause in first(60 * second, second) {
            assert!((second..2 * second).contains(&pause), "{pause:?}");
        }
        for pause in first(Duration::ZERO, Duration::ZERO) {
            assert!((milli..2 * milli).contains(&pause), "{pause:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_maximum_pause_does_not_overflow() {
        let config = BackoffConfig {
            initial: Duration::MAX / 3,
            cap: Duration::MAX,
            reset_after: Duration::MAX,
        };
        let mut backoff = Backoff::new(config);
        let mut rng = fastrand::Rng::with_seed(1);
        let now = Instant::now();
        for least in [Duration::MAX / 3, Duration::MAX / 3 * 2, Duration::MAX] {
            assert!(backoff.failed(now, &mut rng) >= least);
        }
    }
}
