//! Draws random choices from a seeded generator.
//!
//! The same seed yields the same choices on every machine.

use fastrand::Rng;

/// A random number generator with methods that draw choices.
///
/// [`chance`](Choose::chance) and [`subset`](Choose::subset) consume the same random numbers for every
/// percentage. A different percentage therefore does not change the random numbers for later choices.
pub trait Choose {
    /// Returns the random number generator.
    fn random(&mut self) -> &mut Rng;

    /// Returns `true` with a probability of `percent` percent.
    fn chance(&mut self, percent: u32) -> bool {
        self.random().u32(0..100) < percent
    }

    /// Returns one of the values in `of`, each with the same probability.
    ///
    /// # Panics
    /// Panics if `of` is empty.
    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.random().usize(..of.len())]
    }

    /// Returns one of the values in `of`, with a probability proportional to its weight.
    ///
    /// # Panics
    /// Panics if the sum of the weights is 0.
    fn weighted<T: Copy>(&mut self, of: &[(u32, T)]) -> T {
        let sum = of.iter().map(|(weight, _)| weight).sum();
        let mut at = self.random().u32(0..sum);
        for (weight, choice) in of {
            if at < *weight {
                return *choice;
            }
            at -= weight;
        }
        unreachable!("{at} is less than the sum of all weights")
    }

    /// Returns a random subset of the values in `of`; includes each value with its probability in percent.
    fn subset<T: Copy>(&mut self, of: &[(u32, T)]) -> Vec<T> {
        let on = of.iter().filter(|(percent, _)| self.chance(*percent));
        on.map(|(_, value)| *value).collect()
    }
}

impl Choose for Rng {
    fn random(&mut self) -> &mut Rng {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choices_of_a_seed_never_change() {
        let mut random = Rng::with_seed(7);
        let ones: Vec<_> = (0..8).map(|_| *random.one(&[1, 2, 3])).collect();
        let weighted: Vec<_> = (0..8)
            .map(|_| random.weighted(&[(1, 'a'), (9, 'b')]))
            .collect();
        assert_eq!(ones, [3, 1, 3, 2, 1, 1, 3, 1]);
        assert_eq!(weighted, ['b', 'b', 'b', 'a', 'b', 'a', 'b', 'b']);
        assert_eq!(random.subset(&[(0, 'a'), (100, 'b')]), ['b']);
    }
}
