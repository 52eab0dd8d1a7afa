//! Which seeds: a range, the fixed set, or fresh ones.

use std::{collections::BTreeMap, ops::Range, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::component::COMPONENTS;

/// The file of the fixed set, in the workspace.
pub(crate) const FILE: &str = "verify/differential/seeds.toml";

/// So many fresh seeds follow from a text.
const FRESH: u64 = 500;

/// The seeds that every run is judged by.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fixed {
    /// For every component.
    all: String,
    /// By component, those that were found by fresh seeds.
    #[serde(default)]
    joined: BTreeMap<String, Vec<u64>>,
}

impl Fixed {
    /// Reads the file.
    ///
    /// # Errors
    /// It is not there, or does not say what it must.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
        Self::parse(&text).context(FILE)
    }

    fn parse(text: &str) -> Result<Self> {
        let fixed: Self = toml::from_str(text)?;
        range(&fixed.all).map_err(anyhow::Error::msg)?;
        for name in fixed.joined.keys() {
            let known = COMPONENTS.iter().any(|component| component.name == name);
            ensure!(known, "there is no component {name}");
        }
        Ok(fixed)
    }

    /// Those of a component.
    pub(crate) fn of(&self, component: &str) -> Vec<u64> {
        let all = range(&self.all).expect("the range was read before");
        let joined = self.joined.get(component).into_iter().flatten().copied();
        all.chain(joined).collect()
    }
}

/// Reads `A..B`.
///
/// # Errors
/// It is no such range, or an empty one.
pub(crate) fn range(text: &str) -> Result<Range<u64>, String> {
    let wanted = || format!("{text:?} is not A..B with A less than B, for example 1..2001");
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
        for wrong in ["", "5", "1..", "..5", "5..5", "6..5", "a..b"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_component_has_the_seeds_of_all_and_those_that_joined_it() {
        let fixed = Fixed::parse("all = \"1..3\"\n[joined]\nindexer = [77]").unwrap();
        assert_eq!(fixed.of("indexer"), [1, 2, 77]);
        assert_eq!(fixed.of("workqueue"), [1, 2]);
        assert!(Fixed::parse("all = \"1..3\"\n[joined]\nindex = [77]").is_err());
        assert!(Fixed::parse("all = \"3..1\"").is_err());
    }

    #[test]
    fn fresh_seeds_are_others_for_another_commit_and_never_fixed_ones() {
        assert_eq!(fresh("c1302e3"), fresh("c1302e3"));
        assert_ne!(fresh("c1302e3"), fresh("2de0d49"));
        assert!(fresh("c1302e3").iter().all(|seed| *seed >= 1_000_000));
    }
}
