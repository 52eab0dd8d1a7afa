//! Represents JSON numbers in the types into which Kubernetes decodes them.

use std::fmt;

use serde_json::Value;

use crate::quote::go_float;

/// Greatest integer that a `float64` can represent with all smaller ones (`maxJSONFloat`).
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// Relative error of a quotient that counts as an integer (`epsilon`).
const EPSILON: f64 = 1e-9;

/// A JSON number, in the type into which Kubernetes decodes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

// === impl Number ===

impl Number {
    pub(super) fn of(number: &serde_json::Number) -> Number {
        match number.as_i64() {
            Some(integer) => Number::Integer(integer),
            None => Number::Float(number.as_f64().unwrap_or(f64::INFINITY)),
        }
    }

    pub(super) fn to_value(self) -> Value {
        match self {
            Number::Integer(integer) => Value::from(integer),
            Number::Float(float) => Value::from(float),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "as in Go")]
    pub(super) fn as_float(self) -> f64 {
        match self {
            Number::Integer(integer) => integer as f64,
            Number::Float(float) => float,
        }
    }
}

/// Formats the number as Go's `%v`.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(integer) => write!(f, "{integer}"),
            Number::Float(float) => f.write_str(&go_float(*float)),
        }
    }
}

/// Returns a number without its fraction, as Go converts it on x86-64: a number beyond the range of `i64` becomes
/// the minimum.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(super) fn whole_part(float: f64) -> i64 {
    let limit = 2f64.powi(63);
    if (-limit..limit).contains(&float) {
        float as i64
    } else {
        i64::MIN
    }
}

/// Returns whether a floating-point number counts as an integer (`IsFloat64AJSONInteger`).
///
/// As in Kubernetes, a positive number may be slightly above an integer.
pub(super) fn is_whole(float: f64) -> bool {
    if !(-EXACT_MAX..=EXACT_MAX).contains(&float) {
        return false;
    }
    let (whole, rest) = (float.trunc(), float.fract());
    rest == 0.0 || (whole > 0.0 && rest / (float + whole) < EPSILON)
}
