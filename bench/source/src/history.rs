//! Records the changes, and computes the version of any object at any revision that is not too old.
//!
//! Guarantees:
//! - each change has its own revision, higher than all earlier revisions;
//! - objects change in a fixed cyclic order, so the object of a change, and the last change of an object
//!   before a moment, are computed and need no lookup;
//! - memory is at most 16 bytes per object, plus 16 bytes for each of [`KEPT`] changes.

use std::collections::VecDeque;

use crate::corpus::Version;

/// Maximum number of changes before now at which a watch or a list may start.
const KEPT: u64 = 65_536;

/// The revision before that of the first object. With ten digits, all revisions have the same width.
const BEFORE_FIRST: u64 = 4_000_000_000;

/// The changes so far.
#[derive(Debug)]
pub(crate) struct History {
    order: Order,
    /// The last changes; enough to know the version of every object at each moment that is not too old.
    kept: VecDeque<Version>,
    /// Number of changes.
    count: u64,
    /// Number of changes before the oldest valid moment.
    floor: u64,
    /// Minimum revision of a valid moment. After an expiry it is above the revision of the last change.
    oldest: u64,
    revision: u64,
}

/// A moment between two changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Number of changes before the moment.
    pub(crate) changes: u64,
    /// The highest revision at the moment.
    pub(crate) revision: u64,
}

/// The reason why a revision or a moment is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMoment {
    /// The revision is older than the oldest valid one.
    TooOld { oldest: u64 },
    /// The revision is newer than the newest one.
    TooNew { newest: u64 },
}

/// The order in which objects change: cyclic, with a constant step.
#[derive(Clone, Copy, Debug)]
struct Order {
    objects: u64,
    /// Coprime to the number of objects.
    step: u64,
    /// The step's inverse modulo the number of objects.
    back: u64,
}

// === impl History ===

impl History {
    /// Creates the history of this number of unchanged objects.
    pub(crate) fn new(objects: usize) -> History {
        let objects = objects as u64;
        History {
            order: Order::new(objects),
            kept: VecDeque::new(),
            count: 0,
            floor: 0,
            oldest: BEFORE_FIRST + objects,
            revision: BEFORE_FIRST + objects,
        }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment {
            changes: self.count,
            revision: self.revision,
        }
    }

    /// Records the next change, with its time.
    pub(crate) fn change(&mut self, stamp: u64) {
        self.revision += 1;
        self.count += 1;
        self.floor = self.floor.max(self.count.saturating_sub(KEPT));
        let revision = self.revision;
        self.kept.push_back(Version { revision, stamp });
        if self.kept.len() as u64 > KEPT + self.order.objects {
            self.kept.pop_front();
        }
    }

    /// Makes all revisions so far too old.
    ///
    /// The highest revision increases by one, as after a change of an object of another kind.
    pub(crate) fn expire(&mut self) {
        self.revision += 1;
        self.floor = self.count;
        self.oldest = self.revision;
    }

    /// Returns the moment at which a revision was the highest.
    pub(crate) fn moment(&self, revision: u64) -> Result<Moment, NoMoment> {
        if revision > self.revision {
            return Err(NoMoment::TooNew {
                newest: self.revision,
            });
        }
        let first = self.count - self.kept.len() as u64;
        let changes = first
            + self
                .kept
                .partition_point(|change| change.revision <= revision) as u64;
        let moment = Moment { changes, revision };
        self.check(moment).map(|()| moment)
    }

    /// Returns an error if a moment is too old.
    pub(crate) fn check(&self, moment: Moment) -> Result<(), NoMoment> {
        if moment.revision < self.oldest || moment.changes < self.floor {
            let floor = self.floor.checked_sub(1).and_then(|last| self.get(last));
            let oldest = floor.map_or(self.oldest, |(_, version)| {
                version.revision.max(self.oldest)
            });
            return Err(NoMoment::TooOld { oldest });
        }
        Ok(())
    }

    /// Returns the change with a number, counted from 0, and its object; `None` if the change is not kept.
    pub(crate) fn get(&self, number: u64) -> Option<(usize, Version)> {
        let first = self.count - self.kept.len() as u64;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        let version = self.kept.get(at)?;
        Some((self.order.object(number), *version))
    }

    /// Returns the version of an object at a moment that is not too old.
    pub(crate) fn version(&self, object: usize, moment: Moment) -> Version {
        let place = self.order.place(object);
        let unchanged = Version {
            revision: BEFORE_FIRST + 1 + place,
            stamp: 0,
        };
        let Some(since) = moment.changes.checked_sub(place + 1) else {
            return unchanged;
        };
        let last = place + since / self.order.objects * self.order.objects;
        self.get(last).map_or(unchanged, |(_, version)| version)
    }
}

// === impl Order ===

impl Order {
    fn new(objects: u64) -> Order {
        // Consecutive changes are far apart in the list: about 0.618 of its length.
        let golden = objects * 618 / 1_000;
        let step = (golden.max(1)..=objects + 1).find(|step| gcd(*step, objects) == 1);
        let step = step.expect("consecutive numbers are coprime");
        Order {
            objects,
            step,
            back: inverse(step, objects),
        }
    }

    /// Returns the object of a change.
    fn object(self, change: u64) -> usize {
        let object = change % self.objects * self.step % self.objects;
        usize::try_from(object).expect("objects are counted by a usize")
    }

    /// Returns the number of an object's first change.
    fn place(self, object: usize) -> u64 {
        object as u64 * self.back % self.objects
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the modular multiplicative inverse, by the extended Euclidean algorithm.
fn inverse(number: u64, modulus: u64) -> u64 {
    let modulus = modulus.cast_signed();
    let (mut old, mut new) = ((number.cast_signed(), 1), (modulus, 0));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    old.1.rem_euclid(modulus).cast_unsigned()
}

#[cfg(test)]
mod tests;
