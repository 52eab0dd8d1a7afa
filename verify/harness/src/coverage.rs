//! Counts the behaviors that a verification program observes, and reports each required behavior that it
//! has not observed often enough.
//!
//! A program executes many runs with generated inputs. A behavior is, for example, a fault that affected a
//! request. Each program defines its own behaviors.

use std::{borrow::Borrow, collections::BTreeMap, fmt};

use crate::seeds::Origin;

/// Number of runs with fixed seeds per required occurrence of a behavior.
///
/// For example, each required behavior must occur at least 25 times in 500 runs.
const ONCE_PER: usize = 20;

/// Number of occurrences of each behavior.
#[derive(Clone, Debug)]
pub struct Counts<T>(BTreeMap<T, usize>);

impl<T> Default for Counts<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Counts<T> {
    /// Adds one occurrence of a behavior.
    pub fn count(&mut self, what: T) {
        self.add(what, 1);
    }

    /// Adds `times` occurrences of a behavior.
    pub fn add(&mut self, what: T, times: usize) {
        *self.0.entry(what).or_default() += times;
    }

    /// Adds the counts in `other` to these counts.
    pub fn add_all(&mut self, other: Self) {
        for (what, times) in other.0 {
            self.add(what, times);
        }
    }

    /// Returns the number of occurrences of a behavior; 0 if it has not occurred.
    pub fn of<Q: Ord + ?Sized>(&self, what: &Q) -> usize
    where
        T: Borrow<Q>,
    {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// Returns an iterator over the behaviors and their counts, sorted by behavior.
    pub fn iter(&self) -> impl Iterator<Item = (&T, usize)> {
        self.0.iter().map(|(what, times)| (what, *times))
    }

    /// Returns a line for each behavior in `required` that occurred fewer than `least` times.
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

/// Returns how often each required behavior must occur in `runs` runs.
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
