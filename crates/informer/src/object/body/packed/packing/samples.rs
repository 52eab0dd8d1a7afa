//! [`Samples`] collects training data for a compression dictionary. [`Fit`] detects when new objects no
//! longer compress well with a dictionary.

use super::Packed;

/// Maximum bytes sampled from one object, so that large ones do not dominate the dictionary.
const SAMPLE_BYTES: usize = 32 * 1024;

/// Maximum number of samples for one dictionary.
///
/// With four times as many samples, the compressed objects are at most 3 % smaller, but the training takes
/// three to four times as long.
const TAKEN_MAX: usize = 64;

/// With this many bytes of added objects, a training requires only [`TAKEN_MAX`] objects.
///
/// The early training bounds the memory of large objects that wait uncompressed for the first dictionary.
const SEEN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Factor by which a training during a list requires more objects than a training after the list.
///
/// With more objects, the samples come from more workloads, which saves 9 % of memory for pods.
const SPREAD: usize = 4;

/// The concatenated first bytes of sampled objects, evenly spread over all added objects.
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

    /// Adds an object in JSON or protobuf; one in `stride` objects becomes a sample.
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

    /// Returns whether there are enough objects for a training after a list: at least `objects`, or fewer if
    /// they are large.
    pub(super) fn are_enough(&self, objects: usize) -> bool {
        self.seen >= objects || self.fill_the_room(objects)
    }

    /// Like [`are_enough`](Self::are_enough), but for a training during a list, which requires
    /// [`SPREAD`] times as many objects.
    pub(super) fn are_spread(&self, objects: usize) -> bool {
        self.seen / SPREAD >= objects || self.fill_the_room(objects)
    }

    /// Returns whether the added objects are enough for a training because they are large.
    ///
    /// They are enough if they have at least [`SEEN_BYTES_MAX`] bytes in total, and their number is at least
    /// `objects` or [`TAKEN_MAX`], whichever is less.
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

/// Minimum groups of [`WINDOW`] objects before a dictionary is replaced, to avoid frequent trainings.
const WINDOWS_MIN: u32 = 8;

/// Compares the compression ratio of new objects with that of a dictionary's first objects.
#[derive(Default)]
pub(super) struct Fit {
    /// Compressed bytes per thousand uncompressed bytes of the first [`WINDOW`] objects, once counted.
    first: Option<u64>,
    windows: u32,
    objects: u32,
    json: u64,
    packed: u64,
}

impl Fit {
    /// Counts a compressed object, and returns whether the dictionary should be replaced.
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
        // The latest ratio is more than 1.5 times the first one.
        self.windows >= WINDOWS_MIN && per_thousand * 2 > first * 3
    }
}
