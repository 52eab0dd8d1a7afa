//! [`Samples`] collects objects for a compression dictionary. [`Fit`] detects when new objects no
//! longer compress well with a dictionary.

/// Maximum bytes sampled from one object, so that large objects do not dominate the dictionary.
const SAMPLE_BYTES: usize = 32 * 1024;

/// Maximum bytes of the samples for one dictionary.
///
/// If the samples exceed the maximum, every second sample is removed.
///
/// With samples of 16, 24 and 48 KiB, a compressed pod in protobuf has 711, 684 and 669 bytes. A dictionary
/// with more samples takes longer to load.
const BYTES_MAX: usize = 48 * 1024;

/// If the added objects have at least this total size in bytes, [`OBJECTS_OF_BYTES`] objects are enough for a
/// dictionary.
///
/// All objects stay uncompressed until the first dictionary exists. Without this rule, large objects would
/// occupy more memory until then.
const SEEN_BYTES: usize = 8 * 1024 * 1024;

/// Minimum number of objects in a dictionary of large objects.
const OBJECTS_OF_BYTES: usize = 64;

/// A dictionary that is created during a list requires this many times the usual number of objects.
///
/// With more objects, the samples come from more workloads, which saves 9 % of memory for pods.
const SPREAD: usize = 4;

/// The first bytes of each sampled object, concatenated. The sampled objects are evenly spread over all added
/// objects.
#[derive(Default)]
pub(super) struct Samples {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    /// Number of added objects between two sampled ones.
    between: usize,
    seen: usize,
    seen_bytes: usize,
}

impl Samples {
    /// Adds an object in JSON or protobuf; some objects become samples.
    pub(super) fn add(&mut self, object: &[u8]) {
        if self.seen.is_multiple_of(self.between + 1) {
            let sample = &object[..object.len().min(SAMPLE_BYTES)];
            self.bytes.extend_from_slice(sample);
            self.lengths.push(sample.len());
            while self.bytes.len() > BYTES_MAX {
                self.thin_out();
            }
        }
        self.seen += 1;
        self.seen_bytes += object.len();
    }

    /// Returns whether a dictionary can be created from the objects that were added, if no more objects of a
    /// list follow.
    ///
    /// The required number is `objects`. [`OBJECTS_OF_BYTES`] objects are also enough if they have at least
    /// [`SEEN_BYTES`] bytes in total.
    pub(super) fn are_enough(&self, objects: usize) -> bool {
        self.seen >= objects || self.fill_the_room(objects)
    }

    /// Returns whether a dictionary can be created from the objects that were added, if more objects of a
    /// list follow.
    ///
    /// `objects` is the number of objects that a dictionary requires after the list. During the list, a
    /// dictionary requires [`SPREAD`] times this number. If the added objects have at least [`SEEN_BYTES`]
    /// bytes in total, the smaller of `objects` and [`OBJECTS_OF_BYTES`] is sufficient.
    pub(super) fn are_spread(&self, objects: usize) -> bool {
        self.seen / SPREAD >= objects || self.fill_the_room(objects)
    }

    /// Returns whether the added objects have at least [`SEEN_BYTES`] bytes in total, and their number is at
    /// least the smaller of `objects` and [`OBJECTS_OF_BYTES`].
    fn fill_the_room(&self, objects: usize) -> bool {
        self.seen >= objects.min(OBJECTS_OF_BYTES) && self.seen_bytes >= SEEN_BYTES
    }

    /// Removes every second sample, and samples half as often from now on.
    fn thin_out(&mut self) {
        let (mut from, mut to) = (0, 0);
        let mut lengths = Vec::with_capacity(self.lengths.len());
        for (number, &length) in self.lengths.iter().enumerate() {
            if number.is_multiple_of(2) {
                self.bytes.copy_within(from..from + length, to);
                lengths.push(length);
                to += length;
            }
            from += length;
        }
        self.bytes.truncate(to);
        self.lengths = lengths;
        self.between = 2 * self.between + 1;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[cfg(test)]
    pub(super) fn lengths(&self) -> &[usize] {
        &self.lengths
    }
}

/// Number of consecutive objects over which the compression ratio is measured.
const WINDOW: u32 = 1000;

/// Number of windows, each of [`WINDOW`] objects, that a dictionary must compress before it can be replaced.
///
/// After each replacement, the stored objects are compressed again. The minimum makes replacements rare.
const WINDOWS_MIN: u32 = 8;

/// Compares the compression ratio of the newest objects with the ratio of the first new objects that the
/// dictionary compressed.
#[derive(Default)]
pub(super) struct Fit {
    /// Compressed bytes per thousand uncompressed bytes of the first [`WINDOW`] objects; `None` until the
    /// dictionary has compressed these objects.
    first: Option<u64>,
    windows: u32,
    objects: u32,
    bytes: u64,
    packed: u64,
}

impl Fit {
    /// Records that the dictionary compressed an object from `length` to `packed` bytes. Returns whether the
    /// dictionary should be replaced.
    ///
    /// After each [`WINDOW`] objects, the method compares their compression ratio with that of the first
    /// [`WINDOW`] objects. The dictionary should be replaced if the ratio is more than 1.5 times worse, but
    /// not before [`WINDOWS_MIN`] windows.
    pub(super) fn worsens(&mut self, length: usize, packed: usize) -> bool {
        self.objects += 1;
        self.bytes += length as u64;
        self.packed += packed as u64;
        if self.objects < WINDOW {
            return false;
        }
        let per_thousand = self.packed * 1000 / self.bytes.max(1);
        let first = *self.first.get_or_insert(per_thousand);
        self.windows += 1;
        (self.objects, self.bytes, self.packed) = (0, 0, 0);
        // The latest ratio is more than 1.5 times the first one.
        self.windows >= WINDOWS_MIN && per_thousand * 2 > first * 3
    }
}
