//! [`Samples`]: training data for a dictionary; and [`Fit`]: detects when another dictionary is needed.

use super::Packed;

/// Maximum bytes of one object in the samples, so that a large one does not dominate.
const SAMPLE_BYTES: usize = 32 * 1024;

/// Maximum number of samples. With four times as many, pods, custom resources, `ConfigMaps` and Secrets are at best
/// 3 % smaller, some larger, and training takes three to four times as long.
const TAKEN_MAX: usize = 64;

/// Maximum bytes of objects that stay unpacked until the first dictionary.
const SEEN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Factor of objects to sample from when more follow, because neighbours in a list belong to few workloads. For pods
/// this saves 9 %; a larger factor does not save more.
const SPREAD: usize = 4;

/// The concatenated beginnings of some objects, spread over all objects seen.
pub(super) struct Samples {
    /// Number of first objects that are skipped.
    skips: usize,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    /// Distance between two samples.
    stride: usize,
    seen: usize,
    seen_bytes: usize,
}

impl Samples {
    /// Creates samples that start after this number of objects.
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

    /// Adds an object.
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

    /// Whether this many objects were seen, or the memory limit is reached.
    pub(super) fn are_enough(&self, objects: usize) -> bool {
        self.seen >= objects || self.fill_the_room(objects)
    }

    /// Whether more objects would not improve the samples, or the memory limit is reached.
    pub(super) fn are_spread(&self, objects: usize) -> bool {
        self.seen / SPREAD >= objects || self.fill_the_room(objects)
    }

    /// Whether the memory limit is reached, with enough samples for a dictionary; until then all objects stay unpacked.
    fn fill_the_room(&self, objects: usize) -> bool {
        self.seen >= objects.min(TAKEN_MAX) && self.seen_bytes >= SEEN_BYTES_MAX
    }

    /// Removes every second sample, to make room for as many others.
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

/// Number of objects per comparison.
const WINDOW: u32 = 1000;

/// Minimum number of windows before a dictionary is replaced. Otherwise objects with alternating content would cause
/// more training than the compression saves.
const WINDOWS_MIN: u32 = 8;

/// How well a dictionary fits: compares the first window of objects with the last.
#[derive(Default)]
pub(super) struct Fit {
    /// Packed bytes per thousand unpacked ones, in the first window.
    first: Option<u64>,
    windows: u32,
    objects: u32,
    json: u64,
    packed: u64,
}

impl Fit {
    /// Counts an object. Returns whether the compression ratio of the last window is half as large again as that of
    /// the first.
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
