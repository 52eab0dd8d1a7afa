//! Records the changes of objects, and computes the version of any object at any revision that is not too
//! old.
//!
//! Guarantees:
//! - Each change has its own revision, which is higher than all earlier revisions.
//! - Objects change in a fixed cyclic order. The object of a change, and the last change of an object before
//!   a revision, are therefore computed without a search.
//! - The memory is at most 16 bytes per object, plus 16 bytes for each of [`KEPT`] changes.
//!
//! This module does not store the content of objects.

use std::collections::VecDeque;

use crate::corpus::Version;

/// Maximum age, in number of changes, of a revision from which a list or a watch may start.
const KEPT: u64 = 65_536;

/// The number before the revision of the first object. All revisions have ten digits, so they have the same
/// width.
const BEFORE_FIRST: u64 = 4_000_000_000;

/// The record of all changes, from which the versions of objects are computed.
#[derive(Debug)]
pub(crate) struct History {
    order: Order,
    /// The most recent changes. They determine the version of every object at each revision that is not too
    /// old.
    kept: VecDeque<Version>,
    /// Number of changes that were recorded, including changes that are no longer in `kept`.
    count: u64,
    /// Minimum number of changes that precede a valid [`Moment`].
    floor: u64,
    /// Minimum revision that is not too old. After an expiry, it is higher than the revision of the last
    /// change.
    oldest: u64,
    revision: u64,
}

/// A state of all objects: the state after a given number of changes. A list shows one such state, and a
/// watch delivers the changes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Number of changes that precede this state.
    pub(crate) changes: u64,
    /// The highest revision in this state, which is the `resourceVersion` of a list.
    pub(crate) revision: u64,
}

/// The reason why a requested revision, or the state in a `continue` token, is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMoment {
    /// The requested revision is lower than `oldest`, the lowest valid revision.
    TooOld { oldest: u64 },
    /// The requested revision is higher than `newest`, the highest revision so far.
    TooNew { newest: u64 },
}

/// The order in which objects change. It is cyclic: the index of the changed object advances by a constant
/// step, modulo the number of objects.
#[derive(Clone, Copy, Debug)]
struct Order {
    objects: u64,
    /// Difference between the indexes of two objects that change in sequence. It is coprime to the number of
    /// objects, so every object changes.
    step: u64,
    /// Modular inverse of `step`, modulo the number of objects.
    back: u64,
}

// === impl History ===

impl History {
    /// Creates the history of `objects` objects that have not changed.
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

    /// Records the next change, which was made at the time `stamp`, in nanoseconds since 1970.
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
    /// The highest revision increases by one, as if an object of another kind had changed.
    pub(crate) fn expire(&mut self) {
        self.revision += 1;
        self.floor = self.count;
        self.oldest = self.revision;
    }

    /// Returns the state in which `revision` was the highest revision.
    ///
    /// # Errors
    /// Returns an error if the revision is too old, or higher than all revisions so far.
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

    /// Checks that the state `moment` is not too old.
    ///
    /// # Errors
    /// Returns an error with the oldest valid revision if the state is too old.
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

    /// Returns the index and the new version of the object that the change `number` changed. Changes are
    /// counted from 0. Returns `None` if the change is not recorded or no longer kept.
    pub(crate) fn get(&self, number: u64) -> Option<(usize, Version)> {
        let first = self.count - self.kept.len() as u64;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        let version = self.kept.get(at)?;
        Some((self.order.object(number), *version))
    }

    /// Returns the version of the object with the index `object` in the state `moment`, which must not be too
    /// old.
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

    /// Returns the index of the object that the change with the number `change` changes.
    fn object(self, change: u64) -> usize {
        let object = change % self.objects * self.step % self.objects;
        usize::try_from(object).expect("objects are counted by a usize")
    }

    /// Returns the number of the first change of the object with the index `object`.
    fn place(self, object: usize) -> u64 {
        object as u64 * self.back % self.objects
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the inverse of `number` modulo `modulus`, by the extended Euclidean algorithm.
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
