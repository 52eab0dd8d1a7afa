//! Simple case folding, as Go's `unicode.SimpleFold`.
//!
//! The code points that are equal under folding form an orbit, for example `K`, `k` and U+212A (Kelvin sign).
//! Guarantees: the orbits are those of Unicode 15.0, the version of Go 1.26.

use std::sync::OnceLock;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::class::{Class, Range};
use super::property;

/// First and last code point that has others in its orbit (`minFold` and `maxFold` in Go).
const FOLDING: Range = (0x41, 0x1E943);

/// Code points in an orbit that have none of the categories `Ll`, `Lt` and `Lu`: the combining iota, Roman
/// numerals, and circled letters.
const UNCASED: [Range; 3] = [(0x345, 0x345), (0x2160, 0x2188), (0x24B6, 0x24E9)];

/// Code points with an orbit since Unicode 15.1 and none before.
const LATER: [u32; 6] = [0x390, 0x3B0, 0x1FD3, 0x1FE3, 0xFB05, 0xFB06];

/// Returns the next code point in the orbit of `rune`; after the highest one, the lowest.
pub(super) fn simple_fold(rune: u32) -> u32 {
    match u8::try_from(rune) {
        Ok(b'k') => 0x212A,
        Ok(b's') => 0x17F,
        Ok(byte) if byte.is_ascii_alphabetic() => rune ^ 0x20,
        Ok(0..0x80) => rune,
        _ => {
            let table = table();
            match table.binary_search_by_key(&rune, |entry| entry.0) {
                Ok(at) => table[at].1,
                Err(_) => rune,
            }
        }
    }
}

/// Returns the lowest code point in the orbit of `rune`.
pub(super) fn lowest(rune: u32) -> u32 {
    orbit(rune).min().unwrap_or(rune)
}

/// Returns the orbit of `rune`, starting with `rune`.
pub(super) fn orbit(rune: u32) -> impl Iterator<Item = u32> {
    let successor = move |last: &u32| Some(simple_fold(*last)).filter(|next| *next != rune);
    std::iter::successors(Some(rune), successor)
}

/// Adds to `class` the range and every code point in the orbits of its code points.
pub(super) fn append_folded(class: &mut Class, (lo, hi): Range) {
    class.append(lo, hi);
    if lo <= FOLDING.0 && FOLDING.1 <= hi {
        return;
    }
    let ascii = lo.max(FOLDING.0)..(hi + 1).min(0x80);
    for rune in ascii.flat_map(|rune| orbit(rune).skip(1)) {
        class.append(rune, rune);
    }
    if hi < 0x80 || FOLDING.1 < lo {
        return;
    }
    let table = table();
    let start = table.partition_point(|entry| entry.0 < lo.max(0x80));
    for (rune, _) in table[start..].iter().take_while(|entry| entry.0 <= hi) {
        for other in orbit(*rune).skip(1) {
            class.append(other, other);
        }
    }
}

/// The code points above ASCII in an orbit of two or more, in order, each with its successor in the orbit.
fn table() -> &'static [(u32, u32)] {
    static TABLE: OnceLock<Vec<(u32, u32)>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut candidates = property::cased();
        candidates.append_all(&UNCASED);
        candidates.clean();
        let assigned = property::assigned();
        let runes = candidates.ranges().iter().flat_map(|(lo, hi)| *lo..=*hi);
        let runes = runes.filter(|rune| 0x80 <= *rune && !LATER.contains(rune));
        let runes = runes.filter_map(char::from_u32);
        runes.filter_map(|rune| successor(rune, assigned)).collect()
    })
}

/// Returns `rune` and its successor in the orbit of `rune` among the `assigned` code points.
fn successor(rune: char, assigned: &Class) -> Option<(u32, u32)> {
    let mut folded = ClassUnicode::new([ClassUnicodeRange::new(rune, rune)]);
    folded.case_fold_simple();
    let is_assigned = |rune: &u32| {
        let ranges = assigned.ranges();
        let at = ranges.partition_point(|range| range.1 < *rune);
        ranges.get(at).is_some_and(|range| range.0 <= *rune)
    };
    let members = folded
        .iter()
        .flat_map(|range| u32::from(range.start())..=u32::from(range.end()));
    let members: Vec<u32> = members.filter(is_assigned).collect();
    let rune = u32::from(rune);
    let at = members.iter().position(|member| *member == rune)?;
    let next = members[(at + 1) % members.len()];
    (next != rune).then_some((rune, next))
}
