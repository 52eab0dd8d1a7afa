//! Finds where one JSON value ends, over any number of chunks.

use memchr::memchr2;
use wide::u8x16;

/// Follows one JSON value from its first byte to its last.
///
/// It looks at structure alone: strings, nesting, and where a bare scalar stops. Whether the value
/// is valid JSON is the decoder's business.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueScanner {
    depth: u32,
    in_string: bool,
    escaped: bool,
    scalar: bool,
    /// How many objects and arrays have begun.
    opened: usize,
    /// How often a value directly inside the outermost object or array was closed by a bracket.
    pub(super) closed_inside: u32,
}

/// How far a scan has come.
enum Step {
    /// The value ends before this byte.
    Ends(usize),
    GoesOn(usize),
}

/// So many bytes are looked at together: one bit each.
const BLOCK: usize = 64;

/// So many of them at a time.
const LANES: usize = 16;

/// Where in a block what stands, the first byte in the lowest bit.
#[derive(Default)]
struct Marks {
    quotes: u64,
    escapes: u64,
    opening: u64,
    closing: u64,
}

impl Marks {
    fn of(block: &[u8; BLOCK]) -> Self {
        // It is the one bit in which braces differ from brackets.
        let alike = u8x16::splat(b'{' ^ b'[');
        let mut marks = Self::default();
        for (lanes, at) in block
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip((0..).step_by(LANES))
        {
            let bytes = u8x16::new(*lanes);
            let brackets = bytes | alike;
            let where_is = |bytes: u8x16, byte| {
                let is_it = bytes.cmp_eq(u8x16::splat(byte)).move_mask();
                u64::from(is_it.cast_unsigned() & 0xffff) << at
            };
            marks.quotes |= where_is(bytes, b'"');
            marks.escapes |= where_is(bytes, b'\\');
            marks.opening |= where_is(brackets, b'{');
            marks.closing |= where_is(brackets, b'}');
        }
        marks
    }
}

/// The bits at and behind which an odd number of these has come: from each opening quote to before its closing
/// one.
fn odd(mut bits: u64) -> u64 {
    for distance in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << distance;
    }
    bits
}

/// Which bytes stand behind a backslash that is not itself escaped, and whether the first one of the next block
/// does; `first` says it of the first of this one.
fn escaped(escapes: u64, first: bool) -> (u64, bool) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let first = u64::from(first);
    if escapes == 0 {
        return (first, false);
    }
    let escapes = escapes & !first;
    let behind = escapes << 1 | first;
    // A sum carries through a run of backslashes, and shows at its end whether it began at an odd place.
    let odd_runs = escapes & !EVEN & !behind;
    let (runs, goes_on) = odd_runs.overflowing_add(escapes);
    ((EVEN ^ (runs << 1)) & behind, goes_on)
}

/// How many objects and arrays a value consists of.
pub(crate) fn parts(value: &[u8]) -> usize {
    let mut scanner = ValueScanner::default();
    scanner.scan(value);
    scanner.opened
}

/// The index behind the last byte of a value that begins here, if all of it is here. It is seen by structure
/// alone.
pub(crate) fn value_end(bytes: &[u8]) -> Option<usize> {
    ValueScanner::default().scan(bytes)
}

impl ValueScanner {
    /// Goes on with `bytes`; the index behind the value's last byte, once it is reached.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let block = bytes.get(at..).and_then(<[u8]>::first_chunk);
            if block.is_some_and(|block| self.passes(block)) {
                at += BLOCK;
                continue;
            }
            match self.scan_block(bytes, at) {
                Step::Ends(end) => return Some(end),
                Step::GoesOn(next) => at = next,
            }
        }
        None
    }

    /// Goes on behind a block as a whole, unless something in it has to be looked at byte by byte: brackets that
    /// could lead out to where values end, or an escape where there is no string.
    fn passes(&mut self, block: &[u8; BLOCK]) -> bool {
        let Marks {
            quotes,
            escapes,
            opening,
            closing,
        } = Marks::of(block);
        let (escaped, escapes_next) = escaped(escapes, self.escaped);
        let in_string = if self.in_string { u64::MAX } else { 0 };
        let in_strings = odd(quotes & !escaped) ^ in_string;
        let [opening, closing] = [opening, closing].map(|marks| marks & !in_strings);
        // What is empty leads nowhere.
        let empty = opening & (closing >> 1);
        let closed = (closing & !(empty << 1)).count_ones();
        if escapes & !in_strings != 0 || self.scalar || self.depth <= closed + 1 {
            return false;
        }
        self.depth = self.depth + (opening & !empty).count_ones() - closed;
        self.opened += opening.count_ones() as usize;
        self.in_string = in_strings >> (BLOCK - 1) == 1;
        self.escaped = escapes_next;
        true
    }

    /// Goes on byte by byte, for as many as a block has.
    fn scan_block(&mut self, bytes: &[u8], from: usize) -> Step {
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
                }
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    match self.depth {
                        0 => return Step::Ends(at + 1),
                        1 => self.closed_inside += 1,
                        _ => {}
                    }
                }
                // The comma or bracket that ends a bare scalar belongs to what surrounds it.
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

    /// The index behind the closing quote, or `None` when the string goes on in the next chunk.
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

    /// Whether the value has begun and could end with the body, as a bare number can.
    pub(super) fn is_nested(&self) -> bool {
        self.depth > 0 || self.in_string
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, string::string_regex};

    use super::*;

    /// The same, byte by byte alone.
    fn plainly(scanner: &mut ValueScanner, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match scanner.scan_block(bytes, at) {
                Step::Ends(end) => return Some(end),
                Step::GoesOn(next) => at = next,
            }
        }
        None
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
        fn by_blocks_and_by_bytes_every_text_ends_at_the_same_place(text in texts(), cut in 0..400_usize) {
            let (first, second) = text.split_at(cut.min(text.len()));
            let (mut by_blocks, mut by_bytes) = (ValueScanner::default(), ValueScanner::default());
            for part in [first, second] {
                let end = by_blocks.scan(part);
                prop_assert_eq!(end, plainly(&mut by_bytes, part));
                prop_assert_eq!(format!("{by_blocks:?}"), format!("{by_bytes:?}"));
                if end.is_some() {
                    break;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn an_escape_escapes_what_is_behind_it(escapes in any::<u64>(), more in any::<u64>(), first in any::<bool>()) {
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

    #[test]
    fn what_is_long_is_passed_over_by_blocks() {
        let inner = format!(r#"{{"a":["{}",[[1]]]}},"#, "x".repeat(100)).repeat(50);
        let text = format!("{}{inner}1{}", "[".repeat(6), "]".repeat(6));
        let mut scanner = ValueScanner::default();
        assert!(scanner.scan(&text.as_bytes()[..6]).is_none());
        let blocks = text.as_bytes()[6..].as_chunks().0;
        let passed = blocks.iter().filter(|block| scanner.passes(block)).count();
        assert_eq!(passed, blocks.len());
        let escapes = br#""a\\\"}]","b\\\\",[{},{},{},{},{},{},{},{},{},{},{},{},1],1,1,"\"#;
        let mut scanner = ValueScanner {
            depth: 3,
            ..ValueScanner::default()
        };
        assert!(scanner.passes(escapes));
        assert!(scanner.in_string && scanner.escaped && scanner.depth == 3);
        assert_eq!(scanner.opened, 13);
        for (depth, passes) in [(3, false), (65, false), (66, true)] {
            let mut scanner = ValueScanner {
                depth,
                ..ValueScanner::default()
            };
            assert_eq!(scanner.passes(&[b']'; BLOCK]), passes, "{depth}");
        }
    }
}
