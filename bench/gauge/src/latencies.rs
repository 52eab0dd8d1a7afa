//! Stores the latencies of events and computes their percentiles.

/// The recorded latencies of events, in microseconds, in no particular order.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<u32>);

impl Latencies {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a latency of `nanos` nanoseconds, rounded up to microseconds.
    ///
    /// A latency of more than one hour is stored as one hour.
    pub(crate) fn push(&mut self, nanos: u64) {
        const HOUR_US: u32 = 3_600_000_000;
        let micros = u32::try_from(nanos.div_ceil(1_000)).unwrap_or(HOUR_US);
        self.0.push(micros.min(HOUR_US));
    }

    /// Returns the percentile `percent` in microseconds, by the nearest-rank method.
    pub(crate) fn percentile(&mut self, percent: usize) -> Option<f64> {
        self.0.sort_unstable();
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0.get(rank.checked_sub(1)?).copied().map(f64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(micros: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        for micros in micros {
            latencies.push(micros * 1_000);
        }
        latencies
    }

    #[test]
    fn a_percentile_is_the_latency_at_its_rank() {
        let mut latencies = of((1..=200).rev());
        assert_eq!(latencies.percentile(50), Some(100.0));
        assert_eq!(latencies.percentile(99), Some(198.0));
        assert_eq!(latencies.percentile(100), Some(200.0));
    }

    #[test]
    fn the_highest_percentile_of_few_latencies_is_the_maximum() {
        assert_eq!(of([7, 3]).percentile(99), Some(7.0));
        assert_eq!(of([7]).percentile(50), Some(7.0));
        assert_eq!(of([]).percentile(50), None);
    }

    #[test]
    fn a_fraction_of_a_microsecond_is_rounded_up() {
        let mut latencies = Latencies::default();
        latencies.push(1);
        assert_eq!(latencies.percentile(50), Some(1.0));
    }
}
