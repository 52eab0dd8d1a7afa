//! The figures of one failure, and their text.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::wire::{Kind, Sent, Wire};

/// Width of the intervals in which reconnects are counted.
const BUCKET: Duration = Duration::from_millis(100);

/// Number of reconnects within one period of [`BUCKET`] that [`Requests::is_spread`] always permits.
///
/// A greater number is permitted if it is at most half of all reconnects of the same [`Group`].
const FEW: usize = 20;

/// The reconnects after a failure, either of all large informers or of all small informers.
///
/// A reconnect is the first request that a source (one list and watch of an informer) sends after the
/// failure. A small informer watches the pods of one node; all other informers are large.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    reconnected: usize,
    /// Largest observed number of sources that reconnected within one period of length [`BUCKET`].
    busiest: usize,
}

/// The requests of the informers after a failure.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    large: BTreeMap<Kind, usize>,
    small: BTreeMap<Kind, usize>,
    /// Number of responses that require a list.
    pub(crate) reasons: usize,
    /// Number of sources that sent a request after the failure.
    pub(crate) reconnected: usize,
    /// Largest observed number of sources that reconnected within one period of length [`BUCKET`].
    ///
    /// A source is one list and watch of an informer.
    pub(crate) busiest: usize,
    /// Time between the first reconnect and the last.
    pub(crate) spread: Duration,
    /// The large and the small informers.
    groups: [Group; 2],
}

impl Requests {
    /// Counts the requests that the sources have sent since the failure began.
    ///
    /// Each element of `wires` contains the requests of one source. The element of `before` at the same index
    /// is the number of requests before the failure.
    pub(crate) fn since(wires: &[Arc<Wire>], before: &[usize]) -> Self {
        let mut counted = Self::default();
        let mut reconnects: [Vec<Instant>; 2] = Default::default();
        for (wire, before) in wires.iter().zip(before) {
            let requests = wire.requests();
            let new = &requests[*before..];
            let is_small = wire.name().starts_with("small");
            let group = if is_small {
                &mut counted.small
            } else {
                &mut counted.large
            };
            for sent in new {
                *group.entry(sent.kind).or_default() += 1;
            }
            counted.reasons += new.iter().filter(|sent| sent.reason.is_some()).count();
            reconnects[usize::from(is_small)].extend(new.first().map(|sent: &Sent| sent.at));
        }
        for (group, times) in counted.groups.iter_mut().zip(&mut reconnects) {
            times.sort_unstable();
            *group = Group {
                reconnected: times.len(),
                busiest: busiest(times),
            };
        }
        let mut reconnects = reconnects.concat();
        reconnects.sort_unstable();
        counted.reconnected = reconnects.len();
        counted.busiest = busiest(&reconnects);
        if let (Some(first), Some(last)) = (reconnects.first(), reconnects.last()) {
            counted.spread = *last - *first;
        }
        counted
    }

    /// Returns the number of requests of each [`Kind`] as text, first for the large and then for the small
    /// informers.
    pub(crate) fn text(&self) -> String {
        let group = |name: &str, counts: &BTreeMap<Kind, usize>| {
            let mut text = name.to_owned();
            for kind in Kind::ALL {
                if let Some(count) = counts.get(&kind) {
                    let _ = write!(text, " {} {count}", kind.name());
                }
            }
            text
        };
        let (large, small) = (group("large:", &self.large), group("small:", &self.small));
        format!("{large}; {small}")
    }

    /// Returns whether the reconnects are spread over time, both for the large and for the small informers.
    ///
    /// The reconnects of a group are spread if each period of [`BUCKET`] contains at most [`FEW`] of them, or
    /// at most half of them.
    pub(crate) fn is_spread(&self) -> bool {
        let is_spread =
            |group: &Group| group.busiest <= FEW || group.busiest * 2 <= group.reconnected;
        self.groups.iter().all(is_spread)
    }

    /// Returns the number of requests of a kind.
    pub(crate) fn of(&self, kind: Kind) -> usize {
        let counts = [&self.large, &self.small];
        counts.iter().filter_map(|counts| counts.get(&kind)).sum()
    }
}

/// Returns the maximum number of elements of `times` that lie within one period of [`BUCKET`].
///
/// `times` must be sorted.
fn busiest(times: &[Instant]) -> usize {
    let mut start = 0;
    let mut most = 0;
    for (end, time) in times.iter().enumerate() {
        while *time - times[start] >= BUCKET {
            start += 1;
        }
        most = most.max(end + 1 - start);
    }
    most
}

/// The figures of one failure.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) name: &'static str,
    /// Time until the servers worked again.
    pub(crate) healed: Duration,
    /// Time from when the servers worked again until all informers were equal to the server.
    pub(crate) equal: Duration,
    pub(crate) requests: Requests,
    pub(crate) audited: usize,
    pub(crate) statuses: BTreeMap<u16, usize>,
    pub(crate) objects: usize,
    pub(crate) resident_mib: u64,
}

impl Figures {
    /// Returns the figures as one line.
    pub(crate) fn line(&self) -> String {
        let requests = &self.requests;
        let mut statuses = String::new();
        for (status, count) in &self.statuses {
            let _ = write!(statuses, " {status}: {count}");
        }
        format!(
            "{}: servers back after {:.1?}, {} objects equal after another {:.1?}; requests {}; {} in the audit logs (responses{statuses}), {} reasons to list; {} sources reconnected over {:.1?}, at most {} within {BUCKET:?}; {} MiB",
            self.name,
            self.healed,
            self.objects,
            self.equal,
            requests.text(),
            self.audited,
            requests.reasons,
            requests.reconnected,
            requests.spread,
            requests.busiest,
            self.resident_mib
        )
    }

    /// Returns the row of the final table.
    pub(crate) fn row(&self) -> String {
        let requests = &self.requests;
        let [list, page, stream, probe, watch] = Kind::ALL.map(|kind| requests.of(kind));
        format!(
            "{:32} {:>7.1} {:>7.1} {list:>6} {page:>5} {stream:>6} {probe:>6} {watch:>6} {:>5} {:>5}",
            self.name,
            self.healed.as_secs_f64(),
            self.equal.as_secs_f64(),
            requests.busiest,
            self.resident_mib
        )
    }
}

/// The header of the table of [`Figures::row`].
pub(crate) const HEADER: &str = "failure                             back   equal   list  page stream  probe  watch  peak   MiB";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_must_be_spread() {
        let group = |reconnected, busiest| Group {
            reconnected,
            busiest,
        };
        let is_spread = |groups| {
            Requests {
                groups,
                ..Requests::default()
            }
            .is_spread()
        };
        assert!(is_spread([group(70, 35), group(1000, 500)]));
        assert!(is_spread([group(20, 20), group(0, 0)]));
        assert!(
            !is_spread([group(70, 36), group(1000, 10)]),
            "the large ones"
        );
        assert!(
            !is_spread([group(70, 3), group(1000, 501)]),
            "the small ones"
        );
    }

    #[test]
    fn the_busiest_interval_is_that_with_most_reconnects() {
        let start = Instant::now();
        let times: Vec<_> = [0, 50, 99, 150, 240, 245, 249]
            .map(|millis| start + Duration::from_millis(millis))
            .into();
        assert_eq!(busiest(&times), 4, "150 to 249");
        assert_eq!(busiest(&[]), 0);
    }
}
