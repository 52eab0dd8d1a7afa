//! Points in time that do not overflow, even for a user's duration that means "for ever".

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Offset of a point in time that is never reached; tokio's timers accept it.
const FOR_EVER: Duration = Duration::from_secs(86_400 * 365 * 30);

/// Returns the point in time `duration` after `from`, or thirty years after it on overflow.
pub(crate) fn after(from: Instant, duration: Duration) -> Instant {
    from + duration.min(FOR_EVER)
}

/// Returns the point in time `duration` from now.
pub(crate) fn from_now(duration: Duration) -> Instant {
    after(Instant::now(), duration)
}

/// Waits until `moment`; never completes if there is none.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
