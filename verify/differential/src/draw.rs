//! Generates the random operations, keys and objects of test sequences from a seed.
//!
//! The same seed yields the same values on every machine. This module does not run the generated operations.

use std::collections::BTreeMap;

use harness::draw::Choose;

use crate::sequence::{Operation, Thing};

/// Minimum and maximum number of operations in a test sequence.
const LENGTH: std::ops::RangeInclusive<usize> = 35..=85;

/// Keys of the generated objects, so few that operations affect the same objects repeatedly.
const KEYS: [&str; 6] = ["a", "b", "c", "d", "n1/a", "n2/b"];

/// Seeded random generator for the operations, keys and objects of one sequence.
pub(crate) struct Draw {
    random: fastrand::Rng,
    /// Revision that was generated last.
    revision: u64,
}

impl Draw {
    /// Creates a generator for the tested component with the name `component`, for example `indexer`.
    ///
    /// Generators for different components yield different values from the same seed.
    pub(crate) fn new(component: &str, seed: u64) -> Self {
        // Components must not have the same pattern of choices.
        let salt = component.bytes().fold(seed, |salt, byte| {
            salt.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
        });
        Self {
            random: fastrand::Rng::with_seed(salt),
            revision: 0,
        }
    }

    /// Returns a random number of operations for a sequence.
    pub(crate) fn length(&mut self) -> usize {
        self.random.usize(LENGTH)
    }

    pub(crate) fn number(&mut self, range: std::ops::RangeInclusive<u64>) -> u64 {
        self.random.u64(range)
    }

    /// Returns a random object key from [`KEYS`].
    pub(crate) fn key(&mut self) -> String {
        (*self.one(&KEYS)).to_owned()
    }

    /// Returns a new revision, which is unique within the sequence.
    pub(crate) fn revision(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }

    /// Returns an object with a random key, a new revision and no index values.
    pub(crate) fn thing(&mut self) -> Thing {
        Thing {
            key: self.key(),
            revision: self.revision(),
            values: BTreeMap::new(),
        }
    }

    /// Returns the objects of a random list, rarely with duplicate keys, in random order.
    pub(crate) fn things(&mut self) -> Vec<Thing> {
        let share = *self.one(&[0, 30, 30, 50, 50, 80]);
        let mut things = Vec::new();
        for key in KEYS {
            let times = usize::from(self.chance(share)) + usize::from(self.chance(share / 20));
            for _ in 0..times {
                things.push(Thing {
                    key: key.to_owned(),
                    revision: self.revision(),
                    values: BTreeMap::new(),
                });
            }
        }
        self.random.shuffle(&mut things);
        things
    }
}

impl Choose for Draw {
    fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.random
    }
}

impl Operation {
    /// Creates an operation with this verb and no arguments.
    pub(crate) fn new(verb: &'static str) -> Self {
        Self {
            verb,
            ..Self::default()
        }
    }

    /// Returns the operation with `thing` as the affected object.
    pub(crate) fn about(self, thing: Thing) -> Self {
        Self {
            thing: Some(thing),
            ..self
        }
    }

    /// Returns the operation with a text argument: a key, an index value or a revision.
    pub(crate) fn text(self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..self
        }
    }

    /// Returns the operation with a numeric argument. The verb determines the number's meaning and unit.
    pub(crate) fn number(self, number: u64) -> Self {
        Self { number, ..self }
    }
}
