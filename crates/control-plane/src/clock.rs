//! The wall clock of the control loops, which follows tokio's clock.
//!
//! The loops compare times that they have written themselves, such as the time since a pod is ready. With
//! paused time, a test advances tokio's clock, and the system clock stands still.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

/// A wall clock that is read from the system once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Timestamp,
    since: Instant,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the times of objects are those of a wall clock"
    )]
    pub(crate) fn system() -> Self {
        Self {
            start: Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH),
            since: Instant::now(),
        }
    }

    pub(crate) fn now(self) -> Timestamp {
        let later = self.start.checked_add(self.since.elapsed());
        later.unwrap_or(Timestamp::MAX)
    }

    /// Returns the current time without fractions of a second, as `metav1.Time` is written.
    pub(crate) fn time(self) -> Time {
        let whole = Timestamp::from_second(self.now().as_second());
        Time(whole.unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// Returns how long it takes until `period` has passed since `from`; zero if it has.
    pub(crate) fn left(self, from: &Time, period: Duration) -> Duration {
        let passed = self.now().duration_since(from.0);
        let passed = Duration::try_from(passed).unwrap_or(Duration::ZERO);
        period.saturating_sub(passed)
    }
}
