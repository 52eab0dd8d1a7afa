//! Decodes JSON in two steps with `simd-json`.
//!
//! First, `simd-json` writes all values of a JSON text to a tape, which is a flat list of nodes. Then the
//! type's `Deserialize` implementation reads from the tape. Both steps together take two thirds of the time
//! of `serde_json`.
//!
//! The functions return `None` for input that `simd-json` rejects or may read differently from `serde_json`.
//! The caller must then decode the text with `serde_json`.
//!
//! Guarantees:
//! - a value decoded by this module equals the value that `serde_json` decodes;
//! - if a `Deserialize` implementation does not read an array or map to its end, this module returns `None`,
//!   because `serde_json` reports an error in this case.

mod value;

use std::cell::RefCell;

use memchr::{memchr, memchr2, memmem};
use simd_json::{Buffers, Node, StaticNode, Tape};

use self::value::{Reading, Refused, Value};

/// After a JSON text of more than this number of bytes, a thread frees its decoding buffers. Otherwise, the
/// thread keeps the buffers for the next text.
const KEPT_MAX: usize = 256 * 1024;

/// Maximum length in bytes of a JSON text for `simd-json`, which needs many times the memory of the text.
const TEXT_MAX: usize = 16 << 20;

/// Decoding buffers of a thread, which are reused for the next JSON text.
struct Scratch {
    /// A copy of the JSON text, in which `simd-json` replaces the escapes of strings.
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

/// Writes the tape of a JSON text, and passes the tape to `read`, which decodes the value.
///
/// Returns `None` if `serde_json` must decode the text.
pub(super) fn read<T>(
    json: &[u8],
    read: impl FnOnce(Value<'_, '_>) -> Result<T, Refused>,
) -> Option<T> {
    if json.len() > TEXT_MAX || is_odd(json) {
        return None;
    }
    // A nested call from a `Deserialize` implementation finds no buffers, and allocates new ones.
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

/// The largest integer with 18 digits. This module decodes no integers with more digits, because `simd-json`
/// and `serde_json` may treat them differently.
const CERTAIN: u64 = 999_999_999_999_999_999;

/// Returns whether `serde_json` may reject this number, or decode it to another number than `simd-json`.
fn is_uncertain(node: &Node<'_>) -> bool {
    // `simd-json` accepts any bytes after 19 digits, rounds some fractions differently, and decodes `-0` as
    // an integer.
    match node {
        Node::Static(StaticNode::U64(number)) => *number > CERTAIN,
        Node::Static(StaticNode::I64(number)) => *number == 0 || number.unsigned_abs() > CERTAIN,
        Node::Static(StaticNode::F64(_)) => true,
        _ => false,
    }
}

/// Returns whether a JSON text may contain an error that `simd-json` accepts.
fn is_odd(json: &[u8]) -> bool {
    // `simd-json` accepts unpaired surrogates, and a zero byte after a number or literal.
    // Most texts contain neither byte, so one search is enough.
    memchr2(0, b'\\', json).is_some() && (memchr(0, json).is_some() || has_surrogates(json))
}

/// Returns whether a JSON text may contain the escape of a surrogate.
fn has_surrogates(json: &[u8]) -> bool {
    let mut escapes = memmem::find_iter(json, b"\\u");
    escapes.any(|at| matches!(json.get(at + 2), Some(b'd' | b'D')))
}

#[cfg(test)]
mod tests;
