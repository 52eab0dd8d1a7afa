//! Computes the `resourceVersion` of each object at any recent revision from a record of the changes.
//!
//! Guarantees:
//! - Each change has its own revision, which is higher than all earlier revisions.
//! - Objects change in a fixed cyclic order.
//! - The record of changes has at most [`KEPT`] entries plus one entry per object. An entry is a [`Version`]:
//!   the changed object's new `resourceVersion`, and the time of the change, in 16 bytes.
//!
//! This module does not store the content of objects.

use std::collections::VecDeque;

use crate::corpus::Version;

/// Number of the latest changes that are available to watches.
///
/// A list or a watch can start from a revision only if at most this number of changes follow the revision.
const KEPT: u64 = 65_536;

/// The first revision is one higher than this number.
///
/// The number is so high that all revisions have ten digits. All objects generated from one template then
/// have the same length.
const BEFORE_FIRST: u64 = 4_000_000_000;

/// The record of the latest changes, from which the `resourceVersion` of each object at any recent
/// revision is computed.
#[derive(Debug)]
pub(crate) struct History {
    order: Order,
    /// The most recent changes, oldest first: at most [`KEPT`], plus one older change per object. The older
    /// changes determine the objects' versions in the oldest available state.
    kept: VecDeque<Version>,
    /// Number of all recorded changes, including the changes that are no longer in `kept`.
    count: u64,
    /// Number of changes that precede the oldest state from which a list or a watch can start.
    floor: u64,
    /// Lowest revision that has not expired.
    oldest: u64,
    revision: u64,
}

/// The state of all objects after a given number of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Number of changes that precede this state.
    pub(crate) changes: u64,
    /// Revision of this state: the `resourceVersion` of a list that returns the state.
    pub(crate) revision: u64,
}

/// The reason why a list or a watch can't start from a requested revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMoment {
    /// The requested revision is lower than `oldest`, the lowest revision that is available.
    TooOld { oldest: u64 },
    /// The requested revision is higher than `newest`, the current revision.
    TooNew { newest: u64 },
}

/// The fixed cyclic order in which objects change.
#[derive(Clone, Copy, Debug)]
struct Order {
    objects: u64,
    /// Difference between the indexes of two consecutively changed objects, modulo the number of objects.
    ///
    /// Coprime to the number of objects, so every object changes once in each cycle.
    step: u64,
    /// Modular inverse of `step`. Used by [`place`](Self::place).
    back: u64,
}

// === impl History ===

impl History {
    /// Creates the history of `objects` objects, none of which has changed yet.
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

    /// Records a change of the object that is next in the cyclic order [`Order`].
    ///
    /// `stamp` is the time of the change in nanoseconds since 1970.
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

    /// Expires all revisions up to the current one, and increases the current revision by one.
    pub(crate) fn expire(&mut self) {
        self.revision += 1;
        self.floor = self.count;
        self.oldest = self.revision;
    }

    /// Returns the state of all objects at `revision`.
    ///
    /// # Errors
    /// Returns an error if the revision is too old, or higher than the current revision.
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

    /// Checks that a list or a watch can start from `moment`.
    ///
    /// # Errors
    /// Returns an error if the state is too old.
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

    /// Returns the index and the new [`Version`] of the object that change number `number` modified.
    ///
    /// Changes are counted from 0. Returns `None` if the record does not contain the change.
    pub(crate) fn get(&self, number: u64) -> Option<(usize, Version)> {
        let first = self.count - self.kept.len() as u64;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        let version = self.kept.get(at)?;
        Some((self.order.object(number), *version))
    }

    /// Returns the version of the object with the index `object` in the state `moment`.
    ///
    /// If more than [`KEPT`] changes follow the state, the version can be wrong. The record may then lack the
    /// object's last change before the state.
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

    /// Returns the index of the object that the change with the number `change` (from 0) modifies.
    fn object(self, change: u64) -> usize {
        let object = change % self.objects * self.step % self.objects;
        usize::try_from(object).expect("objects are counted by a usize")
    }

    /// Returns the position of the object with the index `object` in the order in which objects change,
    /// counted from 0.
    ///
    /// For example, at position 5 the object's first change is change number 5, also counted from 0.
    fn place(self, object: usize) -> u64 {
        object as u64 * self.back % self.objects
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the modular inverse of `number` modulo `modulus`.
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
