//! [`Counts`]: counts what a run has seen, and reports required things that it has seen too rarely.

use std::{borrow::Borrow, collections::BTreeMap, fmt};

use crate::seeds::Origin;

/// Number of fixed runs per required occurrence of each required thing.
const ONCE_PER: usize = 20;

/// The number of occurrences of each thing.
#[derive(Clone, Debug)]
pub struct Counts<T>(BTreeMap<T, usize>);

impl<T> Default for Counts<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Counts<T> {
    /// Counts a thing once.
    pub fn count(&mut self, what: T) {
        self.add(what, 1);
    }

    /// Counts a thing several times.
    pub fn add(&mut self, what: T, times: usize) {
        *self.0.entry(what).or_default() += times;
    }

    /// Adds the counts of another run.
    pub fn add_all(&mut self, other: Self) {
        for (what, times) in other.0 {
            self.add(what, times);
        }
    }

    /// Returns how often a thing was seen.
    pub fn of<Q: Ord + ?Sized>(&self, what: &Q) -> usize
    where
        T: Borrow<Q>,
    {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// Iterates over everything that was seen, with its count, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&T, usize)> {
        self.0.iter().map(|(what, times)| (what, *times))
    }

    /// Returns a line for each of the required things that was seen less often than `least`.
    pub fn rare<'a>(&self, required: impl IntoIterator<Item = &'a T>, least: usize) -> Vec<String>
    where
        T: fmt::Display + 'a,
    {
        let times = required.into_iter().map(|what| (what, self.of(what)));
        let rare = times.filter(|(_, times)| *times < least);
        rare.map(|(what, times)| format!("{what}: seen {times} times, {least} required"))
            .collect()
    }
}

/// Returns the required number of occurrences of each required thing in this number of runs.
///
/// The fixed seeds prove that the generator draws everything often enough, because their counts change only
/// with the code. The counts of other seeds also vary by chance, so at most one occurrence is required there.
pub fn required(origin: Origin, runs: usize) -> usize {
    let required = runs / ONCE_PER;
    match origin {
        Origin::Fixed => required,
        Origin::Typed | Origin::Fresh => required.min(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_seen_too_rarely_are_reported() {
        let mut counts = Counts::default();
        counts.add("delete", 24);
        counts.count("write");
        let mut more = Counts::default();
        more.add("write", 24);
        counts.add_all(more);
        let things = ["delete", "list", "write"];
        let rare = counts.rare(&things, required(Origin::Fixed, 500));
        assert_eq!(
            rare,
            [
                "delete: seen 24 times, 25 required",
                "list: seen 0 times, 25 required"
            ]
        );
        for origin in [Origin::Typed, Origin::Fresh] {
            let rare = counts.rare(&things, required(origin, 500));
            assert_eq!(rare, ["list: seen 0 times, 1 required"]);
            assert!(counts.rare(&things, required(origin, 19)).is_empty());
        }
    }
}
