//! Decodes JSON in two steps: `simd-json` finds all values of a text, and writes them on a tape; then the
//! type takes from there what it wants.
//!
//! This takes two thirds of the time of `serde_json`, which reads byte by byte. What a type ignores costs nothing,
//! and the length of a list is known before its first element. Input that `simd-json` does not accept, and input
//! for which the two could differ, is left to `serde_json`.
//!
//! Guarantees:
//! - a value that comes from here is the one that `serde_json` makes;
//! - a `Deserialize` that leaves a part of a list or a map unread gets nothing from here, whatever it made of the
//!   rest.

mod value;

use std::cell::RefCell;

use memchr::{memchr, memchr2, memmem};
use serde::de::DeserializeOwned;
use simd_json::{Buffers, Node, StaticNode, Tape};

use self::value::{Reading, Refused, Value};

/// Maximum length of a text, in bytes, whose scratch memory is kept for the next one.
const KEPT_MAX: usize = 256 * 1024;

/// Maximum length of a text, in bytes: `simd-json` counts in 32 bits, and takes many times the text's memory.
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

/// The value of a text; `None` means that `serde_json` decides.
pub(super) fn read<T>(
    json: &[u8],
    read: impl FnOnce(Value<'_, '_>) -> Result<T, Refused>,
) -> Option<T> {
    if json.len() > TEXT_MAX || is_odd(json) {
        return None;
    }
    // A `Deserialize` that decodes another text inside finds none, and makes its own.
    let mut scratch = SCRATCH.take().unwrap_or_else(Scratch::new);
    scratch.text.clear();
    scratch.text.extend_from_slice(json);
    let mut tape = scratch.tape.reset();
    let filled = simd_json::fill_tape(&mut scratch.text, &mut scratch.buffers, &mut tape);
    let reading = Reading::default();
    let value = filled
        .ok()
        .filter(|()| !tape.0.iter().any(is_uncertain))
        .and_then(|()| read(Value::new(&tape.0, &reading)?).ok());
    scratch.tape = tape.reset();
    if json.len() <= KEPT_MAX {
        SCRATCH.set(Some(scratch));
    }
    value.filter(|_| reading.is_whole())
}

/// The largest numbers with 18 digits.
const CERTAIN: u64 = 999_999_999_999_999_999;

/// Whether `serde_json` may make another number of it, or an error: `simd-json` accepts any bytes behind a number
/// of 19 digits or more, rounds some fractions otherwise, and makes a whole number of `-0`.
fn is_uncertain(node: &Node<'_>) -> bool {
    match node {
        Node::Static(StaticNode::U64(number)) => *number > CERTAIN,
        Node::Static(StaticNode::I64(number)) => *number == 0 || number.unsigned_abs() > CERTAIN,
        Node::Static(StaticNode::F64(_)) => true,
        _ => false,
    }
}

/// Whether the text may contain what `simd-json` takes for something else: a zero byte behind a number or a word,
/// which it takes for white space, or one half of a character.
fn is_odd(json: &[u8]) -> bool {
    // Most texts have neither, which one look shows.
    memchr2(0, b'\\', json).is_some() && (memchr(0, json).is_some() || has_surrogates(json))
}

/// Whether a character may be written as two halves. One alone is an error, which `simd-json` does not report.
fn has_surrogates(json: &[u8]) -> bool {
    let mut escapes = memmem::find_iter(json, b"\\u");
    escapes.any(|at| matches!(json.get(at + 2), Some(b'd' | b'D')))
}

/// The value of a type, in the same way.
pub(super) fn decode<K: DeserializeOwned>(json: &[u8]) -> Option<K> {
    read(json, |value| K::deserialize(value))
}

#[cfg(test)]
mod tests;
