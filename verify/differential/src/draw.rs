//! [`Draw`]: the same seed draws the same sequence, on every machine.

use std::collections::BTreeMap;

use harness::draw::Choose;

use crate::sequence::{Operation, Thing};

/// Sequences have so many operations, 60 on the average.
const LENGTH: std::ops::RangeInclusive<usize> = 35..=85;

/// Clusters' and namespaces' objects; few enough that they meet again and again.
const KEYS: [&str; 6] = ["a", "b", "c", "d", "n1/a", "n2/b"];

/// Draws what sequences are made of.
pub(crate) struct Draw {
    random: fastrand::Rng,
    /// Every object and list has a revision of its own, so that it shows which one is told.
    revision: u64,
}

impl Draw {
    /// What this seed draws, for this component.
    pub(crate) fn new(component: &str, seed: u64) -> Self {
        // Components must not all see the same pattern of choices.
        let salt = component.bytes().fold(seed, |salt, byte| {
            salt.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
        });
        Self {
            random: fastrand::Rng::with_seed(salt),
            revision: 0,
        }
    }

    /// How long a sequence is.
    pub(crate) fn length(&mut self) -> usize {
        self.random.usize(LENGTH)
    }

    /// A number.
    pub(crate) fn number(&mut self, range: std::ops::RangeInclusive<u64>) -> u64 {
        self.random.u64(range)
    }

    /// A key.
    pub(crate) fn key(&mut self) -> String {
        (*self.one(&KEYS)).to_owned()
    }

    /// The next revision.
    pub(crate) fn revision(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }

    /// An object of a new revision.
    pub(crate) fn thing(&mut self) -> Thing {
        Thing {
            key: self.key(),
            revision: self.revision(),
            values: BTreeMap::new(),
        }
    }

    /// The objects of a list: often few, sometimes none, rarely one of them twice.
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
    /// A verb that needs nothing.
    pub(crate) fn new(verb: &'static str) -> Self {
        Self {
            verb,
            ..Self::default()
        }
    }

    /// With the object that it is about.
    pub(crate) fn about(self, thing: Thing) -> Self {
        Self {
            thing: Some(thing),
            ..self
        }
    }

    /// With a key, a value or a revision.
    pub(crate) fn text(self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..self
        }
    }

    /// With a number.
    pub(crate) fn number(self, number: u64) -> Self {
        Self { number, ..self }
    }
}
