//! [`DeltaBase`] compresses an object as its differences from another object with the same labels.
//!
//! Objects with equal labels usually come from one template, such as the pods of a `ReplicaSet`. Compared
//! with dictionary compression, a protobuf pod needs about half of the bytes, and a tenth of the time to
//! read. A JSON pod needs about 0.7 of the bytes, and a third of the time. Both times apply only if the base
//! is still decompressed from a recent use.
//!
//! The module does not decide how an object is stored. [`Packing`](super::Packing) compares the sizes of the
//! compressed forms and selects one.

use std::sync::{Arc, Weak};

use lz4_flex::block::{
    compress_into_with_dict, decompress_into_with_dict, get_maximum_output_size,
};
use parking_lot::Mutex;

use super::dictionary::{Dictionary, IDLE};
use crate::object::UidHash;

/// Maximum length in bytes of a base, and of an object that is compressed with a base.
///
/// The base and the object together then have at most 64 KiB, the distance over which LZ4 finds repetitions.
const LENGTH_MAX: usize = 32 * 1024;

/// Number of consecutive misses after which another object becomes the base.
///
/// A miss is an object that has more than [`DeltaBase::expected`] bytes after compression with the base.
pub(super) const MISSES: u8 = 4;

/// Number of consecutive misses after which the objects of a label set are compressed without a base. See
/// [`MISSES`] for the definition of a miss.
const MISSES_MAX: u8 = 3 * MISSES;

/// If compression with the base divides an object's size by this value or more, the result always counts as
/// good. A bad result is called a miss ([`MISSES`]).
///
/// Without this rule, only the compression ratio of the base would determine which results are good. A base
/// that is a sample in the dictionary has only a few compressed bytes. Every other object would then be a
/// miss.
const SMALL: usize = 8;

/// An object, called the base. Later objects with the same labels are stored as their differences from the
/// base.
///
/// The base itself is compressed with a dictionary.
pub(in super::super) struct DeltaBase {
    bytes: Box<[u8]>,
    dictionary: Arc<Dictionary>,
    /// Length of the uncompressed bytes.
    length: usize,
    idle: Arc<UnpackedBases>,
}

/// The base of the objects with one label set.
#[derive(Default)]
pub(in crate::object) struct BaseOfLabels(Mutex<Choice>);

#[derive(Default)]
struct Choice {
    base: Weak<DeltaBase>,
    /// The object that was compressed last.
    last: UidHash,
    /// Number of consecutive misses until now. A new base does not reset this number.
    ///
    /// A miss is an object that has more than [`DeltaBase::expected`] bytes after compression with the base.
    misses: u8,
}

/// How the next object of a label set is compressed.
pub(super) enum Way {
    /// Alone, without becoming the base.
    Alone,
    /// Alone, and it becomes the base.
    AsBase,
    With(Arc<DeltaBase>),
}

/// Recently used bases in uncompressed form, and buffers.
#[derive(Default)]
pub(super) struct UnpackedBases(Mutex<Vec<Unpacked>>);

#[derive(Default)]
struct Unpacked {
    /// The base that `bytes` contains.
    base: Weak<DeltaBase>,
    bytes: Vec<u8>,
    room: Vec<u8>,
}

impl BaseOfLabels {
    /// Returns how to compress the object `uid`, which has `length` uncompressed bytes.
    ///
    /// Does not use a base that is compressed with a dictionary other than `dictionary`.
    pub(super) fn way(&self, uid: UidHash, length: usize, dictionary: &Arc<Dictionary>) -> Way {
        let mut choice = self.0.lock();
        let was_last = std::mem::replace(&mut choice.last, uid) == uid;
        if length > LENGTH_MAX || choice.misses >= MISSES_MAX {
            return Way::Alone;
        }
        let base = choice
            .base
            .upgrade()
            .filter(|base| Arc::ptr_eq(&base.dictionary, dictionary));
        match base {
            None => Way::AsBase,
            // Only an earlier state of this object uses the base, and will soon be dropped.
            Some(base) if was_last && Arc::strong_count(&base) <= 2 => Way::AsBase,
            Some(base) => Way::With(base),
        }
    }

    pub(super) fn set(&self, base: &Arc<DeltaBase>) {
        self.0.lock().base = Arc::downgrade(base);
    }

    /// Records that an object was compressed with the base and was not a miss ([`MISSES`]).
    pub(super) fn hit(&self) {
        self.0.lock().misses = 0;
    }

    /// Records a miss: an object has more than [`DeltaBase::expected`] bytes after compression with the base.
    /// Returns whether this object must become the new base.
    ///
    /// Returns true when the number of consecutive misses reaches [`MISSES`], and again when the number
    /// reaches twice [`MISSES`].
    pub(super) fn miss(&self) -> bool {
        let mut choice = self.0.lock();
        choice.misses = choice.misses.saturating_add(1);
        choice.misses.is_multiple_of(MISSES) && choice.misses < MISSES_MAX
    }
}

impl DeltaBase {
    pub(super) fn new(
        bytes: Box<[u8]>,
        dictionary: &Arc<Dictionary>,
        length: usize,
        idle: &Arc<UnpackedBases>,
    ) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            dictionary: Arc::clone(dictionary),
            length,
            idle: Arc::clone(idle),
        })
    }

    pub(super) fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the maximum size in bytes that is expected for an object after compression with this base.
    /// `length` is the object's uncompressed size.
    ///
    /// A larger result is called a miss, and [`MISSES`] consecutive misses lead to another base.
    ///
    /// The maximum is three quarters of the estimated size after compression with the dictionary. The
    /// estimate uses the compression ratio of the base. The maximum is at least `length` divided by
    /// [`SMALL`].
    pub(super) fn expected(&self, length: usize) -> usize {
        let by_dictionary = 3 * self.bytes.len() * length / (4 * self.length.max(1));
        by_dictionary.max(length / SMALL)
    }

    /// Decompresses the base, and calls `read` with its uncompressed bytes.
    ///
    /// Returns `None` without calling `read` if the compressed bytes are damaged.
    pub(super) fn unpacked<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.dictionary.decompressed(&self.bytes, self.length, read)
    }

    /// Compresses an object; `None` if it fails.
    pub(super) fn compress(self: &Arc<Self>, object: &[u8]) -> Option<Box<[u8]>> {
        self.with_unpacked(|base, room| {
            let room = sized(room, get_maximum_output_size(object.len()));
            let length = compress_into_with_dict(object, room, base).ok()?;
            Some(Box::from(&room[..length]))
        })
    }

    /// Decompresses `bytes`, and calls `read` with the result.
    ///
    /// Returns `None` without calling `read` if `bytes` or the base is damaged, or if the result is not
    /// `length` bytes long.
    pub(super) fn decompressed<T>(
        self: &Arc<Self>,
        bytes: &[u8],
        length: usize,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        self.with_unpacked(|base, room| {
            let room = sized(room, length);
            let found = decompress_into_with_dict(bytes, room, base).ok();
            (found == Some(length)).then(|| read(room))
        })
    }

    /// Calls `run` with the base's uncompressed bytes and a buffer.
    fn with_unpacked<T>(
        self: &Arc<Self>,
        run: impl FnOnce(&[u8], &mut Vec<u8>) -> Option<T>,
    ) -> Option<T> {
        let mut unpacked = self.idle.take(self);
        if !unpacked.holds(self) {
            unpacked.base = Weak::new();
            self.unpacked(|bytes| {
                unpacked.bytes.clear();
                unpacked.bytes.extend_from_slice(bytes);
            })?;
            unpacked.base = Arc::downgrade(self);
        }
        let result = run(&unpacked.bytes, &mut unpacked.room);
        self.idle.put_back(unpacked);
        result
    }
}

fn sized(room: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if room.len() < length {
        room.resize(length, 0);
    }
    &mut room[..length]
}

impl UnpackedBases {
    /// Removes and returns the entry that contains `base` in uncompressed form.
    ///
    /// Without such an entry, returns an entry whose buffers can be reused, or a new entry.
    fn take(&self, base: &Arc<DeltaBase>) -> Unpacked {
        let mut idle = self.0.lock();
        let held = idle.iter().rposition(|unpacked| unpacked.holds(base));
        match held.or(idle.len().checked_sub(1)) {
            Some(at) => idle.swap_remove(at),
            None => Unpacked::default(),
        }
    }

    fn put_back(&self, unpacked: Unpacked) {
        let mut idle = self.0.lock();
        if idle.len() < IDLE {
            idle.push(unpacked);
        }
    }
}

impl Unpacked {
    fn holds(&self, base: &Arc<DeltaBase>) -> bool {
        std::ptr::eq(self.base.as_ptr(), Arc::as_ptr(base))
    }
}
