//! Sets of code points, as Go's parser of regular expressions builds them.
//!
//! A set may contain surrogates (U+D800 to U+DFFF), which no `char` can be.

/// Highest code point (`unicode.MaxRune`).
pub(super) const RUNE_MAX: u32 = 0x0010_FFFF;

/// First and last code point of a range.
pub(super) type Range = (u32, u32);

/// A list of ranges. It is *clean* if the ranges are sorted and neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Class {
    ranges: Vec<Range>,
}

impl Class {
    /// Returns the class of `ranges`, in their order.
    pub(super) fn of(ranges: &[Range]) -> Class {
        Class {
            ranges: ranges.to_vec(),
        }
    }

    pub(super) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Adds a range. One of the last two ranges is extended if it touches the new one, as in Go.
    ///
    /// Two ranges, because folded letters alternate between upper and lower case.
    pub(super) fn append(&mut self, lo: u32, hi: u32) {
        for last in self.ranges.iter_mut().rev().take(2) {
            if lo <= last.1 + 1 && last.0 <= hi + 1 {
                *last = (last.0.min(lo), last.1.max(hi));
                return;
            }
        }
        self.ranges.push((lo, hi));
    }

    pub(super) fn append_all(&mut self, ranges: &[Range]) {
        for (lo, hi) in ranges {
            self.append(*lo, *hi);
        }
    }

    /// Sorts the ranges and joins those that overlap or touch.
    pub(super) fn clean(&mut self) {
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|next, kept| {
            let joins = next.0 <= kept.1 + 1;
            if joins {
                kept.1 = kept.1.max(next.1);
            }
            joins
        });
    }

    /// Returns the code points that are not in this class, which must be clean.
    pub(super) fn negated(&self) -> Class {
        let mut negated = Class::default();
        let mut next = 0;
        for (lo, hi) in &self.ranges {
            if next < *lo {
                negated.ranges.push((next, lo - 1));
            }
            next = hi + 1;
        }
        if next <= RUNE_MAX {
            negated.ranges.push((next, RUNE_MAX));
        }
        negated
    }
}
