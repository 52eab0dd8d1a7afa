//! Kubernetes' resource quantities, such as `100m` or `2Gi`.
//!
//! Guarantees: the accepted texts, the canonical texts and the errors are those of Kubernetes, with one exception:
//! a quantity beyond 1.7e29 counts as 1.7e29, and is its own canonical text, while Kubernetes keeps any magnitude.

use std::cmp::Ordering;

/// The decimal exponent of the smallest unit.
const NANO: i32 = -9;

/// The decimal exponent to which quantities of resources are rounded.
const MILLI: i32 = -3;

/// The suffixes of the powers of 1000 from -3 on.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

const FORMAT_WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";

/// A quantity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    amount: Amount,
    /// Whether the quantity is a sum or difference. Kubernetes does not compare another value with it.
    pub(crate) is_computed: bool,
}

/// The two forms of an amount in Kubernetes. Only the first form can be an integer.
#[derive(Clone, Copy, Debug)]
enum Amount {
    /// The value times a power of ten.
    Scaled(i64, i32),
    Nanos(i128),
}

/// Returns the text that Kubernetes stores for a quantity, such as `1` for `1000m`.
///
/// # Errors
///
/// Returns the message of Kubernetes about a text that is not a quantity.
pub(crate) fn canonical(text: &str) -> Result<String, &'static str> {
    let amount = parse(text)?;
    let (whole, fraction, suffix) = split(text);
    let unit = unit(suffix).ok_or(SUFFIX)?;
    if let Amount::Scaled(_, scale) = amount
        && is_kept((whole, fraction), unit, scale)
    {
        return Ok(text.to_owned());
    }
    let (number, exponent) = match amount {
        Amount::Scaled(value, scale) => (i128::from(value), scale),
        Amount::Nanos(i128::MAX | i128::MIN) => return Ok(text.to_owned()),
        Amount::Nanos(nanos) => (nanos, NANO),
    };
    let canonical = match unit {
        Unit::Two(_) => binary(number, exponent),
        Unit::Ten(_) => None,
    };
    let canonical = canonical.or_else(|| decimal(number, exponent, is_exponent(suffix)));
    Ok(canonical.unwrap_or_else(|| text.to_owned()))
}

/// Returns the canonical text of a quantity, rounded up to thousandths, or `None` if nothing is to be rounded.
///
/// Rounding increases the absolute value.
pub(crate) fn rounded_up(text: &str) -> Option<String> {
    let (number, exponent) = match parse(text).ok()? {
        Amount::Scaled(value, scale) => (i128::from(value), scale),
        Amount::Nanos(nanos) => (nanos, NANO),
    };
    let digits = u32::try_from(MILLI.checked_sub(exponent)?).ok()?;
    let factor = 10_i128.checked_pow(digits).filter(|factor| *factor > 1)?;
    let rest = number % factor;
    if rest == 0 {
        return None;
    }
    let (_, _, suffix) = split(text);
    let rounded = number / factor + rest.signum();
    decimal(rounded, MILLI, is_exponent(suffix))
}

fn is_exponent(suffix: &str) -> bool {
    suffix.len() > 1 && suffix.starts_with(['e', 'E']) && !suffix.ends_with('i')
}

/// Returns whether Kubernetes keeps a text as it is, because it looks canonical.
///
/// So `+3` and `00012` are kept.
fn is_kept((whole, fraction): (&str, &str), unit: Unit, scale: i32) -> bool {
    let digits = match whole {
        "" => format!("0{fraction}"),
        whole => format!("{whole}{fraction}"),
    };
    match unit {
        Unit::Two(_) => digits.parse().is_ok_and(|value: i64| value % 8 != 0),
        Unit::Ten(_) => scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
    }
}

/// Returns a quantity with a binary suffix, unless it is small or not an integer.
fn binary(number: i128, exponent: i32) -> Option<String> {
    let factor = 10_i128.checked_pow(exponent.unsigned_abs())?;
    let mut number = if exponent < 0 {
        (number % factor == 0).then_some(number / factor)?
    } else {
        number.checked_mul(factor)?
    };
    if number.abs() < 1024 {
        return None;
    }
    let mut power = 0;
    while number % 1024 == 0 {
        number /= 1024;
        power += 1;
    }
    let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(power)?;
    Some(format!("{number}{suffix}"))
}

/// Returns a quantity with a decimal suffix or exponent, or `None` if the number is too large.
fn decimal(mut number: i128, mut exponent: i32, is_exponent: bool) -> Option<String> {
    if number == 0 {
        return Some("0".to_owned());
    }
    while number % 10 == 0 {
        number /= 10;
        exponent = exponent.checked_add(1)?;
    }
    while exponent % 3 != 0 {
        number = number.checked_mul(10)?;
        exponent = exponent.checked_sub(1)?;
    }
    let suffix = match exponent {
        0 => String::new(),
        _ if is_exponent => format!("e{exponent}"),
        _ => {
            let index = usize::try_from(exponent / 3 + 3).ok();
            // Kubernetes shows `1000E` without a suffix.
            let known = index.and_then(|index| DECIMAL.get(index));
            known.copied().unwrap_or_default().to_owned()
        }
    };
    Some(format!("{number}{suffix}"))
}

impl Quantity {
    pub(crate) fn parse(text: &str) -> Result<Quantity, &'static str> {
        let amount = parse(text)?;
        let is_computed = false;
        Ok(Quantity {
            amount,
            is_computed,
        })
    }

    pub(crate) fn from_integer(value: i64) -> Quantity {
        let amount = Amount::Scaled(value, 0);
        let is_computed = false;
        Quantity {
            amount,
            is_computed,
        }
    }

    pub(crate) fn compare(self, other: Quantity) -> Ordering {
        self.nanos().cmp(&other.nanos())
    }

    pub(crate) fn sign(self) -> i64 {
        i64::try_from(self.nanos().signum()).unwrap_or_default()
    }

    pub(crate) fn add(self, other: Quantity) -> Quantity {
        let sum = match (self.amount, other.amount) {
            (Amount::Scaled(one, scale), Amount::Scaled(other, other_scale)) => {
                add_scaled((one, scale), (other, other_scale))
            }
            _ => None,
        };
        let nanos = || Amount::Nanos(self.nanos().saturating_add(other.nanos()));
        let amount = sum.map_or_else(nanos, |(value, scale)| Amount::Scaled(value, scale));
        let is_computed = true;
        Quantity {
            amount,
            is_computed,
        }
    }

    pub(crate) fn negate(self) -> Quantity {
        let amount = match self.amount {
            Amount::Scaled(value, scale) => match value.checked_neg() {
                Some(value) => Amount::Scaled(value, scale),
                None => Amount::Nanos(self.nanos().saturating_neg()),
            },
            Amount::Nanos(nanos) => Amount::Nanos(nanos.saturating_neg()),
        };
        Quantity { amount, ..self }
    }

    /// Returns the value if Kubernetes stores it as an integer: not `1000m`.
    pub(crate) fn as_integer(self) -> Option<i64> {
        match self.amount {
            Amount::Scaled(value, scale @ 0..) => scale_up(value, scale),
            _ => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the result is an approximation")]
    pub(crate) fn as_float(self) -> f64 {
        let (value, scale) = match self.amount {
            Amount::Scaled(value, scale) => (value as f64, scale),
            Amount::Nanos(nanos) => (nanos as f64, NANO),
        };
        value * format!("1e{scale}").parse::<f64>().unwrap_or(f64::INFINITY)
    }

    fn nanos(self) -> i128 {
        match self.amount {
            Amount::Nanos(nanos) => nanos,
            Amount::Scaled(value, scale) => {
                saturating_scale(value.into(), scale.saturating_sub(NANO))
            }
        }
    }
}

fn add_scaled((one, scale): (i64, i32), (other, other_scale): (i64, i32)) -> Option<(i64, i32)> {
    if other == 0 {
        return Some((one, scale));
    }
    if one == 0 {
        return Some((other, other_scale));
    }
    let common = scale.min(other_scale);
    let (one, other) = (
        scale_up(one, scale.saturating_sub(common))?,
        scale_up(other, other_scale.saturating_sub(common))?,
    );
    Some((one.checked_add(other)?, common))
}

fn scale_up(value: i64, digits: i32) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    let factor = 10_i64.checked_pow(u32::try_from(digits).ok()?)?;
    value.checked_mul(factor)
}

fn saturating_scale(value: i128, digits: i32) -> i128 {
    let factor = u32::try_from(digits)
        .ok()
        .and_then(|digits| 10_i128.checked_pow(digits));
    match factor {
        _ if value == 0 => 0,
        Some(factor) => value.saturating_mul(factor),
        None if value < 0 => i128::MIN,
        None => i128::MAX,
    }
}

/// A suffix as a power of two or ten.
#[derive(Clone, Copy)]
enum Unit {
    Two(u32),
    Ten(i32),
}

fn unit(suffix: &str) -> Option<Unit> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(index) = DECIMAL.iter().position(|one| *one == suffix) {
        return i32::try_from(index)
            .ok()
            .map(|index| Unit::Ten(index * 3 - 9));
    }
    if let Some(index) = binary.iter().position(|one| *one == suffix) {
        return u32::try_from(index)
            .ok()
            .map(|index| Unit::Two(index * 10 + 10));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let exponent: i64 = exponent.parse().ok()?;
    i32::try_from(exponent).ok().map(Unit::Ten)
}

fn parse(text: &str) -> Result<Amount, &'static str> {
    if text.is_empty() {
        return Err(FORMAT_WRONG);
    }
    let is_negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction, suffix) = split(text);
    let has_digits =
        unsigned.starts_with(|first: char| first.is_ascii_digit()) || !fraction.is_empty();
    let letters = suffix.trim_start_matches(|one| "eEinumkKMGTP".contains(one));
    let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if exponent.bytes().any(|one| !one.is_ascii_digit()) {
        return Err(FORMAT_WRONG);
    }
    let unit = unit(suffix).ok_or(SUFFIX)?;
    let count = i32::try_from(whole.len().max(1) + fraction.len()).unwrap_or(i32::MAX);
    if let Some(amount) = parse_scaled(whole, fraction, unit, count)? {
        let Amount::Scaled(value, scale) = amount else {
            return Ok(amount);
        };
        return Ok(Amount::Scaled(
            if is_negative { -value } else { value },
            scale,
        ));
    }
    if !has_digits {
        return Err(NUMERIC);
    }
    let nanos = parse_nanos(whole, fraction, unit);
    Ok(Amount::Nanos(if is_negative { -nanos } else { nanos }))
}

/// Returns an amount with few digits, or `None` if there are too many.
fn parse_scaled(
    whole: &str,
    fraction: &str,
    unit: Unit,
    count: i32,
) -> Result<Option<Amount>, &'static str> {
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let (precision, scale, factor) = match unit {
        Unit::Ten(exponent) => (18 - count, exponent.saturating_sub(places), 1),
        Unit::Two(exponent) if fraction.is_empty() => {
            let digits = i32::try_from(exponent * 3 / 10).unwrap_or(i32::MAX);
            (14 - count - digits, 0, 1_i64 << exponent)
        }
        Unit::Two(_) => return Ok(None),
    };
    if precision < 0 || scale < NANO {
        return Ok(None);
    }
    let digits = if whole.is_empty() {
        format!("0{fraction}")
    } else {
        format!("{whole}{fraction}")
    };
    let value: i64 = digits.parse().map_err(|_| NUMERIC)?;
    Ok(value
        .checked_mul(factor)
        .map(|value| Amount::Scaled(value, scale)))
}

/// Returns the amount rounded up to nanos.
fn parse_nanos(whole: &str, fraction: &str, unit: Unit) -> i128 {
    // More digits change only the rounding, by less than the limit of the module.
    let exponent = match unit {
        Unit::Ten(exponent) => exponent,
        Unit::Two(_) => 0,
    };
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let mut digits = format!("{whole}{fraction}");
    let mut shift = exponent.saturating_sub(places).saturating_sub(NANO);
    let mut is_inexact = false;
    while shift < 0 && !digits.is_empty() {
        is_inexact |= digits.pop() != Some('0');
        shift += 1;
    }
    let value = match digits.trim_start_matches('0') {
        "" => 0,
        digits => digits.parse::<i128>().unwrap_or(i128::MAX),
    };
    let nanos = saturating_scale(value, shift.max(0)).saturating_add(is_inexact.into());
    match unit {
        Unit::Ten(_) => nanos,
        Unit::Two(exponent) => {
            let max = i128::from(i64::MAX) * 1_000_000_000;
            nanos.saturating_mul(1 << exponent).min(max)
        }
    }
}

/// Returns the digits before and after the point, without leading zeros, and the suffix.
fn split(text: &str) -> (&str, &str, &str) {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = split_digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    (whole.trim_start_matches('0'), fraction, suffix)
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|one: char| !one.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::{Quantity, canonical};

    /// Texts and, after a tab, what `resource.Quantity` writes for them as JSON, or `!` and its error.
    const CANONICAL: &str = include_str!("quantity/examples.tsv");

    #[test]
    fn canonical_texts_are_those_of_kubernetes() {
        for line in CANONICAL.lines() {
            let (text, expected) = line.split_once('\t').unwrap();
            let found = canonical(text).unwrap_or_else(|error| format!("!{error}"));
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(CANONICAL.lines().count(), 1503);
    }

    #[test]
    fn equal_quantities_have_many_texts() {
        let parse = |text| Quantity::parse(text).unwrap();
        for (one, other) in [
            ("1000m", "1"),
            ("0.2G", "200M"),
            ("1Ki", "1024"),
            ("1.5Gi", "1536Mi"),
            ("2e3", "2k"),
            ("-1E", "-1000P"),
            ("0.0000000001", "1n"),
            ("+00012", "12"),
        ] {
            assert!(parse(one).compare(parse(other)).is_eq(), "{one} {other}");
        }
        assert_eq!(parse("2k").as_integer(), Some(2000));
        assert_eq!(parse("1000m").as_integer(), None);
        assert_eq!(parse("1e1000").as_integer(), None);
        assert_eq!(parse("50k").add(parse("20")).as_integer(), Some(50_020));
    }

    #[test]
    fn texts_that_are_no_quantity_are_rejected() {
        for text in ["", "1 ", "1Kib", "1x", "1.2.3", "--1", "Mi1!"] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
    }
}
