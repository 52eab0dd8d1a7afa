//! [`Samples`], of which a dictionary is made, and [`Fit`], which says when another one is wanted.

use super::Packed;

/// So much of one object is learnt from: a large one must not stand for all of them.
const SAMPLE_BYTES: usize = 32 * 1024;

/// So many objects are learnt from at most. Of four times as many, pods, custom resources, `ConfigMaps` and
/// Secrets are at best 3 % smaller, and some larger; it takes three to four times as long to learn.
const TAKEN_MAX: usize = 64;

/// So much of what is to be learnt from is kept unpacked meanwhile, where objects are large.
const SEEN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Where more is to come, samples are taken from so many times as many objects: neighbours in a list are of few
/// workloads. Of pods it is 9 % that this saves, and no more where they are further apart.
const SPREAD: usize = 4;

/// The beginnings of some objects, one behind the other, and as far apart as all of them allow.
pub(super) struct Samples {
    /// So many that come first are none.
    skips: usize,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    /// Every so manieth is one.
    stride: usize,
    seen: usize,
    seen_bytes: usize,
}

impl Samples {
    /// Of what comes behind so many objects.
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

    /// Takes one more.
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

    /// Whether the next one is a sample.
    fn is_one(&self) -> bool {
        self.seen.is_multiple_of(self.stride)
    }

    /// Whether there have been so many, or all that there is room for.
    pub(super) fn are_enough(&self, objects: usize) -> bool {
        self.seen >= objects || self.fill_the_room(objects)
    }

    /// Whether there is no use in more of them, or no room.
    pub(super) fn are_spread(&self, objects: usize) -> bool {
        self.seen / SPREAD >= objects || self.fill_the_room(objects)
    }

    /// Until there is a dictionary all that is seen is kept as it is.
    fn fill_the_room(&self, objects: usize) -> bool {
        self.seen >= objects.min(TAKEN_MAX) && self.seen_bytes >= SEEN_BYTES_MAX
    }

    /// Leaves every second one, so that there is room for as many others.
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

/// So many objects are compared at a time.
const WINDOW: u32 = 1000;

/// A dictionary is in use for so many windows before another one may take its place, or making them would
/// cost more than they save where objects of different kinds of content take turns.
const WINDOWS_MIN: u32 = 8;

/// How well a dictionary fits what is packed with it: the first thousand objects, and the last.
#[derive(Default)]
pub(super) struct Fit {
    /// Of the first window, packed bytes per thousand.
    first: Option<u64>,
    windows: u32,
    objects: u32,
    json: u64,
    packed: u64,
}

impl Fit {
    /// Takes one more object; whether the last thousand have become half as large again as the first,
    /// compared with what they were made of.
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
