//! Counts the events that a handler has received.
//!
//! The handler records each event. [`observe()`](crate::observe()) reads the counts, and waits until the
//! handler has received a given number of updates.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use anyhow::{Result, ensure};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::timeout};

use crate::latencies::Latencies;

/// [`Told::wait_for_updates`] fails if the handler receives no update during this interval.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Counts of the events that one handler has received, and the latencies of the updates.
#[derive(Debug, Default)]
pub struct Told {
    added: AtomicU64,
    updated: AtomicU64,
    /// Number of containers in all added pods. This field is never read, but without it the compiler could
    /// remove the code that reads the pods.
    containers: AtomicU64,
    awaited: AtomicU64,
    reached: Notify,
    latencies: Mutex<Latencies>,
}

impl Told {
    /// Records one added object, which has `containers` containers.
    pub fn added(&self, containers: usize) {
        self.added.fetch_add(1, Ordering::Relaxed);
        self.containers
            .fetch_add(containers as u64, Ordering::Relaxed);
    }

    /// Records one updated object.
    ///
    /// `sent` is the time at which the update was sent: a decimal number of nanoseconds since 1970. Without a
    /// valid number, no latency is recorded.
    pub fn updated(&self, sent: Option<&str>) {
        if let Some(sent) = sent.and_then(|sent| sent.parse::<u64>().ok()) {
            self.latencies.lock().push(now().saturating_sub(sent));
        }
        // Sequentially consistent: either this thread sees the awaited count, or the waiter sees the new
        // count.
        let updated = self.updated.fetch_add(1, Ordering::SeqCst) + 1;
        if updated == self.awaited.load(Ordering::SeqCst) {
            self.reached.notify_one();
        }
    }

    pub(crate) fn additions(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    pub(crate) fn updates(&self) -> u64 {
        self.updated.load(Ordering::SeqCst)
    }

    /// Waits until the handler has received at least `count` updates in total.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses no update.
    ///
    /// # Errors
    /// Returns an error if the handler receives no update during an interval of [`SILENCE_MAX`].
    pub(crate) async fn wait_for_updates(&self, count: u64) -> Result<()> {
        self.awaited.store(count, Ordering::SeqCst);
        let mut before = self.updates();
        while before < count {
            let woken = timeout(SILENCE_MAX, self.reached.notified()).await.is_ok();
            let after = self.updates();
            ensure!(
                woken || after > before,
                "no more updates after {after} of {count}"
            );
            before = after;
        }
        Ok(())
    }

    pub(crate) fn latencies(&self) -> MutexGuard<'_, Latencies> {
        self.latencies.lock()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the source stamps events with the machine's clock, and this is the same machine"
)]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_waiter_is_woken_by_the_update() {
        let told = Told::default();
        told.updated(None);
        let told_later = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            told.updated(None);
        };
        let (waited, ()) = tokio::join!(told.wait_for_updates(2), told_later);
        waited.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_update_is_an_error_with_the_count_received() {
        let told = Told::default();
        told.updated(None);
        let error = told.wait_for_updates(2).await.unwrap_err();
        assert_eq!(error.to_string(), "no more updates after 1 of 2");
    }

    #[test]
    fn a_latency_is_recorded_only_with_a_time_stamp() {
        let told = Told::default();
        told.updated(None);
        told.updated(Some("not a number"));
        assert_eq!(told.latencies().percentile(100), None);
        told.updated(Some(&now().to_string()));
        assert!(told.latencies().percentile(100).is_some());
        assert_eq!(told.updates(), 3);
    }
}
