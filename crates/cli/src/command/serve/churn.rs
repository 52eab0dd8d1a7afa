//! `--churn`: creates, updates and deletes seeded objects at a constant rate.
//!
//! Guarantees:
//! - the changes are scheduled at regular intervals. If a change is more than [`LAG_MAX`] late, all later
//!   changes are postponed by the same delay, so the churn does not catch up in a burst;
//! - on average, four of five changes are updates. The other changes are creations and deletions, which
//!   alternate. Therefore the number of objects of a resource varies by at most one;
//! - only seeded objects and objects that the churn has created are changed. If another client has deleted an
//!   object that is selected for a change, a new object is created instead.

use std::{convert::Infallible, fmt, str::FromStr, time::Duration};

use fastrand::Rng;
use kube_informer_apiserver::{ApiError, Server};
use tokio::time::{Instant, sleep_until};

use super::{seeding::Population, template};

/// Maximum rate in changes per second.
const RATE_MAX: u64 = 1_000_000;

/// Maximum number of changes between yields to other tasks; 64 changes take about 2 ms.
const BURST: u32 = 64;

/// Maximum delay of one change that does not postpone the later changes.
///
/// After a longer delay, all later changes are postponed by this delay. Otherwise, they would follow in a
/// burst.
const LAG_MAX: Duration = Duration::from_secs(1);

/// On average, one of `UPDATES` changes is a creation or deletion. All other changes are updates.
const UPDATES: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    changes: u64,
    per: Per,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Per {
    Second,
    Minute,
}

/// Changes the seeded objects of a server for `--churn`, and counts the changes.
pub(super) struct Churn {
    server: Server,
    populations: Vec<Population>,
    rng: Rng,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) created: u64,
    pub(super) updated: u64,
    pub(super) deleted: u64,
}

// === impl Rate ===

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mistake = || {
            format!(
                "expected changes per second or minute, such as 500/s or 30/m, at most {RATE_MAX}/s"
            )
        };
        let (changes, per) = text.split_once('/').ok_or_else(mistake)?;
        let (per, most) = match per {
            "s" => (Per::Second, RATE_MAX),
            "m" => (Per::Minute, RATE_MAX * 60),
            _ => return Err(mistake()),
        };
        let changes = changes.parse().map_err(|_| mistake())?;
        if changes == 0 || changes > most {
            return Err(mistake());
        }
        Ok(Self { changes, per })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = match self.per {
            Per::Second => "s",
            Per::Minute => "m",
        };
        write!(f, "{}/{per}", self.changes)
    }
}

impl Rate {
    /// Returns how long after the start the `nth` change is due; `nth` is 1 for the first change.
    fn due(self, nth: u64) -> Duration {
        let period = match self.per {
            Per::Second => Duration::from_secs(1),
            Per::Minute => Duration::from_secs(60),
        };
        let nanos = period.as_nanos() * u128::from(nth) / u128::from(self.changes);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

// === impl Tally ===

impl Tally {
    fn total(self) -> u64 {
        self.created + self.updated + self.deleted
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            created,
            updated,
            deleted,
        } = self;
        let total = self.total();
        write!(
            f,
            "{total} changes: {created} created, {updated} updated, {deleted} deleted"
        )
    }
}

// === impl Churn ===

impl Churn {
    pub(super) fn new(server: Server, populations: Vec<Population>, rng: Rng) -> Self {
        Self {
            server,
            populations,
            rng,
            tally: Tally::default(),
        }
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// Changes objects at the rate `rate` until the future is dropped.
    ///
    /// # Cancel safety
    /// Cancel safe: each change is either made and counted, or not made.
    pub(super) async fn run(&mut self, rate: Rate) -> Infallible {
        let mut start = Instant::now();
        let mut nth = 1;
        loop {
            let due = start + rate.due(nth);
            let late = Instant::now().saturating_duration_since(due);
            if late > LAG_MAX {
                start += late;
            }
            sleep_until(due).await;
            for _ in 0..BURST {
                self.change();
                nth += 1;
                if start + rate.due(nth) > Instant::now() {
                    break;
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Makes one change to an object of a randomly selected resource.
    ///
    /// The probability that a resource is selected is proportional to the number of its seeded objects.
    fn change(&mut self) {
        let counts = self.populations.iter().map(|kind| u64::from(kind.count));
        let mut at = self.rng.u64(..counts.sum::<u64>().max(1));
        let chosen = self.populations.iter_mut().find(|kind| {
            let count = u64::from(kind.count);
            let is_it = at < count;
            at = at.saturating_sub(count);
            is_it
        });
        let Some(kind) = chosen else { return };
        if let Err(error) = kind.change(&self.server, &mut self.rng, &mut self.tally) {
            tracing::warn!("churn: {error}");
        }
    }
}

// === impl Population ===

impl Population {
    fn change(
        &mut self,
        server: &Server,
        rng: &mut Rng,
        tally: &mut Tally,
    ) -> Result<(), ApiError> {
        let in_number = rng.u32(..UPDATES) == 0;
        let has_room = self.alive.len() <= usize::try_from(self.count).unwrap_or(usize::MAX);
        if self.alive.is_empty() || in_number && has_room {
            return self.create(server, rng, tally);
        }
        let at = rng.usize(..self.alive.len());
        let key = self.template.key(self.alive[at]);
        let kind = self.template.kind();
        let (api_version, plural) = (kind.api_version(), &kind.plural);
        let changed = if in_number {
            server.delete(&api_version, plural, &key)
        } else {
            let merge = template::update(tally.total(), rng);
            server.patch(&api_version, plural, &key, merge)
        };
        match changed {
            Ok(_) if in_number => {
                self.alive.swap_remove(at);
                tally.deleted += 1;
                Ok(())
            }
            Ok(_) => {
                tally.updated += 1;
                Ok(())
            }
            // Another client has deleted the object.
            Err(error) if error.code() == 404 => {
                self.alive.swap_remove(at);
                self.create(server, rng, tally)
            }
            Err(error) => Err(error),
        }
    }

    fn create(
        &mut self,
        server: &Server,
        rng: &mut Rng,
        tally: &mut Tally,
    ) -> Result<(), ApiError> {
        let number = self.next;
        self.next += 1;
        server.create(self.template.object(number, rng))?;
        self.alive.push(number);
        tally.created += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
