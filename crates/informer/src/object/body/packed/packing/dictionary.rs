//! [`Dictionary`]: text that many objects have in common, and the compression contexts that use it.

use parking_lot::Mutex;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{CParameter, ParamSwitch},
};

use super::samples::Samples;

/// The fastest compression level that finds repeated text. For pods, one level more saves 2 % and takes a quarter
/// more time.
const LEVEL: i32 = 1;

/// Minimum match length: JSON repeats whole members, not five letters. Compared with the level's default, pods are
/// 5 % smaller, custom resources 2 %, `ConfigMaps` and Secrets equal; no kind takes longer.
const MATCH_MIN: u32 = 7;

/// Search every second byte after a miss: pods are 4 % larger, in a sixth less time.
const TARGET_LENGTH: u32 = 2;

/// Bytes of a dictionary. With twice as many, pods are 1 % smaller, with four times as many 4 %. But the dictionary
/// displaces other data from the processor's caches: events take 2 % longer with twice as many.
const BYTES: usize = 16 * 1024;

/// Maximum number of idle compression contexts, for as many concurrent threads. Each takes some 150 KB; to create one
/// per object takes seven times as long as its compression.
const IDLE: usize = 16;

/// Maximum bytes of a context's output buffer; a context with a larger one is not reused.
const ROOM_MAX: usize = 256 * 1024;

/// One generation of the dictionary.
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
    /// Trains a dictionary; `None` if the samples have too little in common, or are too small.
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

    /// Compresses JSON; `None` if that fails or does not make it smaller.
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

    /// Calls `read` with the decompressed bytes; `None` if they are damaged or of another length.
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
            // Compresses unmatched text too, which a target length alone disables: pods would be 30 % larger.
            CParameter::LiteralCompressionMode(ParamSwitch::Enable),
        ];
        for parameter in parameters {
            context.set_parameter(parameter).ok()?;
        }
        // The length is stored in the body, and memory needs no checksum.
        context.include_contentsize(false).ok()?;
        context.include_dictid(false).ok()?;
        context.include_checksum(false).ok()?;
        Some(Compressing {
            context,
            room: Vec::new(),
        })
    }
}
