//! Decodes JSON in two steps: `simd-json` finds all values of a text, and writes them on a tape; then the
//! type takes from there what it wants.
//!
//! This takes two thirds of the time that `serde_json` takes, which reads byte by byte; what a type ignores
//! costs nothing, and how long a list is is known before its first element is made. What `simd-json` does not
//! take, or takes for what a type does not expect, is left to `serde_json`, which has the last word.
//!
//! Guarantees:
//! - a value that comes from here is the one that `serde_json` makes, but for the last bit of a number with a
//!   fraction, and for minus nothing, which is nothing here and a fraction there;
//! - no unusual `Deserialize` makes something of a part of the text that it is not: whoever leaves a part of a
//!   list or a map unread gets an error.

mod value;

use std::cell::RefCell;

use memchr::{memchr, memchr2, memmem};
use serde::de::DeserializeOwned;
use simd_json::{Buffers, Tape};

use self::value::{Reading, Refused, Value};

/// What is kept for the next text grows with texts, and is let go of beyond so many bytes.
const KEPT_MAX: usize = 256 * 1024;

/// `simd-json` counts bytes in 32 bits, and needs many times the text's memory meanwhile.
const TEXT_MAX: usize = 16 << 20;

/// What a thread decodes with, one text after the other.
struct Scratch {
    /// A copy of the text, in which escapes are resolved.
    text: Vec<u8>,
    buffers: Buffers,
    tape: Tape<'static>,
}

impl Scratch {
    fn new() -> Self {
        Self {
            text: Vec::new(),
            buffers: Buffers::default(),
            tape: Tape::null().reset(),
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

/// The value of a text; `None` says nothing but that `serde_json` is to be asked.
pub(super) fn read<T>(
    json: &[u8],
    read: impl FnOnce(Value<'_, '_>) -> Result<T, Refused>,
) -> Option<T> {
    if json.len() > TEXT_MAX || is_odd(json) {
        return None;
    }
    // Whoever decodes while decoding has one of their own.
    let mut scratch = SCRATCH.take().unwrap_or_else(Scratch::new);
    scratch.text.clear();
    scratch.text.extend_from_slice(json);
    let mut tape = scratch.tape.reset();
    let filled = simd_json::fill_tape(&mut scratch.text, &mut scratch.buffers, &mut tape);
    let reading = Reading::default();
    let value = filled
        .ok()
        .and_then(|()| read(Value::new(&tape.0, &reading)?).ok());
    scratch.tape = tape.reset();
    if json.len() <= KEPT_MAX {
        SCRATCH.set(Some(scratch));
    }
    value.filter(|_| reading.is_whole())
}

/// Whether something may be in it that `simd-json` takes for something else: behind a number or a word a zero
/// byte for white space, or half a character.
fn is_odd(json: &[u8]) -> bool {
    // Most texts have neither, which one look shows.
    memchr2(0, b'\\', json).is_some() && (memchr(0, json).is_some() || has_surrogates(json))
}

/// Whether a character may be written as two halves, of which `simd-json` takes one alone for something
/// else, where it is an error.
fn has_surrogates(json: &[u8]) -> bool {
    let mut escapes = memmem::find_iter(json, b"\\u");
    escapes.any(|at| matches!(json.get(at + 2), Some(b'd' | b'D')))
}

/// The same, of a type.
pub(super) fn decode<K: DeserializeOwned>(json: &[u8]) -> Option<K> {
    read(json, |value| K::deserialize(value))
}

#[cfg(test)]
mod tests;
