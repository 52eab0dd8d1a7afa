//! Stores the numbers that the measured programs printed, by case and field, and calculates their medians.
//!
//! Guarantees: a field that a program prints as `null` or does not print has no samples.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

/// The measured numbers of all runs, by name of the case and name of the field.
#[derive(Debug, Default)]
pub(crate) struct Samples(BTreeMap<(String, String), Vec<f64>>);

/// Minimum, median and maximum of one field in all runs of one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Samples {
    /// Reads the samples of an earlier run from `log`, the standard error of that run.
    ///
    /// A line `round …: NAME` starts the case `NAME`. Each later line that starts with two spaces contains a
    /// JSON object with the measured numbers of the case.
    ///
    /// # Errors
    /// Returns an error if a line that starts with two spaces within a case does not contain a JSON object.
    pub(crate) fn of_log(log: &str) -> Result<Self> {
        let mut samples = Self::default();
        let mut case = "";
        for line in log.lines() {
            if let Some((_, name)) = line
                .strip_prefix("round ")
                .and_then(|rest| rest.split_once(": "))
            {
                case = name;
            } else if !case.is_empty()
                // Cargo's output is indented too, but ends before the first case.
                && let Some(figures) = line.strip_prefix("  ")
            {
                samples.add(case, figures)?;
            }
        }
        Ok(samples)
    }

    /// Adds the numeric fields of `line`, a JSON object, to the samples of `case`.
    ///
    /// # Errors
    /// Returns an error if the line is not a JSON object.
    pub(crate) fn add(&mut self, case: &str, line: &str) -> Result<()> {
        let fields: Map<String, Value> =
            serde_json::from_str(line).with_context(|| format!("not a line of figures: {line}"))?;
        for (field, value) in fields {
            if let Some(value) = value.as_f64() {
                self.0
                    .entry((case.to_owned(), field))
                    .or_default()
                    .push(value);
            }
        }
        Ok(())
    }

    pub(crate) fn spread(&self, case: &str, field: &str) -> Option<Spread> {
        let mut sorted = self.0.get(&(case.to_owned(), field.to_owned()))?.clone();
        sorted.sort_by(f64::total_cmp);
        Some(Spread {
            least: *sorted.first()?,
            median: median(&sorted)?,
            most: *sorted.last()?,
        })
    }

    pub(crate) fn median(&self, case: &str, field: &str) -> Option<f64> {
        self.spread(case, field).map(|spread| spread.median)
    }
}

/// Returns the median of `sorted`, which must be in ascending order.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(middle.checked_sub(1)?)?, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Samples {
        let mut samples = Samples::default();
        for value in values {
            samples.add("a", &format!(r#"{{"x": {value}}}"#)).unwrap();
        }
        samples
    }

    #[test]
    fn outliers_do_not_change_the_median() {
        assert_eq!(of(&[3.0, 100.0, 1.0]).median("a", "x"), Some(3.0));
        assert_eq!(of(&[4.0, 1.0, 100.0, 3.0]).median("a", "x"), Some(3.5));
        assert_eq!(of(&[7.0]).median("a", "x"), Some(7.0));
    }

    #[test]
    fn a_spread_has_the_minimum_and_the_maximum() {
        let spread = of(&[3.0, 100.0, 1.0]).spread("a", "x").unwrap();
        assert_eq!(
            (spread.least.to_bits(), spread.most.to_bits()),
            (1.0_f64.to_bits(), 100.0_f64.to_bits())
        );
    }

    #[test]
    fn a_field_that_was_not_measured_has_no_median() {
        let mut samples = of(&[1.0]);
        samples.add("a", r#"{"y": null, "z": "text"}"#).unwrap();
        for (case, field) in [("a", "y"), ("a", "z"), ("a", "w"), ("b", "x")] {
            assert_eq!(samples.median(case, field), None, "{case} {field}");
        }
    }

    #[test]
    fn the_log_of_an_interrupted_run_has_the_samples_so_far() {
        let log = "   Compiling ring v0.17.14\nround 1 of 2: ours, typed\ntoo old: the oldest is 7\n  {\"x\": 1}\nround 1 of 2: kube-rs\n  {\"x\": 5}\nround 2 of 2: ours, typed\n  {\"x\": 3}\nround 2 of 2: kube-rs\n";
        let samples = Samples::of_log(log).unwrap();
        assert_eq!(samples.median("ours, typed", "x"), Some(2.0));
        assert_eq!(samples.median("kube-rs", "x"), Some(5.0));
    }

    #[test]
    fn a_line_that_is_not_json_is_an_error_that_contains_it() {
        let error = of(&[]).add("a", "panicked").unwrap_err();
        assert_eq!(error.to_string(), "not a line of figures: panicked");
    }
}
