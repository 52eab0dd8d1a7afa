//! Checks durations.
//!
//! A text is a duration in one of two ways:
//! - Go's `time.ParseDuration` accepts it, as `1h30m` or `-1.5h`.
//! - It contains a whole number with a unit, as `2 days`. Other characters are ignored.

/// Units of Go's durations, with their length in nanoseconds.
const GO_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),  // micro sign
    ("\u{3bc}s", 1_000), // Greek letter mu
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
];

/// Magnitude of the shortest `time.Duration`, in nanoseconds. The longest one is shorter by 1.
const MAGNITUDE_MAX: u64 = 1 << 63;

/// Units of the second kind of durations.
const UNITS: &[&str] = &[
    "ns", "us", "\u{b5}s", "ms", "s", "m", "h", "hr", "d", "w", "wk",
];

/// Starts of further units of the second kind of durations.
const UNIT_STARTS: &[&str] = &[
    "nano", "micro", "milli", "sec", "min", "hour", "day", "week",
];

/// Returns whether `text` is a duration.
pub(super) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || contains_duration(text)
}

/// Returns whether Go's `time.ParseDuration` accepts `text`.
fn is_go_duration(text: &str) -> bool {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return true;
    }
    let magnitude = go_magnitude(unsigned);
    magnitude.is_some_and(|magnitude| negative || magnitude < MAGNITUDE_MAX)
}

/// Returns the length of a duration without sign, at most [`MAGNITUDE_MAX`].
fn go_magnitude(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut magnitude: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after.find(|next: char| next == '.' || next.is_ascii_digit());
        let (name, after) = after.split_at(end.unwrap_or(after.len()));
        let (_, unit) = GO_UNITS.iter().find(|(unit, _)| *unit == name)?;
        let part = go_part(whole, fraction, *unit)?;
        // Go adds without a check for overflow: twice the maximum is 0.
        magnitude = magnitude.wrapping_add(part);
        if magnitude > MAGNITUDE_MAX {
            return None;
        }
        rest = after;
    }
    Some(magnitude)
}

/// Returns the length of `whole.fraction` units, at most [`MAGNITUDE_MAX`].
fn go_part(whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    let whole = match whole {
        "" => 0,
        _ => whole.parse::<u64>().ok()?,
    };
    let whole = whole.checked_mul(unit)?;
    let sum = whole.checked_add(go_fraction(fraction, unit))?;
    (sum <= MAGNITUDE_MAX).then_some(sum)
}

/// Returns the length of `0.fraction` units, with the rounding of Go.
fn go_fraction(fraction: &str, unit: u64) -> u64 {
    let mut digits: u64 = 0;
    let mut scale = 1.0;
    for digit in fraction.bytes() {
        let next = digits.checked_mul(10);
        let next = next.and_then(|next| next.checked_add(u64::from(digit - b'0')));
        match next {
            Some(next) if next <= MAGNITUDE_MAX => digits = next,
            // Go ignores the remaining digits.
            _ => break,
        }
        scale *= 10.0;
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "Go calculates with the same precision; the result is not negative and at most one unit"
    )]
    let length = (digits as f64 * (unit as f64 / scale)) as u64;
    length
}

/// Returns whether `text` contains a number with a unit, as `2 days`.
///
/// The result is false if a number before a word is above the maximum of a signed 64-bit integer.
fn contains_duration(text: &str) -> bool {
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|next: char| next.is_ascii_digit()) {
        let (number, after) = split_digits(&rest[start..]);
        let after = after.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let end = after.find(|next: char| !next.is_ascii_alphabetic() && next != '\u{b5}');
        let (word, after) = after.split_at(end.unwrap_or(after.len()));
        if !word.is_empty() {
            if number.parse::<i64>().is_err() {
                return false;
            }
            found |= is_unit(&word.to_ascii_lowercase());
        }
        rest = after;
    }
    found
}

fn is_unit(word: &str) -> bool {
    UNITS.contains(&word) || UNIT_STARTS.iter().any(|start| word.starts_with(start))
}

/// Splits `text` after the ASCII digits at its start.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|next: char| !next.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}
