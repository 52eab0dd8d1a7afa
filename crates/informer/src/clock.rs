//! Computes points in time without overflow, even if a user's duration means "for ever".

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Duration until a point in time that is never reached: thirty years, which tokio's timers accept.
const FOR_EVER: Duration = Duration::from_secs(86_400 * 365 * 30);

/// Returns the point in time `duration` after `from`, or thirty years after `from` if the sum overflows.
pub(crate) fn after(from: Instant, duration: Duration) -> Instant {
    from + duration.min(FOR_EVER)
}

/// Returns the point in time `duration` from now.
pub(crate) fn from_now(duration: Duration) -> Instant {
    after(Instant::now(), duration)
}

/// Waits until the time `moment`; never completes if `moment` is `None`.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
