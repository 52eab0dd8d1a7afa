//! Keeps the JSON of objects small: compressed with a dictionary that is trained from an informer's own
//! first objects.
//!
//! Objects of one type repeat each other, so with a dictionary one alone becomes as small as among many.
//! Until there are enough of them they are kept as they are. When what is written no longer fits the
//! dictionary, the next ones make another one; there are never more than two that something is
//! packed with, so what an old one has packed is to be packed anew before a third.
//!
//! Whatever can't be compressed is kept as it is: nothing is ever refused, and nothing lost.

mod dictionary;
mod samples;

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use self::{
    dictionary::Dictionary,
    samples::{Fit, Samples},
};

/// By default a dictionary is made once there are so many objects, which for pods takes some 20 ms. It, and what
/// packs with it, is as large as fifty pods unpacked.
pub(super) const SAMPLES: usize = 256;

/// Samples that make no dictionary are followed by others, each time behind twice as many objects, up to
/// this often.
const PAUSES: u32 = 12;

/// What packs the objects of one informer.
pub(super) struct Packing {
    /// So many objects make a dictionary.
    samples: usize,
    current: ArcSwapOption<Dictionary>,
    learning: Mutex<Learning>,
}

struct Learning {
    /// What the next dictionary is made of, while one is wanted.
    samples: Option<Samples>,
    fit: Fit,
    /// The one before the current one.
    previous: Weak<Dictionary>,
    generation: u64,
    /// How often samples have made no dictionary.
    failures: u32,
}

/// The JSON of one object.
#[derive(Clone)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    /// What it was compressed with, if it was.
    dictionary: Option<Arc<Dictionary>>,
    /// Uncompressed.
    length: u32,
}

/// What was packed can't be read again.
#[derive(Debug)]
pub(super) struct Damaged;

impl Packing {
    /// Whose dictionaries are made of so many objects each.
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

    /// Objects that each dictionary is made of.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// Packs what may be learnt from.
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

    /// Packs with the current dictionary, if it was another one or none; whether anything has changed.
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

    /// Whether a dictionary is to be made, which is later if more is about to come.
    pub(super) fn is_due(&self, more_comes: bool) -> bool {
        self.learning.lock().is_due(self.samples, more_comes)
    }

    /// Makes a dictionary of what has been packed last; what is packed from now on is packed with it.
    /// Takes its time, and does nothing if it is not due, which is later if more is about to come. Whether there
    /// is a new one; if samples make none, the next ones are tried.
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

    /// How many dictionaries there have been.
    pub(super) fn generation(&self) -> u64 {
        self.learning.lock().generation
    }

    /// What dictionaries take, and what the next one is made of, in bytes.
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

    /// What the next dictionary is to be made of, for the one who asks first.
    fn take_due(&mut self, objects: usize, more_comes: bool) -> Option<Samples> {
        if self.is_due(objects, more_comes) {
            self.samples.take()
        } else {
            None
        }
    }
}

impl Packed {
    /// Not compressed.
    pub(super) fn as_it_is(json: &[u8]) -> Self {
        Self {
            bytes: json.into(),
            dictionary: None,
            length: u32::try_from(json.len()).unwrap_or(u32::MAX),
        }
    }

    /// The JSON, if it is not compressed.
    pub(super) fn raw(&self) -> Option<&[u8]> {
        self.dictionary.is_none().then_some(&*self.bytes)
    }

    /// Hands on the JSON.
    ///
    /// # Errors
    /// Its bytes have changed in memory.
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
