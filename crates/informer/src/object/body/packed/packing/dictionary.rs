//! [`Dictionary`] compresses and decompresses single objects with a zstd dictionary of sampled objects, whose
//! text the others have in common.

use parking_lot::Mutex;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{CParameter, ParamSwitch},
};

use super::samples::Samples;

/// The zstd compression level. The next level makes pods 2 % smaller, but takes a quarter more time.
const LEVEL: i32 = 1;

/// The zstd parameter `minMatch`: minimum length in bytes of the repetitions that the compressor uses.
///
/// Makes pods 5 % and custom resources 2 % smaller than the level's default.
const MATCH_MIN: u32 = 7;

/// The zstd parameter `targetLength`.
///
/// Makes pods 4 % larger than the level's default, but compression takes a sixth less time.
const TARGET_LENGTH: u32 = 2;

/// The beginning of each dictionary: probabilities of characters and of lengths, with which zstd encodes text
/// that is not in the dictionary. Sampled objects follow.
///
/// zstd has trained them with pods, `ConfigMaps` and custom resources in JSON and protobuf: run `cargo run
/// --release -p source -- --probabilities FILE` in `bench`. Objects are 2 % smaller to 4 % larger than with a
/// dictionary that zstd trains with them, which takes 20 ms and 12 MB. Short random text, such as base64 in
/// JSON, is up to 25 % larger. Without probabilities, pods are 10 % larger and take half as much time again.
const PROBABILITIES: &[u8] = include_bytes!("probabilities.bin");

/// Maximum number of idle compression contexts, and of idle decompression contexts, per dictionary.
///
/// A context takes some 150 KB, and creating it takes seven times as long as compressing one object.
pub(super) const IDLE: usize = 16;

/// Maximum capacity of a context's output buffer in bytes. A context with a larger buffer is not reused.
const ROOM_MAX: usize = 256 * 1024;

/// A compression dictionary, with idle contexts for compression and decompression.
pub(in super::super) struct Dictionary {
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
    /// Creates a dictionary; `None` if zstd rejects it.
    pub(super) fn of(samples: &Samples) -> Option<Self> {
        let dictionary = Self {
            bytes: [PROBABILITIES, samples.bytes()].concat(),
            compressors: Mutex::default(),
            decompressors: Mutex::default(),
        };
        let first = dictionary.compressing()?;
        dictionary.compressors.lock().push(first);
        Some(dictionary)
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Compresses an object; `None` if that does not make it smaller.
    pub(super) fn compress(&self, object: &[u8]) -> Option<Box<[u8]>> {
        let idle = self.compressors.lock().pop();
        let mut compressing = idle.or_else(|| self.compressing())?;
        let Compressing { context, room } = &mut compressing;
        room.clear();
        room.reserve(object.len());
        let length = context.compress_to_buffer(object, room).ok();
        let length = length.filter(|length| *length < object.len());
        let compressed = length.map(|length| Box::from(&room[..length]));
        if room.capacity() <= ROOM_MAX {
            let mut idle = self.compressors.lock();
            if idle.len() < IDLE {
                idle.push(compressing);
            }
        }
        compressed
    }

    /// Calls `read` with the decompressed bytes, unless they are damaged or not `length` bytes.
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
