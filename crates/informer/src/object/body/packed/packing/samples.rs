//! [`Samples`] collects training data for a dictionary, and [`Fit`] detects when another dictionary is
//! needed.

use super::Packed;

/// Maximum bytes taken from one object as a sample, so that a large object does not dominate.
const SAMPLE_BYTES: usize = 32 * 1024;

/// Maximum number of samples for one dictionary. With four times as many, pods, custom resources,
/// `ConfigMaps` and Secrets are at best 3 % smaller, some larger, and training takes three to four times as
/// long.
const TAKEN_MAX: usize = 64;

/// Maximum total bytes of the objects that are sampled before a dictionary is trained. Until the first
/// dictionary these objects stay uncompressed.
const SEEN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Factor by which more objects than requested are sampled if more objects follow, because neighbours in a
/// list belong to few workloads. For pods this saves 9 %; a larger factor does not save more.
const SPREAD: usize = 4;

/// Training data for a dictionary: the first bytes of some objects, concatenated. These objects are evenly
/// spread over all objects seen.
pub(super) struct Samples {
    /// Number of objects still to be skipped before sampling starts.
    skips: usize,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    /// Number of objects from one sample to the next.
    stride: usize,
    seen: usize,
    seen_bytes: usize,
}

impl Samples {
    /// Creates an empty collection that skips this number of objects before it takes samples.
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

    /// Counts an object, and takes its first bytes as a sample if its position is one to be sampled.
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

    /// Whether the next object is a sample.
    fn is_one(&self) -> bool {
        self.seen.is_multiple_of(self.stride)
    }

    /// Whether at least `objects` objects were seen, or the memory limit is reached, so that a dictionary can
    /// be trained.
    pub(super) fn are_enough(&self, objects: usize) -> bool {
        self.seen >= objects || self.fill_the_room(objects)
    }

    /// Whether more objects would not improve the samples, or the memory limit is reached.
    pub(super) fn are_spread(&self, objects: usize) -> bool {
        self.seen / SPREAD >= objects || self.fill_the_room(objects)
    }

    /// Whether the memory limit is reached, and there are enough samples for a dictionary. Until then all
    /// objects stay uncompressed.
    fn fill_the_room(&self, objects: usize) -> bool {
        self.seen >= objects.min(TAKEN_MAX) && self.seen_bytes >= SEEN_BYTES_MAX
    }

    /// Removes every second sample and doubles the distance between samples, to make room for later ones.
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

/// Number of objects over which a compression ratio is measured, for comparison with others.
const WINDOW: u32 = 1000;

/// Minimum number of windows, of [`WINDOW`] objects each, before a dictionary is replaced. Otherwise objects
/// with alternating content would cause more training than the compression saves.
const WINDOWS_MIN: u32 = 8;

/// Detects when a dictionary no longer fits new objects: compares the compression ratio of the first window
/// of objects with that of the last window.
#[derive(Default)]
pub(super) struct Fit {
    /// Compressed bytes per thousand uncompressed bytes, in the first window.
    first: Option<u64>,
    windows: u32,
    objects: u32,
    json: u64,
    packed: u64,
}

impl Fit {
    /// Counts a compressed object. At the end of a window, returns whether the last window's compressed size,
    /// relative to its uncompressed size, is more than 1.5 times that of the first window.
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
