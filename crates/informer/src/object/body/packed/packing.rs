//! [`Packing`] compresses the bytes of an informer's objects, which are JSON or protobuf.
//!
//! An object is compressed with a dictionary of sampled objects, or with a base. A base is another object
//! with the same labels. Objects stay uncompressed until there are enough samples for the first dictionary.
//! Another dictionary is made when new objects no longer compress well with the current one. At most two
//! dictionaries are in use. A third dictionary is made only after no object uses the oldest dictionary
//! anymore.
//!
//! Guarantees: an object that can't be compressed is stored uncompressed. No object is rejected or lost.

mod delta_base;
mod dictionary;
mod samples;

pub(in crate::object) use self::delta_base::BaseOfLabels;

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use self::{
    delta_base::{DeltaBase, UnpackedBases, Way},
    dictionary::Dictionary,
    samples::{Fit, Samples},
};
use crate::object::UidHash;

/// Default number of objects for one dictionary.
pub(super) const SAMPLES: usize = 256;

pub(super) struct Packing {
    /// Number of objects that each dictionary requires. [`Samples::are_enough`] and [`Samples::are_spread`]
    /// describe the exact conditions.
    samples: usize,
    current: ArcSwapOption<Dictionary>,
    unpacked_bases: Arc<UnpackedBases>,
    learning: Mutex<Learning>,
}

struct Learning {
    /// Samples for the next dictionary, or `None` while no samples are collected.
    samples: Option<Samples>,
    fit: Fit,
    /// The dictionary before the current one, if an object still uses it.
    previous: Weak<Dictionary>,
    generation: u64,
}

/// Uid of an object, and the [base](DeltaBase) for the object's label set.
///
/// Both determine, together with the object's bytes, how the object is compressed.
#[derive(Clone, Copy)]
pub(super) struct Kin<'a> {
    pub(super) uid: UidHash,
    pub(super) base: &'a BaseOfLabels,
}

/// The encoded bytes of one object, in JSON or protobuf, stored compressed or uncompressed.
///
/// `length` is the number of uncompressed bytes.
#[derive(Clone)]
pub(super) enum Packed {
    Uncompressed(Box<[u8]>),
    Alone {
        bytes: Box<[u8]>,
        dictionary: Arc<Dictionary>,
        length: u32,
    },
    /// The object is a base, with which other objects are compressed. [`DeltaBase`] contains its bytes.
    Base(Arc<DeltaBase>),
    WithBase {
        bytes: Box<[u8]>,
        base: Arc<DeltaBase>,
        length: u32,
    },
}

/// Error for stored bytes that can't be decompressed, because they are damaged.
#[derive(Debug)]
pub(super) struct Damaged;

impl Packing {
    /// Creates a compressor without a dictionary.
    ///
    /// `samples` is the number of objects that must be received before a dictionary is created. The number
    /// is higher during a list ([`Samples::are_spread`]), and can be lower for large objects
    /// ([`Samples::are_enough`]).
    pub(super) fn new(samples: usize) -> Self {
        Self {
            samples,
            current: ArcSwapOption::empty(),
            unpacked_bases: Arc::default(),
            learning: Mutex::new(Learning {
                samples: Some(Samples::default()),
                fit: Fit::default(),
                previous: Weak::new(),
                generation: 0,
            }),
        }
    }

    /// Compresses an object, and adds it to the samples if a dictionary is needed.
    pub(super) fn pack(&self, object: &[u8], kin: Kin<'_>) -> Packed {
        let packed = self.compressed(object, kin);
        let mut learning = self.learning.lock();
        if let Some(samples) = &mut learning.samples {
            if !samples.are_spread(self.samples) {
                samples.add(object);
            }
        } else if let Packed::Alone { .. } | Packed::Base(_) = packed
            && learning.fit.worsens(object.len(), packed.size())
        {
            learning.samples = Some(Samples::default());
        }
        packed
    }

    /// Compresses an object again with the current dictionary, and returns whether the stored bytes changed.
    pub(super) fn repack(&self, packed: &mut Packed, kin: Kin<'_>) -> bool {
        let current = self.current.load();
        let Some(current) = &*current else {
            return false;
        };
        if packed
            .dictionary()
            .is_some_and(|with| Arc::ptr_eq(with, current))
        {
            return false;
        }
        let Ok(anew) = packed.unpacked(|object| self.compressed(object, kin)) else {
            return false;
        };
        let changed = anew.raw().is_none() || packed.raw().is_none();
        if changed {
            *packed = anew;
        }
        changed
    }

    /// Creates a dictionary for later objects if one is due. Returns whether a dictionary was created.
    ///
    /// A dictionary is due if enough objects were added to the samples, and no object uses the predecessor of
    /// the current dictionary anymore. `more_comes` is true if more objects follow at once, as during a list.
    /// The required number of objects is then higher.
    pub(super) fn renew(&self, more_comes: bool) -> bool {
        let samples = self.learning.lock().take_due(self.samples, more_comes);
        let Some(dictionary) = samples.and_then(|samples| Dictionary::of(&samples)) else {
            return false;
        };
        let before = self.current.swap(Some(Arc::new(dictionary)));
        let mut learning = self.learning.lock();
        learning.fit = Fit::default();
        learning.previous = before.as_ref().map_or_else(Weak::new, Arc::downgrade);
        learning.generation += 1;
        true
    }

    #[cfg(test)]
    pub(super) fn is_due(&self, more_comes: bool) -> bool {
        self.learning.lock().is_due(self.samples, more_comes)
    }

    /// Returns the number of dictionaries that have been made.
    pub(super) fn generation(&self) -> u64 {
        self.learning.lock().generation
    }

    /// Returns the size of the dictionaries and of the samples, in bytes.
    pub(super) fn size(&self) -> usize {
        let learning = self.learning.lock();
        let (current, previous) = (self.current.load(), learning.previous.upgrade());
        let dictionaries =
            current.as_ref().map_or(0, |it| it.size()) + previous.map_or(0, |it| it.size());
        let samples = learning.samples.as_ref();
        dictionaries + samples.map_or(0, |samples| samples.bytes().len())
    }

    fn compressed(&self, object: &[u8], kin: Kin<'_>) -> Packed {
        let current = self.current.load();
        let (Some(dictionary), Ok(length)) = (&*current, u32::try_from(object.len())) else {
            return Packed::as_it_is(object);
        };
        let (with_base, becomes_base) = match kin.base.way(kin.uid, object.len(), dictionary) {
            Way::Alone => (None, false),
            Way::AsBase => (None, true),
            Way::With(base) => {
                let expected = base.expected(object.len());
                let with_base = base.compress(object).map(|bytes| Packed::WithBase {
                    bytes,
                    base,
                    length,
                });
                match with_base {
                    Some(packed) if packed.size() <= expected => {
                        kin.base.hit();
                        return packed;
                    }
                    other => (other, kin.base.miss()),
                }
            }
        };
        let alone = match dictionary.compress(object) {
            Some(bytes) if becomes_base => {
                let base = DeltaBase::new(bytes, dictionary, object.len(), &self.unpacked_bases);
                kin.base.set(&base);
                return Packed::Base(base);
            }
            Some(bytes) => Packed::Alone {
                bytes,
                dictionary: Arc::clone(dictionary),
                length,
            },
            None => Packed::as_it_is(object),
        };
        match with_base {
            Some(with_base) if with_base.size() < alone.size() => with_base,
            _ => alone,
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

    fn take_due(&mut self, objects: usize, more_comes: bool) -> Option<Samples> {
        if self.is_due(objects, more_comes) {
            self.samples.take()
        } else {
            None
        }
    }
}

impl Packed {
    pub(super) fn as_it_is(object: &[u8]) -> Self {
        Self::Uncompressed(object.into())
    }

    /// Returns the stored bytes if they are uncompressed, otherwise `None`.
    pub(super) fn raw(&self) -> Option<&[u8]> {
        match self {
            Self::Uncompressed(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the dictionary without which the bytes can't be decompressed.
    fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        match self {
            Self::Uncompressed(_) => None,
            Self::Alone { dictionary, .. } => Some(dictionary),
            Self::Base(base) | Self::WithBase { base, .. } => Some(base.dictionary()),
        }
    }

    /// Calls `read` with the object's uncompressed bytes.
    ///
    /// # Errors
    /// Returns an error if the compressed bytes are damaged.
    pub(super) fn unpacked<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Result<T, Damaged> {
        let read = match self {
            Self::Uncompressed(bytes) => Some(read(bytes)),
            Self::Alone {
                bytes,
                dictionary,
                length,
            } => dictionary.decompressed(bytes, *length as usize, read),
            Self::Base(base) => base.unpacked(read),
            Self::WithBase {
                bytes,
                base,
                length,
            } => base.decompressed(bytes, *length as usize, read),
        };
        read.ok_or(Damaged)
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Self::Uncompressed(bytes)
            | Self::Alone { bytes, .. }
            | Self::WithBase { bytes, .. } => bytes.len(),
            Self::Base(base) => base.size(),
        }
    }

    #[cfg(test)]
    pub(super) fn is_compressed(&self) -> bool {
        self.raw().is_none()
    }
}

#[cfg(test)]
mod tests;
