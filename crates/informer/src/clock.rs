//! Points in time that don't overflow: a duration may come from a user, who may mean "for ever".

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Further away than any program runs; tokio's timers take it.
const FOR_EVER: Duration = Duration::from_secs(86_400 * 365 * 30);

/// The point in time `duration` after `from`, or thirty years after it.
pub(crate) fn after(from: Instant, duration: Duration) -> Instant {
    from + duration.min(FOR_EVER)
}

/// The point in time `duration` from now.
pub(crate) fn from_now(duration: Duration) -> Instant {
    after(Instant::now(), duration)
}

/// Waits until then; for ever, if there is nothing to wait for.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
