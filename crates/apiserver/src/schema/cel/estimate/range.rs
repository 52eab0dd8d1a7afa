//! Ranges of sizes and costs, whose operations do not overflow.

use super::super::cost::scale;

/// The least and the greatest size or cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) const UNKNOWN: Range = Range {
        min: 0,
        max: u64::MAX,
    };

    pub(super) const fn new(min: u64, max: u64) -> Range {
        Range { min, max }
    }

    pub(super) const fn fixed(value: u64) -> Range {
        Range::new(value, value)
    }

    pub(super) fn add(self, other: Range) -> Range {
        Range {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn multiply(self, other: Range) -> Range {
        Range {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Multiplies by a factor, and rounds up.
    pub(super) fn scale(self, factor: f64) -> Range {
        Range {
            min: scale(self.min, factor),
            max: scale(self.max, factor),
        }
    }

    pub(super) fn union(self, other: Range) -> Range {
        Range {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}
