//! [`Samples`] collects training data for a compression dictionary. [`Fit`] detects when new objects no
//! longer compress well with a dictionary.

use super::Packed;

/// Maximum number of bytes that are sampled from one object. The limit prevents one large object from
/// dominating the dictionary.
const SAMPLE_BYTES: usize = 32 * 1024;

/// Maximum number of samples for one dictionary.
///
/// With four times this number, objects become at most 3 % smaller, but a training takes three to four times
/// as long.
const TAKEN_MAX: usize = 64;

/// Total bytes of added objects at which [`TAKEN_MAX`] objects are enough to train a dictionary.
///
/// This bounds the memory of objects that wait uncompressed for the first dictionary.
const SEEN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Factor by which the minimum number of objects for a training increases while a list is being received.
///
/// A list contains the objects of one workload one after the other. With the factor, the samples come from
/// more workloads. For pods, this saves 9 % of memory.
const SPREAD: usize = 4;

/// Training data for a dictionary: the first bytes of each sampled object, concatenated. The sampled objects
/// are evenly distributed over all objects that were added.
pub(super) struct Samples {
    /// Number of objects that are still skipped before sampling starts.
    skips: usize,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    /// Distance between two sampled objects: one of every `stride` added objects is sampled.
    stride: usize,
    seen: usize,
    seen_bytes: usize,
}

impl Samples {
    /// Creates an empty collection that skips the first `objects` objects.
    pub(super) fn behind(objects: usize) -> Self {
        Self {
            skips: objects,
            bytes: Vec::new(),
            lengths: Vec::new(),
            stride: 1,
            seen: 0,
            seen_bytes: 0,
        }
    }

    /// Adds the encoded bytes of an object, in JSON or protobuf.
    ///
    /// For one of every `stride` calls, the first [`SAMPLE_BYTES`] bytes of the object become a sample.
    pub(super) fn add(&mut self, json: &[u8]) {
        if self.skips > 0 {
            self.skips -= 1;
            return;
        }
        if self.is_one() && self.lengths.len() == TAKEN_MAX {
            self.thin_out();
        }
        if self.is_one() {
            let sample = &json[..json.len().min(SAMPLE_BYTES)];
            self.bytes.extend_from_slice(sample);
            self.lengths.push(sample.len());
        }
        self.seen += 1;
        self.seen_bytes += json.len();
    }

    /// Returns whether the next object will be sampled.
    fn is_one(&self) -> bool {
        self.seen.is_multiple_of(self.stride)
    }

    /// Returns whether a dictionary can be trained after the end of a list.
    ///
    /// The result is true if at least `objects` objects were added, or if
    /// [`fill_the_room`](Self::fill_the_room) returns true.
    pub(super) fn are_enough(&self, objects: usize) -> bool {
        self.seen >= objects || self.fill_the_room(objects)
    }

    /// Returns whether a dictionary can be trained before the end of a list.
    ///
    /// The result is true if at least [`SPREAD`] times `objects` objects were added, or if
    /// [`fill_the_room`](Self::fill_the_room) returns true.
    pub(super) fn are_spread(&self, objects: usize) -> bool {
        self.seen / SPREAD >= objects || self.fill_the_room(objects)
    }

    /// Returns whether fewer than `objects` objects are enough for a training, because they are large.
    ///
    /// The result is true if the total size of the added objects is at least [`SEEN_BYTES_MAX`], and their
    /// number is at least [`TAKEN_MAX`] or at least `objects`.
    fn fill_the_room(&self, objects: usize) -> bool {
        self.seen >= objects.min(TAKEN_MAX) && self.seen_bytes >= SEEN_BYTES_MAX
    }

    /// Removes every second sample, and doubles `stride`.
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
        self.stride *= 2;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn lengths(&self) -> &[usize] {
        &self.lengths
    }
}

/// Number of consecutive objects over which the compression ratio is measured.
const WINDOW: u32 = 1000;

/// Minimum number of groups of [`WINDOW`] objects that a dictionary compresses before it is replaced.
///
/// The minimum prevents frequent trainings if the content of objects alternates.
const WINDOWS_MIN: u32 = 8;

/// Detects when new objects no longer compress well with a dictionary. It compares the compression ratio of
/// the latest [`WINDOW`] objects with the ratio of the first [`WINDOW`] objects.
#[derive(Default)]
pub(super) struct Fit {
    /// Number of compressed bytes per thousand uncompressed bytes in the first [`WINDOW`] objects; `None`
    /// until that number of objects has been counted.
    first: Option<u64>,
    windows: u32,
    objects: u32,
    json: u64,
    packed: u64,
}

impl Fit {
    /// Counts a compressed object, and returns whether the dictionary should be replaced.
    ///
    /// The method compares each group of [`WINDOW`] objects with the first group. It returns true for the
    /// last object of a group if the group's ratio of compressed size to uncompressed size is more than 1.5
    /// times that of the first group. Before [`WINDOWS_MIN`] groups are complete, the method returns false.
    pub(super) fn worsens(&mut self, packed: &Packed) -> bool {
        self.objects += 1;
        self.json += u64::from(packed.length);
        self.packed += packed.bytes.len() as u64;
        if self.objects < WINDOW {
            return false;
        }
        let per_thousand = self.packed * 1000 / self.json.max(1);
        let first = *self.first.get_or_insert(per_thousand);
        self.windows += 1;
        (self.objects, self.json, self.packed) = (0, 0, 0);
        self.windows >= WINDOWS_MIN && per_thousand * 2 > first * 3
    }
}
