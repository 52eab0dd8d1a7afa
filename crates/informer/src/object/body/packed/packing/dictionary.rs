//! [`Dictionary`]: what many objects have in common, and the contexts that compress with it.

use parking_lot::Mutex;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{CParameter, ParamSwitch},
};

use super::samples::Samples;

/// The fastest level that makes use of repeated text: of a pod one level more saves 2 % and costs a
/// quarter more time.
const LEVEL: i32 = 1;

/// What is found again in JSON are whole members rather than five letters: of pods 5 % smaller than by the
/// level's own choice, of custom resources 2 %, of `ConfigMaps` and Secrets the same, and none takes longer.
const MATCH_MIN: u32 = 7;

/// It looks for one at every second byte where there was none before: of pods 4 % larger, in a sixth less time.
const TARGET_LENGTH: u32 = 2;

/// With twice as much pods are 1 % smaller, with four times 4 %; but it stands in the processor's caches in the
/// place of what else an event needs, which takes 2 % longer with twice as much.
const BYTES: usize = 16 * 1024;

/// So many contexts wait to be used again, for as many threads at once. Each holds the dictionary and tables, of
/// some 150 KB together; to make one for an object would take seven times as long as to compress it.
const IDLE: usize = 16;

/// One that has needed more room than this for an object is not used again.
const ROOM_MAX: usize = 256 * 1024;

/// One generation.
pub(super) struct Dictionary {
    bytes: Vec<u8>,
    compressors: Mutex<Vec<Compressing>>,
    decompressors: Mutex<Vec<Decompressing>>,
}

struct Compressing {
    context: Compressor<'static>,
    room: Vec<u8>,
}

struct Decompressing {
    context: Decompressor<'static>,
    room: Vec<u8>,
}

impl Dictionary {
    /// `None` if the samples have too little in common, or are too small.
    pub(super) fn train(samples: &Samples) -> Option<Self> {
        let bytes = zstd::dict::from_continuous(samples.bytes(), samples.lengths(), BYTES);
        let dictionary = Self {
            bytes: bytes.ok()?,
            compressors: Mutex::default(),
            decompressors: Mutex::default(),
        };
        dictionary.compressing().map(|_| dictionary)
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// `None` if it would not be smaller, or can't be done.
    pub(super) fn compress(&self, json: &[u8]) -> Option<Box<[u8]>> {
        let idle = self.compressors.lock().pop();
        let mut compressing = idle.or_else(|| self.compressing())?;
        let Compressing { context, room } = &mut compressing;
        room.clear();
        room.reserve(json.len());
        let length = context.compress_to_buffer(json, room).ok();
        let compressed = length.map(|length| Box::from(&room[..length]));
        if room.capacity() <= ROOM_MAX {
            let mut idle = self.compressors.lock();
            if idle.len() < IDLE {
                idle.push(compressing);
            }
        }
        compressed
    }

    /// Hands on what was compressed; `None` if it is not of this length, or can't be read.
    pub(super) fn decompressed<T>(
        &self,
        bytes: &[u8],
        length: usize,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let idle = self.decompressors.lock().pop();
        let mut decompressing = idle.or_else(|| self.decompressing())?;
        let Decompressing { context, room } = &mut decompressing;
        room.clear();
        room.reserve(length);
        let found = context.decompress_to_buffer(bytes, room).ok();
        let read = (found == Some(length)).then(|| read(room));
        if room.capacity() <= ROOM_MAX {
            let mut idle = self.decompressors.lock();
            if idle.len() < IDLE {
                idle.push(decompressing);
            }
        }
        read
    }

    fn decompressing(&self) -> Option<Decompressing> {
        let context = Decompressor::with_dictionary(&self.bytes).ok()?;
        let room = Vec::new();
        Some(Decompressing { context, room })
    }

    fn compressing(&self) -> Option<Compressing> {
        let mut context = Compressor::with_dictionary(LEVEL, &self.bytes).ok()?;
        let parameters = [
            CParameter::MinMatch(MATCH_MIN),
            CParameter::TargetLength(TARGET_LENGTH),
            // What stands nowhere else is coded too, which a target length alone puts an end to: of pods 30 % more.
            CParameter::LiteralCompressionMode(ParamSwitch::Enable),
        ];
        for parameter in parameters {
            context.set_parameter(parameter).ok()?;
        }
        // What is kept beside each object anyhow, or protects against what memory does not do.
        context.include_contentsize(false).ok()?;
        context.include_dictid(false).ok()?;
        context.include_checksum(false).ok()?;
        Some(Compressing {
            context,
            room: Vec::new(),
        })
    }
}
