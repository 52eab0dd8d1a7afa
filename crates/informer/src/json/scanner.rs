//! [`ValueScanner`] finds the end of one JSON value, which may span any number of chunks.
//!
//! The scanner does not check that the value is valid JSON. The caller decodes the value and detects errors.
#![expect(
    clippy::inline_always,
    reason = "what is not inlined is compiled for a processor without vectors of its own"
)]

use std::sync::LazyLock;

use fearless_simd::{Level, Simd, dispatch, prelude::*, u8x64};
use memchr::memchr2;

#[derive(Clone, Debug, Default)]
pub(crate) struct ValueScanner {
    depth: u32,
    in_string: bool,
    escaped: bool,
    scalar: bool,
    /// Number of objects and arrays found so far, including the scanned value.
    opened: usize,
    /// Number of completely scanned objects and arrays directly inside the scanned value.
    pub(crate) closed_inside: u32,
}

/// Whether the value ends in the scanned bytes of a chunk.
enum Step {
    /// The value ends in this chunk, before the byte with this index.
    Ends(usize),
    GoesOn(usize),
}

/// Number of bytes in a block, one per bit of a 64-bit mask.
const BLOCK: usize = 64;

/// The vector instructions that this processor supports.
static LEVEL: LazyLock<Level> = LazyLock::new(Level::new);

/// Bit masks of quotes, backslashes and brackets in a block; the lowest bit is the first byte.
struct Marks {
    quotes: u64,
    escapes: u64,
    opening: u64,
    closing: u64,
}

impl Marks {
    #[inline(always)]
    fn of<S: Simd>(simd: S, block: &[u8; BLOCK]) -> Self {
        let bytes = u8x64::from_slice(simd, block);
        // Braces differ from brackets in this bit only.
        let brackets = bytes | (b'{' ^ b'[');
        let where_is = |bytes: u8x64<S>, byte: u8| bytes.simd_eq(byte).to_bitmask();
        Self {
            quotes: where_is(bytes, b'"'),
            escapes: where_is(bytes, b'\\'),
            opening: where_is(brackets, b'{'),
            closing: where_is(brackets, b'}'),
        }
    }
}

/// Returns a mask in which bit `i` is set if an odd number of the bits 0 to `i` of `bits` are set.
///
/// If `bits` marks the unescaped quotes of a block that starts outside a string, the result marks the bytes
/// inside strings. A string includes its opening quote, but not its closing one.
#[inline(always)]
fn odd(mut bits: u64) -> u64 {
    for distance in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << distance;
    }
    bits
}

/// Returns a mask of the escaped bytes, and whether the next block's first byte is escaped.
///
/// `escapes` is a mask of backslashes, and `first` is whether this block's first byte is escaped.
#[inline(always)]
fn escaped(escapes: u64, first: bool) -> (u64, bool) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let first = u64::from(first);
    if escapes == 0 {
        return (first, false);
    }
    let escapes = escapes & !first;
    let behind = escapes << 1 | first;
    // The addition carries through each run of backslashes. The carry bit after the run shows whether the run
    // started at an odd position.
    let odd_runs = escapes & !EVEN & !behind;
    let (runs, goes_on) = odd_runs.overflowing_add(escapes);
    ((EVEN ^ (runs << 1)) & behind, goes_on)
}

/// Returns the number of objects and arrays in a JSON value. For example, `{"a": []}` has two.
pub(crate) fn parts(value: &[u8]) -> usize {
    let mut scanner = ValueScanner::default();
    scanner.scan(value);
    scanner.parts()
}

/// Returns the index after the JSON value at the start of `bytes`, without a check of its validity.
pub(super) fn value_end(bytes: &[u8]) -> Option<usize> {
    ValueScanner::default().scan(bytes)
}

impl ValueScanner {
    /// Scans the next chunk. If the value ends in this chunk, returns the index of the byte after the value.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        self.scan_with(*LEVEL, bytes)
    }

    fn scan_with(&mut self, level: Level, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            at += match dispatch!(level, simd => self.scan_blocks(simd, &bytes[at..])) {
                Step::Ends(end) => return Some(at + end),
                Step::GoesOn(next) => next,
            };
            match self.scan_bytes(bytes, at) {
                Step::Ends(end) => return Some(end),
                Step::GoesOn(next) => at = next,
            }
        }
        None
    }

    /// Scans whole blocks inside an object or array. Stops before a block that must be scanned byte by byte.
    #[inline(always)]
    fn scan_blocks<S: Simd>(&mut self, simd: S, bytes: &[u8]) -> Step {
        let mut at = 0;
        for block in bytes.as_chunks().0 {
            if self.depth == 0 {
                break;
            }
            match self.scan_block(&Marks::of(simd, block)) {
                Some(Step::Ends(end)) => return Step::Ends(at + end),
                Some(Step::GoesOn(next)) => at += next,
                None => break,
            }
        }
        Step::GoesOn(at)
    }

    /// Scans one block of [`BLOCK`] bytes, or its part before the end of the value.
    ///
    /// Returns `None` without a state change if the block has a backslash outside of strings.
    #[inline(always)]
    fn scan_block(&mut self, marks: &Marks) -> Option<Step> {
        let (escaped, escapes_next) = escaped(marks.escapes, self.escaped);
        let in_string = if self.in_string { u64::MAX } else { 0 };
        let in_strings = odd(marks.quotes & !escaped) ^ in_string;
        if marks.escapes & !in_strings != 0 {
            return None;
        }
        let opening = marks.opening & !in_strings;
        let closing = marks.closing & !in_strings;
        // An empty object or array can't end the value that it is in.
        let empty = opening & (closing >> 1);
        let closed = (closing & !(empty << 1)).count_ones();
        if self.depth > closed + 1 {
            self.depth = self.depth + (opening & !empty).count_ones() - closed;
            self.opened += opening.count_ones() as usize;
        } else if let Some(end) = self.follow(opening, closing) {
            (self.in_string, self.escaped) = (false, false);
            return Some(Step::Ends(end));
        }
        self.in_string = in_strings >> (BLOCK - 1) == 1;
        self.escaped = escapes_next;
        Some(Step::GoesOn(BLOCK))
    }

    /// Updates the depth for each bracket in a block.
    ///
    /// If the value ends in the block, returns the index after the value, relative to the start of the block.
    ///
    /// Bit `i` of `opening` is set if byte `i` of the block is an opening bracket. `closing` contains the
    /// closing brackets in the same way.
    fn follow(&mut self, opening: u64, closing: u64) -> Option<usize> {
        let mut brackets = opening | closing;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            brackets &= brackets - 1;
            if opening >> at & 1 == 1 {
                self.depth += 1;
                self.opened += 1;
                continue;
            }
            self.depth -= 1;
            match self.depth {
                0 => return Some(at as usize + 1),
                1 => self.closed_inside += 1,
                _ => {}
            }
        }
        None
    }

    /// Scans byte by byte from index `from`. Stops in each of these cases:
    /// - The value or the chunk ends.
    /// - At least [`BLOCK`] bytes are scanned.
    /// - The outermost opening bracket is scanned. [`Self::scan_blocks`] can scan the following bytes.
    fn scan_bytes(&mut self, bytes: &[u8], from: usize) -> Step {
        let mut at = from;
        while at < bytes.len().min(from + BLOCK) {
            if self.in_string {
                let Some(behind) = self.skip_string(bytes, at) else {
                    return Step::GoesOn(bytes.len());
                };
                if self.depth == 0 {
                    return Step::Ends(behind);
                }
                at = behind;
                continue;
            }
            match bytes[at] {
                b'"' if !self.scalar => self.in_string = true,
                b'{' | b'[' if !self.scalar => {
                    self.depth += 1;
                    self.opened += 1;
                    if self.depth == 1 {
                        return Step::GoesOn(at + 1);
                    }
                }
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    match self.depth {
                        0 => return Step::Ends(at + 1),
                        1 => self.closed_inside += 1,
                        _ => {}
                    }
                }
                // The character that ends a bare scalar is not part of it.
                b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\r' | b'\t' if self.depth == 0 => {
                    return Step::Ends(at);
                }
                _ if self.depth == 0 => self.scalar = true,
                _ => {}
            }
            at += 1;
        }
        Step::GoesOn(at)
    }

    /// Skips the rest of a string from `at`, and returns the index after the closing quote, if found.
    fn skip_string(&mut self, bytes: &[u8], mut at: usize) -> Option<usize> {
        if std::mem::take(&mut self.escaped) {
            at += 1;
        }
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            at += found;
            if bytes[at] == b'"' {
                self.in_string = false;
                return Some(at + 1);
            }
            if at + 1 == bytes.len() {
                self.escaped = true;
                return None;
            }
            at += 2;
        }
        None
    }

    pub(crate) fn parts(&self) -> usize {
        self.opened
    }

    /// Returns whether the scanner is inside an object, an array or a string.
    pub(crate) fn is_nested(&self) -> bool {
        self.depth > 0 || self.in_string
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, string::string_regex};

    use super::*;

    /// Scans a chunk only byte by byte, for comparison with the scan by blocks.
    fn plainly(scanner: &mut ValueScanner, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match scanner.scan_bytes(bytes, at) {
                Step::Ends(end) => return Some(end),
                Step::GoesOn(next) => at = next,
            }
        }
        None
    }

    /// Returns the instruction sets to test, from the baseline to the processor's best.
    fn levels() -> Vec<Level> {
        let best = Level::new();
        let mut levels = vec![Level::baseline(), best];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(best.as_sse4_2().map(Level::Sse4_2));
            levels.extend(best.as_avx2().map(Level::Avx2));
        }
        levels
    }

    fn texts() -> impl Strategy<Value = Vec<u8>> {
        let few = "[\\[\\]{}\",:a1 \\\\é]{0,400}";
        let text = r#""([a-z{}\[]|\\{1,4}"|\\\\){0,60}""#;
        let inner = format!(r"([a-z1,: \[\]{{}}]{{0,40}}|(\{{\}},){{1,9}}|{text}){{0,20}}");
        let nested = format!(r"[\[{{]{{0,5}}{inner}[\]}}]{{0,12}}");
        let [few, nested] = [few, &nested].map(|text| string_regex(text).unwrap());
        prop_oneof![few, nested].prop_map(String::into_bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn scans_by_block_and_by_byte_find_the_same_end(text in texts(), cut in 0..400_usize) {
            let (first, second) = text.split_at(cut.min(text.len()));
            for level in levels() {
                let (mut by_blocks, mut by_bytes) = (ValueScanner::default(), ValueScanner::default());
                for part in [first, second] {
                    let end = by_blocks.scan_with(level, part);
                    prop_assert_eq!(end, plainly(&mut by_bytes, part));
                    prop_assert_eq!(format!("{by_blocks:?}"), format!("{by_bytes:?}"));
                    if end.is_some() {
                        break;
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_escape_mask_equals_a_scan_byte_by_byte(escapes in any::<u64>(), more in any::<u64>(), first in any::<bool>()) {
            let escapes = escapes | more;
            let (mut expected, mut escapes_next) = (0, first);
            for at in 0..BLOCK {
                let is_escaped = std::mem::take(&mut escapes_next);
                expected |= u64::from(is_escaped) << at;
                escapes_next = !is_escaped && escapes >> at & 1 == 1;
            }
            prop_assert_eq!(escaped(escapes, first), (expected, escapes_next));
        }
    }

    fn by_blocks(scanner: &mut ValueScanner, bytes: &[u8]) -> Step {
        dispatch!(*LEVEL, simd => scanner.scan_blocks(simd, bytes))
    }

    #[test]
    fn the_inside_of_a_value_is_scanned_by_block() {
        let inner = format!(r#"{{"a":["{}",[[1]],{{}}]}},"#, "x".repeat(100)).repeat(50);
        let text = format!(r#"{{"a":[{inner}1],"b":{{}}}}{}"#, " ".repeat(BLOCK));
        let mut scanner = ValueScanner::default();
        assert!(scanner.scan(&text.as_bytes()[..1]).is_none());
        let end = by_blocks(&mut scanner, &text.as_bytes()[1..]);
        assert!(matches!(end, Step::Ends(end) if end == text.trim_end().len() - 1));
        assert_eq!((scanner.opened, scanner.closed_inside), (3 + 50 * 5, 2));
        let escapes = br#""a\\\"}]","b\\\\",[{},{},{},{},{},{},{},{},{},{},{},{},1],1,1,"\"#;
        let mut scanner = ValueScanner {
            depth: 3,
            ..ValueScanner::default()
        };
        assert!(matches!(
            by_blocks(&mut scanner, escapes),
            Step::GoesOn(BLOCK)
        ));
        assert!(scanner.in_string && scanner.escaped && scanner.depth == 3);
        assert_eq!(scanner.opened, 13);
        let outside = [b'\\'; BLOCK];
        scanner = ValueScanner {
            depth: 3,
            ..ValueScanner::default()
        };
        assert!(matches!(by_blocks(&mut scanner, &outside), Step::GoesOn(0)));
    }
}
