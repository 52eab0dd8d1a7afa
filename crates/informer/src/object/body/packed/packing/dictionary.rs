//! [`Dictionary`] compresses and decompresses single objects with a zstd dictionary.
//!
//! The dictionary contains the text of sampled objects. The other objects of the informer repeat much of this
//! text.

use parking_lot::Mutex;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{CParameter, ParamSwitch},
};

use super::samples::Samples;

/// The zstd compression level. With the next level, compressed pods are 2 % smaller, but compression takes a
/// quarter more time.
const LEVEL: i32 = 1;

/// The zstd parameter `minMatch`: minimum length in bytes of the repetitions that the compressor uses.
///
/// Compared with the default `minMatch` of [`LEVEL`], this value makes compressed pods 5 % smaller and
/// compressed custom resources 2 % smaller.
const MATCH_MIN: u32 = 7;

/// The zstd parameter `targetLength`.
///
/// Compared with the default `targetLength` of [`LEVEL`], this value makes compressed pods 4 % larger, but
/// compression takes a sixth less time.
const TARGET_LENGTH: u32 = 2;

/// The beginning of each dictionary: zstd's tables with the probabilities of bytes and of lengths. Sampled
/// objects follow the tables.
///
/// The tables were trained with pods, `ConfigMaps` and custom resources in JSON and protobuf. To create the
/// file again, run `cargo run --release -p source -- --probabilities FILE` in `bench`.
///
/// The alternative is to train each dictionary with the informer's own objects, which takes 20 ms and 12 MB
/// of memory. Compared with this alternative, compressed objects are between 2 % smaller and 4 % larger.
/// Short random text, such as base64 in JSON, is up to 25 % larger. Without any tables, compressed pods are
/// 10 % larger, and compression takes 50 % more time.
const PROBABILITIES: &[u8] = include_bytes!("probabilities.bin");

/// Maximum number of idle compression contexts, and of idle decompression contexts, per dictionary.
///
/// A context takes some 150 KB, and creating it takes seven times as long as compressing one object.
pub(super) const IDLE: usize = 16;

/// Maximum capacity in bytes of the output buffer of a zstd context. A context with a larger buffer is not
/// reused.
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

    /// Returns the compressed object; `None` if compression fails or does not make the object smaller.
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

    /// Decompresses `bytes`, and calls `read` with the result.
    ///
    /// Returns `None` without calling `read` if `bytes` can't be decompressed to exactly `length` bytes.
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
