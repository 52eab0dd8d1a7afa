//! Decodes the values whose text in JSON determines the result: numbers, quantities, and numbers or texts.

use serde_json::{Number, Value};

use super::trail::{Family, Found, Mode, Trail};
use crate::quantity;

/// Maximum absolute value up to which an `f64` represents every integer exactly: 2^53.
const INTEGRAL_MAX: f64 = 9_007_199_254_740_992.0;

/// A type of which a value is decoded from its JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Byte,
    Int32,
    Int64,
    Double,
    IntOrString,
    Quantity,
}

impl Literal {
    /// Returns whether Go's type is a number.
    pub(super) fn is_number(self) -> bool {
        !matches!(self, Literal::IntOrString | Literal::Quantity)
    }

    /// Decodes the JSON text of a value. A value of a wrong type is read as it is.
    pub(super) fn decode(self, text: &str, trail: &mut Trail) -> Value {
        let is_text = text.starts_with('"');
        let decoded = match self {
            _ if text == "null" => None,
            Literal::Quantity => quantity(text, trail),
            Literal::IntOrString if is_text => None,
            _ => self.number(text, trail),
        };
        // The text nests too deep, if anything.
        decoded.unwrap_or_else(|| serde_json::from_str(text).unwrap_or_default())
    }

    /// Returns what Kubernetes' converter makes of a number: the integer that it equals, cut to the bits of its type.
    fn converted(self, text: &str) -> Option<Value> {
        let number = text.parse().ok().or_else(|| integral(text))?;
        match self {
            #[expect(clippy::cast_possible_truncation, reason = "as Go converts it")]
            Literal::Int32 => Some(Value::from(number as i32)),
            Literal::Int64 => Some(Value::from(number)),
            Literal::IntOrString => i32::try_from(number).ok().map(Value::from),
            Literal::Byte | Literal::Double | Literal::Quantity => None,
        }
    }

    fn number(self, text: &str, trail: &mut Trail) -> Option<Value> {
        let found = match text.as_bytes().first()? {
            b'"' => Found::Text,
            b'{' => Found::Object,
            b'[' => Found::Array,
            b't' | b'f' => Found::Bool,
            _ => Found::Unfit(text),
        };
        if trail.mode == Mode::Convert
            && let Some(converted) = self.converted(text)
        {
            return Some(converted);
        }
        let (expected, number) = match self {
            Literal::Int32 | Literal::IntOrString => {
                ("int32", text.parse::<i32>().ok().map(Value::from))
            }
            Literal::Double => ("float64", double(text)),
            Literal::Byte => ("uint8", text.parse::<u8>().ok().map(Value::from)),
            Literal::Int64 | Literal::Quantity => {
                ("int64", text.parse::<i64>().ok().map(Value::from))
            }
        };
        let number = number.filter(|_| matches!(found, Found::Unfit(_)));
        if number.is_none() {
            let family = match self {
                Literal::IntOrString => Family::Own,
                _ => Family::Simple,
            };
            trail.mismatch(found, expected, family);
        }
        number
    }
}

/// Returns an integer that is written with a fraction or an exponent.
fn integral(text: &str) -> Option<i64> {
    let number: f64 = text.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a number out of range has the nearest one, and Go defines none"
    )]
    (number.fract() == 0.0).then_some(number as i64)
}

/// Returns a number as Go writes it: without a fraction, it is an integer.
fn double(text: &str) -> Option<Value> {
    let number: f64 = text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())?;
    if number.fract() == 0.0 && number.abs() <= INTEGRAL_MAX {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is integral and within 54 bits"
        )]
        return Some(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

/// Decodes a text or a number as a quantity. As in Go, escapes in a text have no meaning.
fn quantity(text: &str, trail: &mut Trail) -> Option<Value> {
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let canonical = quantity::canonical(inner.unwrap_or(text).trim());
    let canonical = canonical.map_err(|why| trail.malformed(why.to_owned()));
    canonical.ok().map(Value::String)
}
