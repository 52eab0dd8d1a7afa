//! Which seeds: a range, the fixed set, or fresh ones.

use std::{ops::Range, path::Path};

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The file of the fixed set, in the workspace.
pub(crate) const FILE: &str = "verify/simulation/seeds.toml";

/// So many fresh seeds follow from a text.
const FRESH: u64 = 500;

/// The seeds that every run is judged by.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixed {
    all: String,
    /// Those that were found by fresh seeds.
    #[serde(default)]
    joined: Vec<u64>,
}

/// Reads the fixed set.
///
/// # Errors
/// The file is not there, or does not say what it must.
pub(crate) fn fixed(root: &Path) -> Result<Vec<u64>> {
    let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
    let fixed: Fixed = toml::from_str(&text).context(FILE)?;
    let all = range(&fixed.all)
        .map_err(anyhow::Error::msg)
        .context(FILE)?;
    Ok(all.chain(fixed.joined).collect())
}

/// Reads `A..B`.
///
/// # Errors
/// It is no such range, or an empty one.
pub(crate) fn range(text: &str) -> Result<Range<u64>, String> {
    let wanted = || format!("{text:?} is not A..B with A less than B, for example 1..51");
    let (from, to) = text.split_once("..").ok_or_else(wanted)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wanted());
    let seeds = number(from)?..number(to)?;
    if seeds.is_empty() {
        return Err(wanted());
    }
    Ok(seeds)
}

/// Seeds that follow from a text, such as a commit's id: others for each, and the same each time.
pub(crate) fn fresh(text: &str) -> Vec<u64> {
    // FNV-1a, which is short and does not change between versions of a library.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // Short enough to be typed, and far from the fixed ones.
    let begin = 1_000_000 + hash % 1_000_000_000 * FRESH;
    (begin..begin + FRESH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_without_its_end() {
        assert_eq!(range("1..51"), Ok(1..51));
        for wrong in ["", "5", "1..", "..5", "5..5", "6..5", "a..b", "1..=5"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fresh_seeds_are_others_for_another_commit_and_never_fixed_ones() {
        assert_eq!(fresh("c1302e3"), fresh("c1302e3"));
        assert_ne!(fresh("c1302e3"), fresh("2de0d49"));
        assert!(fresh("c1302e3").iter().all(|seed| *seed >= 1_000_000));
    }
}
