//! Measures the steps of a list: waiting for responses, reading them, and waiting for the store. Logs the
//! duration of each step if the list took more than ten seconds.

use std::time::Duration;

use tokio::time::Instant;

/// Duration of a list above which its steps are logged, as in client-go's trace.
const LONG: Duration = Duration::from_secs(10);

/// Time that one list has spent waiting for responses and reading responses. [`end`](Self::end) counts the
/// rest of the time as waiting for the store.
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

    /// Adds the durations of a page request that ends now.
    ///
    /// `asked` is when the request started. `answered` is when the response headers arrived, or `None` if
    /// none arrived.
    pub(super) fn page(&mut self, asked: Instant, answered: Option<Instant>) {
        let now = Instant::now();
        let answered = answered.unwrap_or(now);
        self.pages += 1;
        self.asking += answered.saturating_duration_since(asked);
        self.reading += now.saturating_duration_since(answered);
    }

    /// Logs the duration of each step if the whole list took longer than [`LONG`].
    ///
    /// `handed_on` is whether the store has accepted the list.
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
