//! [`ListSteps`]: durations of the steps of a list, logged if the list took long.

use std::time::Duration;

use tokio::time::Instant;

/// Duration above which the steps of a list are logged, as in client-go's trace.
const LONG: Duration = Duration::from_secs(10);

/// Durations of one list, summed over its pages.
#[derive(Debug)]
pub(super) struct ListSteps {
    begun: Instant,
    pages: u32,
    asking: Duration,
    reading: Duration,
}

impl ListSteps {
    pub(super) fn begin() -> Self {
        Self {
            begun: Instant::now(),
            pages: 0,
            asking: Duration::ZERO,
            reading: Duration::ZERO,
        }
    }

    /// Records a page: the times of its request and of its first byte. The current time is that of its last byte.
    pub(super) fn page(&mut self, asked: Instant, answered: Option<Instant>) {
        let now = Instant::now();
        let answered = answered.unwrap_or(now);
        self.pages += 1;
        self.asking += answered.saturating_duration_since(asked);
        self.reading += now.saturating_duration_since(answered);
    }

    /// Logs the durations of a long list: waiting for responses, reading and decoding, and waiting for the store.
    pub(super) fn end(&self, reflector: &str, expects: &str, objects: usize, handed_on: bool) {
        let total = self.begun.elapsed();
        if total <= LONG {
            return;
        }
        let handing_on = total.saturating_sub(self.asking + self.reading);
        tracing::info!(
            reflector,
            expects,
            ?total,
            pages = self.pages,
            objects,
            requesting = ?self.asking,
            reading = ?self.reading,
            delivering = ?handing_on,
            delivered = handed_on,
            "a list took long"
        );
    }
}
