//! [`Draw`]: draws sequences from seeds. A seed draws the same sequence on every machine.

use std::collections::BTreeMap;

use harness::draw::Choose;

use crate::sequence::{Operation, Thing};

/// Number of operations of a sequence; 60 on average.
const LENGTH: std::ops::RangeInclusive<usize> = 35..=85;

/// Keys of cluster-scoped and namespaced objects; few, so that sequences reuse them.
const KEYS: [&str; 6] = ["a", "b", "c", "d", "n1/a", "n2/b"];

/// Draws the parts of sequences.
pub(crate) struct Draw {
    random: fastrand::Rng,
    /// Every object and list has a unique revision, so that answers identify it.
    revision: u64,
}

impl Draw {
    /// Creates the drawing for a seed and component.
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

    /// Draws the length of a sequence.
    pub(crate) fn length(&mut self) -> usize {
        self.random.usize(LENGTH)
    }

    /// Draws a number.
    pub(crate) fn number(&mut self, range: std::ops::RangeInclusive<u64>) -> u64 {
        self.random.u64(range)
    }

    /// Draws a key.
    pub(crate) fn key(&mut self) -> String {
        (*self.one(&KEYS)).to_owned()
    }

    /// Returns a new revision.
    pub(crate) fn revision(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }

    /// Draws an object with a new revision.
    pub(crate) fn thing(&mut self) -> Thing {
        Thing {
            key: self.key(),
            revision: self.revision(),
            values: BTreeMap::new(),
        }
    }

    /// Draws the objects of a list: often few, sometimes none, rarely a duplicate.
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
    /// Creates an operation without arguments.
    pub(crate) fn new(verb: &'static str) -> Self {
        Self {
            verb,
            ..Self::default()
        }
    }

    /// Adds an object.
    pub(crate) fn about(self, thing: Thing) -> Self {
        Self {
            thing: Some(thing),
            ..self
        }
    }

    /// Adds a key, a value or a revision.
    pub(crate) fn text(self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..self
        }
    }

    /// Adds a number.
    pub(crate) fn number(self, number: u64) -> Self {
        Self { number, ..self }
    }
}
