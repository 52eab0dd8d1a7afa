//! [`Dictionary`]: what many objects have in common, and the contexts that compress with it.

use parking_lot::Mutex;
use zstd::bulk::{Compressor, Decompressor};

use super::samples::Samples;

/// The fastest level that makes use of repeated text: of a pod one level more saves 2 % and costs a
/// quarter more time.
const LEVEL: i32 = 1;

/// Longer ones are no better: of pods, 16 KB and 64 KB are the same within 1 %.
const BYTES: usize = 32 * 1024;

/// So many contexts wait to be used again; each holds the dictionary and tables of some 200 KB.
const IDLE: usize = 4;

/// One generation.
pub(super) struct Dictionary {
    bytes: Vec<u8>,
    compressors: Mutex<Vec<Compressing>>,
    decompressors: Mutex<Vec<Decompressor<'static>>>,
}

struct Compressing {
    context: Compressor<'static>,
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
        let mut idle = self.compressors.lock();
        if idle.len() < IDLE {
            idle.push(compressing);
        }
        compressed
    }

    pub(super) fn decompress(&self, bytes: &[u8], length: usize) -> Option<Vec<u8>> {
        let idle = self.decompressors.lock().pop();
        let context = idle.map_or_else(|| Decompressor::with_dictionary(&self.bytes), Ok);
        let mut context = context.ok()?;
        let json = context.decompress(bytes, length).ok();
        let mut idle = self.decompressors.lock();
        if idle.len() < IDLE {
            idle.push(context);
        }
        json.filter(|json| json.len() == length)
    }

    fn compressing(&self) -> Option<Compressing> {
        let mut context = Compressor::with_dictionary(LEVEL, &self.bytes).ok()?;
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
