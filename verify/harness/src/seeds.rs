//! Selects the seeds that a verification program runs.
//!
//! The seeds are a range from the command line, the fixed seeds of a file, or fresh seeds derived from a
//! text. The same text always yields the same fresh seeds.

use std::ops::Range;

use anyhow::{Context as _, Result};
use clap::Args;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};

use crate::report::workspace;

/// Number of fresh seeds that are derived from one text.
const FRESH: u64 = 500;

/// Command-line options that select the seeds or the planted bugs to run. At least one option is required.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = true)]
pub struct Selection {
    /// Run the seeds from A up to, but not including, B
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub seeds: Option<Range<u64>>,
    /// Run the fixed seeds, which the program's seeds.toml lists
    #[arg(long)]
    pub fixed: bool,
    /// Run 500 seeds derived from this text, for example from the commit's id
    #[arg(long, value_name = "TEXT")]
    pub fresh: Option<String>,
    /// Insert each deliberate bug in turn, and check that this command finds it; the only value is `all`
    #[arg(long, value_parser = ["all"])]
    pub planted: Option<String>,
}

/// Command-line option that selected a set of seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `--seeds`: a range of seeds.
    Typed,
    /// `--fixed`: the seeds in the program's seed file.
    Fixed,
    /// `--fresh`: the seeds derived from a text.
    Fresh,
}

impl Selection {
    /// Returns the selected sets of seeds, each with the option that selected it.
    ///
    /// Calls `fixed` only if the option `--fixed` is set.
    ///
    /// # Errors
    /// Returns the error of `fixed`.
    pub fn sets(
        &self,
        fixed: impl FnOnce() -> Result<Vec<u64>>,
    ) -> Result<Vec<(Origin, Vec<u64>)>> {
        let typed = self.seeds.clone();
        let typed = typed.map(|seeds| (Origin::Typed, seeds.collect()));
        let fixed = self.fixed.then(fixed).transpose()?;
        let fixed = fixed.map(|seeds| (Origin::Fixed, seeds));
        let fresh = self.fresh.as_ref();
        let fresh = fresh.map(|text| (Origin::Fresh, self::fresh(text)));
        Ok(typed.into_iter().chain(fixed).chain(fresh).collect())
    }
}

/// The fixed seeds, as parsed from a program's file `seeds.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixed<J> {
    /// Range of seeds that every run with `--fixed` covers.
    #[serde(deserialize_with = "deserialize_range")]
    pub all: Range<u64>,
    /// Further seeds that every run with `--fixed` covers, because they found a defect in the past.
    ///
    /// `J` is a list of seeds, or a map from the tested component to a list of seeds.
    #[serde(default)]
    pub joined: J,
}

impl<J: DeserializeOwned + Default> Fixed<J> {
    /// Reads the seed file at the path `file` in the workspace.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or is malformed.
    pub fn read(file: &str) -> Result<Self> {
        let text = std::fs::read_to_string(workspace().join(file));
        let text = text.with_context(|| file.to_owned())?;
        toml::from_str(&text).with_context(|| file.to_owned())
    }
}

impl<J> Fixed<J> {
    /// Returns the seeds in the range [`all`](Self::all), followed by the seeds in the argument `joined`.
    pub fn and(&self, joined: &[u64]) -> Vec<u64> {
        self.all.clone().chain(joined.iter().copied()).collect()
    }
}

fn deserialize_range<'de, D: Deserializer<'de>>(from: D) -> Result<Range<u64>, D::Error> {
    range(&String::deserialize(from)?).map_err(D::Error::custom)
}

/// Parses a range of seeds in the form `A..B`, which excludes B.
///
/// # Errors
/// Returns an error if the text does not have this form, or if the range is empty.
pub fn range(text: &str) -> Result<Range<u64>, String> {
    let wanted = || format!("{text:?} is not A..B with A less than B, for example 1..51");
    let (from, to) = text.split_once("..").ok_or_else(wanted)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wanted());
    let seeds = number(from)?..number(to)?;
    if seeds.is_empty() {
        return Err(wanted());
    }
    Ok(seeds)
}

/// Derives one seed from a text. The same text always yields the same seed.
pub fn hash(text: &str) -> u64 {
    // FNV-1a, because the hashes of a library can change between its versions.
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Derives 500 consecutive seeds from a text. The same text always yields the same seeds.
pub fn fresh(text: &str) -> Vec<u64> {
    // The seeds have at most 12 digits, and are greater than the seeds of a fixed range.
    let begin = 1_000_000 + hash(text) % 1_000_000_000 * FRESH;
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
    fn a_file_of_fixed_seeds_has_a_range_and_joined_seeds() {
        let fixed: Fixed<Vec<u64>> = toml::from_str("all = \"1..3\"\njoined = [77]").unwrap();
        assert_eq!(fixed.and(&fixed.joined), [1, 2, 77]);
        let fixed: Fixed<Vec<u64>> = toml::from_str("all = \"1..3\"").unwrap();
        assert_eq!(fixed.and(&fixed.joined), [1, 2]);
        for wrong in [
            "all = \"3..1\"",
            "joined = [1]",
            "all = \"1..3\"\nsome = [1]",
        ] {
            assert!(toml::from_str::<Fixed<Vec<u64>>>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fresh_seeds_differ_between_commits_and_from_fixed_ones() {
        assert_eq!(fresh("c1302e3"), fresh("c1302e3"));
        assert_ne!(fresh("c1302e3"), fresh("2de0d49"));
        assert!(fresh("c1302e3").iter().all(|seed| *seed >= 1_000_000));
    }

    #[test]
    fn the_seeds_of_a_text_never_change() {
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(
            fresh("a")[0],
            1_000_000 + 0xaf63_dc4c_8601_ec8c % 1_000_000_000 * 500
        );
    }
}
