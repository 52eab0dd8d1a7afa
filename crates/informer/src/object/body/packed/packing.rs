//! [`Packing`]: compresses the JSON of objects, with a dictionary trained from an informer's first objects.
//!
//! Objects of one type have much text in common, so with a dictionary a single object compresses as well as many
//! together. Objects stay uncompressed until there are enough samples. When new objects no longer fit the
//! dictionary, another one is trained. At most two are in use, so objects of the older one must be repacked before a
//! third is trained.
//!
//! Guarantees: an object that can't be compressed is stored as it is; none is rejected or lost.

mod dictionary;
mod samples;

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use self::{
    dictionary::Dictionary,
    samples::{Fit, Samples},
};

/// Default number of objects from which a dictionary is trained. For pods the training takes some 20 ms; the
/// dictionary with its compression contexts takes as much memory as fifty unpacked pods.
pub(super) const SAMPLES: usize = 256;

/// Maximum number of doublings of the pause after samples that yield no dictionary.
const PAUSES: u32 = 12;

/// Packs the objects of one informer.
pub(super) struct Packing {
    /// Number of objects for a dictionary.
    samples: usize,
    current: ArcSwapOption<Dictionary>,
    learning: Mutex<Learning>,
}

struct Learning {
    /// Samples for the next dictionary, while one is needed.
    samples: Option<Samples>,
    fit: Fit,
    /// The previous dictionary.
    previous: Weak<Dictionary>,
    generation: u64,
    /// Number of trainings that yielded no dictionary.
    failures: u32,
}

/// The JSON of one object.
#[derive(Clone)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    /// The dictionary; `None` if the object is not compressed.
    dictionary: Option<Arc<Dictionary>>,
    /// Uncompressed length in bytes.
    length: u32,
}

/// Packed bytes can't be decompressed.
#[derive(Debug)]
pub(super) struct Damaged;

impl Packing {
    /// Creates one with this number of objects per dictionary.
    pub(super) fn new(samples: usize) -> Self {
        Self {
            samples,
            current: ArcSwapOption::empty(),
            learning: Mutex::new(Learning {
                samples: Some(Samples::behind(0)),
                fit: Fit::default(),
                previous: Weak::new(),
                generation: 0,
                failures: 0,
            }),
        }
    }

    /// Returns the number of objects per dictionary.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// Packs an object, and takes it as a sample if one is needed.
    pub(super) fn pack(&self, json: &[u8]) -> Packed {
        let packed = self.compressed(json);
        let mut learning = self.learning.lock();
        if let Some(samples) = &mut learning.samples {
            if !samples.are_spread(self.samples) {
                samples.add(json);
            }
        } else if packed.dictionary.is_some() && learning.fit.worsens(&packed) {
            learning.samples = Some(Samples::behind(0));
        }
        packed
    }

    /// Packs with the current dictionary, if it was packed with another or none; returns whether it was.
    pub(super) fn repack(&self, packed: &mut Packed) -> bool {
        let current = self.current.load();
        let Some(current) = &*current else {
            return false;
        };
        let is_current = |with: &Arc<Dictionary>| Arc::ptr_eq(with, current);
        if packed.dictionary.as_ref().is_some_and(is_current) {
            return false;
        }
        let Ok(anew) = packed.unpacked(|json| self.compressed(json)) else {
            return false;
        };
        let changed = anew.dictionary.is_some() || packed.dictionary.is_some();
        if changed {
            *packed = anew;
        }
        changed
    }

    /// Whether to train a dictionary. With `more_comes` that is later.
    pub(super) fn is_due(&self, more_comes: bool) -> bool {
        self.learning.lock().is_due(self.samples, more_comes)
    }

    /// Trains a dictionary from the latest samples, if one is due, and uses it from then on.
    ///
    /// It blocks for the time of the training. Returns whether there is a new dictionary; if the samples yield none,
    /// later samples are tried.
    pub(super) fn train(&self, more_comes: bool) -> bool {
        let Some(samples) = self.learning.lock().take_due(self.samples, more_comes) else {
            return false;
        };
        let Some(dictionary) = Dictionary::train(&samples) else {
            let mut learning = self.learning.lock();
            learning.failures += 1;
            let pause = self
                .samples
                .saturating_mul(1 << learning.failures.min(PAUSES));
            learning.samples = Some(Samples::behind(pause));
            return false;
        };
        let before = self.current.swap(Some(Arc::new(dictionary)));
        let mut learning = self.learning.lock();
        learning.fit = Fit::default();
        learning.previous = before.as_ref().map_or_else(Weak::new, Arc::downgrade);
        learning.generation += 1;
        true
    }

    /// Returns the number of dictionaries trained so far.
    pub(super) fn generation(&self) -> u64 {
        self.learning.lock().generation
    }

    /// Returns the bytes of dictionaries and samples.
    pub(super) fn size(&self) -> usize {
        let learning = self.learning.lock();
        let (current, previous) = (self.current.load(), learning.previous.upgrade());
        let dictionaries =
            current.as_ref().map_or(0, |it| it.size()) + previous.map_or(0, |it| it.size());
        let samples = learning.samples.as_ref();
        dictionaries + samples.map_or(0, |samples| samples.bytes().len())
    }

    fn compressed(&self, json: &[u8]) -> Packed {
        let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
        let current = self.current.load();
        let dictionary = current.as_ref().filter(|_| length < u32::MAX);
        let compressed = dictionary.and_then(|with| Some((with.compress(json)?, Arc::clone(with))));
        match compressed {
            Some((bytes, with)) => Packed {
                bytes,
                dictionary: Some(with),
                length,
            },
            None => Packed::as_it_is(json),
        }
    }
}

impl Learning {
    fn is_due(&self, objects: usize, more_comes: bool) -> bool {
        let are_due = |samples: &Samples| {
            if more_comes {
                samples.are_spread(objects)
            } else {
                samples.are_enough(objects)
            }
        };
        self.samples.as_ref().is_some_and(are_due) && self.previous.strong_count() == 0
    }

    /// Returns the samples if a dictionary is due; the first caller gets them.
    fn take_due(&mut self, objects: usize, more_comes: bool) -> Option<Samples> {
        if self.is_due(objects, more_comes) {
            self.samples.take()
        } else {
            None
        }
    }
}

impl Packed {
    /// Stores JSON without compression.
    pub(super) fn as_it_is(json: &[u8]) -> Self {
        Self {
            bytes: json.into(),
            dictionary: None,
            length: u32::try_from(json.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the JSON, if it is not compressed.
    pub(super) fn raw(&self) -> Option<&[u8]> {
        self.dictionary.is_none().then_some(&*self.bytes)
    }

    /// Calls `read` with the decompressed JSON.
    ///
    /// # Errors
    /// The packed bytes are damaged.
    pub(super) fn unpacked<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Result<T, Damaged> {
        match &self.dictionary {
            None => Ok(read(&self.bytes)),
            Some(with) => {
                let read = with.decompressed(&self.bytes, self.length as usize, read);
                read.ok_or(Damaged)
            }
        }
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    #[cfg(test)]
    pub(super) fn is_compressed(&self) -> bool {
        self.dictionary.is_some()
    }
}

#[cfg(test)]
mod tests;
