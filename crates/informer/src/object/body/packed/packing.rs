//! [`Packing`] compresses the bytes of an informer's objects, which are JSON or protobuf.
//!
//! It trains a compression dictionary from samples of these objects. Objects stay uncompressed until there
//! are enough samples. Another dictionary is trained when new objects no longer compress well with the
//! current one. At most two dictionaries are in use: before a third one is trained, all objects that use the
//! oldest dictionary must be compressed again.
//!
//! Guarantees: an object that can't be compressed is stored uncompressed. No object is rejected or lost.

mod dictionary;
mod samples;

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use self::{
    dictionary::Dictionary,
    samples::{Fit, Samples},
};

/// Default number of objects for one training of a dictionary, which takes some 20 ms for pods.
pub(super) const SAMPLES: usize = 256;

/// Maximum number of times that the pause after a failed training doubles.
///
/// The pause is the number of objects that are skipped before sampling starts again.
const PAUSES: u32 = 12;

/// Compresses the objects of one informer, and trains the compression dictionaries.
pub(super) struct Packing {
    /// Number of objects from which each dictionary is trained.
    samples: usize,
    current: ArcSwapOption<Dictionary>,
    learning: Mutex<Learning>,
}

struct Learning {
    /// Samples for the next dictionary, or `None` while no samples are collected.
    samples: Option<Samples>,
    fit: Fit,
    /// The dictionary before the current one, if an object still uses it.
    previous: Weak<Dictionary>,
    generation: u64,
    /// Number of trainings so far that yielded no dictionary.
    failures: u32,
}

/// The encoded bytes of one object, in JSON or protobuf, stored compressed or uncompressed.
#[derive(Clone)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    /// The dictionary with which the bytes are compressed; `None` if the bytes are uncompressed.
    dictionary: Option<Arc<Dictionary>>,
    /// Length of the uncompressed bytes.
    length: u32,
}

/// Error for stored bytes that can't be decompressed, because they are damaged.
#[derive(Debug)]
pub(super) struct Damaged;

impl Packing {
    /// Creates a compressor that trains each dictionary from `samples` objects.
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

    /// Compresses an object, and adds it to the training samples if a dictionary is needed.
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

    /// Compresses an object again with the current dictionary, and returns whether its bytes changed.
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

    /// Returns whether a training is due.
    ///
    /// It is due if sampling covers enough objects, and no object uses the dictionary before the current one.
    /// `more_comes` is whether more objects follow at once, as during a list. If true, the minimum number of
    /// objects is higher.
    pub(super) fn is_due(&self, more_comes: bool) -> bool {
        self.learning.lock().is_due(self.samples, more_comes)
    }

    /// Trains a dictionary for later objects if one [`is_due`](Self::is_due), and returns whether it did.
    ///
    /// The call blocks during the training.
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

    /// Returns the number of dictionaries that have been trained.
    pub(super) fn generation(&self) -> u64 {
        self.learning.lock().generation
    }

    /// Returns the size of the dictionaries and of the training samples, in bytes.
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

    /// Removes and returns the samples if the training of a dictionary is due.
    fn take_due(&mut self, objects: usize, more_comes: bool) -> Option<Samples> {
        if self.is_due(objects, more_comes) {
            self.samples.take()
        } else {
            None
        }
    }
}

impl Packed {
    /// Stores the encoded bytes of an object uncompressed.
    pub(super) fn as_it_is(json: &[u8]) -> Self {
        Self {
            bytes: json.into(),
            dictionary: None,
            length: u32::try_from(json.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the stored bytes if they are uncompressed, otherwise `None`.
    pub(super) fn raw(&self) -> Option<&[u8]> {
        self.dictionary.is_none().then_some(&*self.bytes)
    }

    /// Calls `read` with the object's uncompressed bytes.
    ///
    /// # Errors
    /// Returns an error if the compressed bytes are damaged.
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
