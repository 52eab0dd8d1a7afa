//! Computes points in time without overflow, even for durations such as `Duration::MAX`.
//!
//! All points in time are those of tokio's clock.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Maximum duration that is added to a point in time: thirty years.
///
/// The sum of a point in time and a longer duration could overflow.
const FOR_EVER: Duration = Duration::from_secs(86_400 * 365 * 30);

/// Returns the point in time `from` plus `duration`.
///
/// If `duration` is longer than thirty years, adds only thirty years.
pub(crate) fn after(from: Instant, duration: Duration) -> Instant {
    from + duration.min(FOR_EVER)
}

/// Returns the point in time `duration` from now.
pub(crate) fn from_now(duration: Duration) -> Instant {
    after(Instant::now(), duration)
}

/// Waits until the time `moment`. If `moment` is `None`, never completes.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
