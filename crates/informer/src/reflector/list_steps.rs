//! Where the time of a list went, told if it took long.

use std::time::Duration;

use tokio::time::Instant;

/// A list that takes longer than this says where the time went; client-go's trace does the same.
const LONG: Duration = Duration::from_secs(10);

/// The steps of one list: its pages together, for each of them is asked for and read.
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

    /// A page was asked for at `asked`; its first byte came at `answered`, and its last one now.
    pub(super) fn page(&mut self, asked: Instant, answered: Option<Instant>) {
        let now = Instant::now();
        let answered = answered.unwrap_or(now);
        self.pages += 1;
        self.asking += answered.saturating_duration_since(asked);
        self.reading += now.saturating_duration_since(answered);
    }

    /// Says where the time went, if it was long: waiting for answers, reading and decoding, and
    /// handing the list on, for which the store may have been too busy.
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
            asking = ?self.asking,
            reading = ?self.reading,
            ?handing_on,
            handed_on,
            "a list took long"
        );
    }
}
