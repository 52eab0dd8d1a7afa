//! What has changed, and what any object was at a revision that is not too old.
//!
//! Guarantees:
//! - each change has a revision of its own, higher than all before;
//! - changes go round the objects in one fixed order, so which object a change is of, and which change of an object was the last before another, is arithmetic;
//! - memory is sixteen bytes per object and [`KEPT`] changes at most, whatever happens.

use std::collections::VecDeque;

use crate::corpus::Version;

/// How many changes back a watch or a list may begin.
const KEPT: u64 = 65_536;

/// The revision before that of the first object; revisions have ten digits, so that all have the same width.
const BEFORE_FIRST: u64 = 4_000_000_000;

/// All changes so far.
#[derive(Debug)]
pub(crate) struct History {
    order: Order,
    /// The last of them; as many as a moment that is not too old needs to know every object.
    kept: VecDeque<Version>,
    /// How many changes there were.
    count: u64,
    /// The number of changes before the oldest moment from which one may go on.
    floor: u64,
    /// No moment before this revision is known, even one after the same changes.
    oldest: u64,
    revision: u64,
}

/// A moment: after a change, and before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// How many changes there were.
    pub(crate) changes: u64,
    /// The highest revision.
    pub(crate) revision: u64,
}

/// Why there is no moment for a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMoment {
    /// It is forgotten.
    TooOld { oldest: u64 },
    /// It is yet to come.
    TooNew { newest: u64 },
}

/// In which order objects change: all of them, then again, each time by the same step.
#[derive(Clone, Copy, Debug)]
struct Order {
    objects: u64,
    /// Has no factor in common with the number of objects.
    step: u64,
    /// The step's inverse modulo the number of objects.
    back: u64,
}

// === impl History ===

impl History {
    /// The history of this number of objects, none of which has changed.
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

    /// The next change, sent at this time.
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

    /// Makes every revision so far too old: the highest grows by one, as by a change of something that is not served here.
    pub(crate) fn expire(&mut self) {
        self.revision += 1;
        self.floor = self.count;
        self.oldest = self.revision;
    }

    /// The moment at which a revision was the highest.
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

    /// Whether a moment is not too old.
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

    /// The change with a number, counted from 0, and the object that it is of.
    pub(crate) fn get(&self, number: u64) -> Option<(usize, Version)> {
        let first = self.count - self.kept.len() as u64;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        let version = self.kept.get(at)?;
        Some((self.order.object(number), *version))
    }

    /// What an object was at a moment that is not too old.
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
        // Neighbours in time are far from each other in the list: about the golden section of it.
        let golden = objects * 618 / 1_000;
        let step = (golden.max(1)..=objects + 1).find(|step| gcd(*step, objects) == 1);
        let step = step.expect("a number and the next have no factor in common");
        Order {
            objects,
            step,
            back: inverse(step, objects),
        }
    }

    /// The object that a change is of.
    fn object(self, change: u64) -> usize {
        let object = change % self.objects * self.step % self.objects;
        usize::try_from(object).expect("objects are counted by a usize")
    }

    /// The number of an object's first change.
    fn place(self, object: usize) -> u64 {
        object as u64 * self.back % self.objects
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What a number is multiplied with for a remainder of 1, by Euclid's extended algorithm.
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
