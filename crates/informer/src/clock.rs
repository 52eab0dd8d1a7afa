//! Computes points in time without overflow, even for durations such as `Duration::MAX`.
//!
//! All points in time are those of tokio's clock.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Maximum duration that [`after`] adds to a point in time.
///
/// A longer duration is replaced by this one, because the sum could overflow.
const FOR_EVER: Duration = Duration::from_secs(86_400 * 365 * 30);

/// Returns `from` plus `duration`, where a duration above thirty years counts as thirty years.
pub(crate) fn after(from: Instant, duration: Duration) -> Instant {
    from + duration.min(FOR_EVER)
}

/// Returns the point in time `duration` from now.
pub(crate) fn from_now(duration: Duration) -> Instant {
    after(Instant::now(), duration)
}

/// Waits until `moment`; never completes if `moment` is `None`.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
