//! [`Packing`] compresses the JSON of objects, with a dictionary trained from an informer's first objects.
//!
//! Objects of one type have much text in common, so with a dictionary a single object compresses as well as
//! many together. Objects stay uncompressed until there are enough samples for a dictionary. When new objects
//! no longer fit the dictionary, another one is trained. At most two dictionaries are in use, so objects of
//! the older one must be compressed again before a third is trained.
//!
//! Guarantees: an object that can't be compressed is stored uncompressed; no object is rejected or lost.

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
/// dictionary with its compression contexts takes as much memory as fifty uncompressed pods.
pub(super) const SAMPLES: usize = 256;

/// Maximum number of times that the pause before the next samples doubles, when samples yield no dictionary.
const PAUSES: u32 = 12;

/// Compresses the objects of one informer, and trains the dictionaries for that.
pub(super) struct Packing {
    /// Number of objects from which each dictionary is trained.
    samples: usize,
    current: ArcSwapOption<Dictionary>,
    learning: Mutex<Learning>,
}

struct Learning {
    /// Samples for the next dictionary; `None` while the current one fits.
    samples: Option<Samples>,
    fit: Fit,
    /// The dictionary before the current one, as long as objects still use it.
    previous: Weak<Dictionary>,
    generation: u64,
    /// Number of trainings so far that yielded no dictionary.
    failures: u32,
}

/// The JSON of one object, compressed or not.
#[derive(Clone)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    /// The dictionary with which the JSON is compressed; `None` if it is not compressed.
    dictionary: Option<Arc<Dictionary>>,
    /// Length of the uncompressed JSON in bytes.
    length: u32,
}

/// The error for compressed bytes that can't be decompressed.
#[derive(Debug)]
pub(super) struct Damaged;

impl Packing {
    /// Creates the state of an informer that trains each dictionary from `samples` objects.
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

    /// Returns the number of objects from which each dictionary is trained.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// Compresses the JSON of an object, and adds it to the samples if another dictionary is needed.
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

    /// Compresses an object with the current dictionary, if it was compressed with another one or not at all.
    /// Returns whether that changed the stored bytes.
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

    /// Whether there are enough samples to train a dictionary. With `more_comes`, which is whether more
    /// objects follow, more samples are required.
    pub(super) fn is_due(&self, more_comes: bool) -> bool {
        self.learning.lock().is_due(self.samples, more_comes)
    }

    /// Trains a dictionary from the latest samples, if there are enough, and compresses later objects with
    /// it.
    ///
    /// The call blocks during the training. Returns whether there is a new dictionary; if the samples yield
    /// none, later objects are sampled.
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

    /// Returns the number of bytes that dictionaries and samples take.
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

    /// Removes and returns the samples if there are enough for a dictionary, so that only the first caller
    /// trains it.
    fn take_due(&mut self, objects: usize, more_comes: bool) -> Option<Samples> {
        if self.is_due(objects, more_comes) {
            self.samples.take()
        } else {
            None
        }
    }
}

impl Packed {
    /// Creates the stored form of an object's JSON without compression.
    pub(super) fn as_it_is(json: &[u8]) -> Self {
        Self {
            bytes: json.into(),
            dictionary: None,
            length: u32::try_from(json.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the JSON, if it is stored uncompressed.
    pub(super) fn raw(&self) -> Option<&[u8]> {
        self.dictionary.is_none().then_some(&*self.bytes)
    }

    /// Decompresses the JSON if it is compressed, and calls `read` with it.
    ///
    /// # Errors
    /// The compressed bytes are damaged.
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
