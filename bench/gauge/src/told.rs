//! What a handler was told so far: written by the handler, waited for by the script of a run.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use anyhow::{Result, ensure};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::timeout};

use crate::latencies::Latencies;

/// For so long nothing may be told while something is awaited: a relist of the slowest peer takes half a
/// minute, its pause after a failure as long at most.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// The counts of one handler.
#[derive(Debug, Default)]
pub struct Told {
    added: AtomicU64,
    updated: AtomicU64,
    /// What a handler has found in objects; kept, so that no compiler leaves out the looking.
    containers: AtomicU64,
    awaited: AtomicU64,
    reached: Notify,
    latencies: Mutex<Latencies>,
}

impl Told {
    /// The handler was told of a new object, and has counted its containers if it looks into objects.
    pub fn added(&self, containers: usize) {
        self.added.fetch_add(1, Ordering::Relaxed);
        self.containers
            .fetch_add(containers as u64, Ordering::Relaxed);
    }

    /// The handler was told of a change, and has read its time stamp (`bench/ts`, nanoseconds since 1970)
    /// if it looks into objects.
    pub fn updated(&self, sent: Option<&str>) {
        if let Some(sent) = sent.and_then(|sent| sent.parse::<u64>().ok()) {
            self.latencies.lock().push(now().saturating_sub(sent));
        }
        // Either this store sees the waiter, or the waiter sees this store: both are in one total order.
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

    /// Returns when this number of changes has been delivered since the program began. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// Nothing was told for two minutes.
    pub(crate) async fn wait_for_updates(&self, count: u64) -> Result<()> {
        self.awaited.store(count, Ordering::SeqCst);
        let mut before = self.updates();
        while before < count {
            let woken = timeout(SILENCE_MAX, self.reached.notified()).await.is_ok();
            let after = self.updates();
            ensure!(
                woken || after > before,
                "after {after} of {count} changes no more are told"
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
    async fn whoever_waits_for_a_change_is_woken_by_it() {
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
    async fn a_change_that_never_comes_is_an_error_that_counts_the_others() {
        let told = Told::default();
        told.updated(None);
        let error = told.wait_for_updates(2).await.unwrap_err();
        assert_eq!(error.to_string(), "after 1 of 2 changes no more are told");
    }

    #[test]
    fn a_latency_is_taken_where_the_time_of_sending_was_read() {
        let told = Told::default();
        told.updated(None);
        told.updated(Some("no number"));
        assert_eq!(told.latencies().percentile(100), None);
        told.updated(Some(&now().to_string()));
        assert!(told.latencies().percentile(100).is_some());
        assert_eq!(told.updates(), 3);
    }
}
