//! Validates numbers, as Kubernetes does with integers and floating-point numbers.

use crate::schema::Schema;
use crate::schema::number::{Number, is_whole, whole_part};
use crate::schema::outcome::{Outcome, Place};

/// The numbers that a schema accepts by its type and format.
#[derive(Clone, Copy)]
enum Range {
    Int32,
    Int64,
    Float32,
    Float64,
}

// === impl Range ===

impl Range {
    fn of(schema: &Schema) -> Range {
        match (schema.sole_type(), schema.format.as_str()) {
            ("integer", "int32") => Range::Int32,
            ("integer", _) => Range::Int64,
            ("number", "float") => Range::Float32,
            _ => Range::Float64,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range of a 32-bit number is checked"
    )]
    fn contains(self, number: Number) -> bool {
        // The range of an integer type with its upper limit, which is exclusive.
        let whole =
            |float: f64, limit: f64| float.fract() == 0.0 && (-limit..limit).contains(&float);
        match (self, number) {
            (Range::Int32, Number::Integer(integer)) => i32::try_from(integer).is_ok(),
            (Range::Int32, Number::Float(float)) => whole(float, 2f64.powi(31)),
            (Range::Int64, Number::Float(float)) => whole(float, 2f64.powi(63)),
            (Range::Float32, number) => (number.as_float() as f32).is_finite(),
            (Range::Int64, Number::Integer(_)) | (Range::Float64, _) => true,
        }
    }

    /// Returns the message about a number outside the range. `what` names the number.
    fn error(self, what: &str, path: &str) -> String {
        let name = match self {
            Range::Int32 => "integer with format int32",
            Range::Int64 => "integer (default format)",
            Range::Float32 => "number with format float",
            Range::Float64 => "number (default format)",
        };
        format!("{what} value must be of type {name} in {path}")
    }
}

// === impl Schema ===

impl Schema {
    /// Checks a number against `format`, `multipleOf`, `minimum` and `maximum`.
    pub(super) fn check_number(&self, place: Place<'_>, number: Number) -> Outcome {
        let mut outcome = Outcome::default();
        let range = Range::of(self);
        let check = |outcome: &mut Outcome, what: &str, number: Number| {
            let fits = range.contains(number);
            if !fits {
                outcome.general(place, self.range_error(range, what, place.path));
            }
            fits
        };
        check(&mut outcome, "Checked", number);
        // A limit that does not fit the type is compared as a floating-point number.
        let compared = |fits: bool| match number {
            Number::Integer(_) if fits => number,
            _ => Number::Float(number.as_float()),
        };
        if let Some(factor) = self.multiple_of {
            let fits = check(&mut outcome, "MultipleOf", Number::Float(factor));
            check_multiple(&mut outcome, place, (compared(fits), factor));
        }
        if let Some(minimum) = self.minimum {
            let fits = check(&mut outcome, "Minimum boundary", Number::Float(minimum));
            let (number, limit, exclusive) = (compared(fits), minimum, self.exclusive_minimum);
            let limit = in_type_of(number, limit);
            if is_below(number, limit, exclusive) {
                let than = if exclusive {
                    "greater than"
                } else {
                    "greater than or equal to"
                };
                let rule = format!("should be {than} {limit}");
                outcome.invalid(place, &number.to_value(), &rule);
            }
        }
        if let Some(maximum) = self.maximum {
            let fits = check(&mut outcome, "Maximum boundary", Number::Float(maximum));
            let (number, limit, exclusive) = (compared(fits), maximum, self.exclusive_maximum);
            let limit = in_type_of(number, limit);
            if is_below(limit, number, exclusive) {
                let than = if exclusive {
                    "less than"
                } else {
                    "less than or equal to"
                };
                let rule = format!("should be {than} {limit}");
                outcome.invalid(place, &number.to_value(), &rule);
            }
        }
        outcome.matches += 1;
        outcome
    }

    fn range_error(&self, range: Range, what: &str, path: &str) -> String {
        if self.sole_type() == "integer" && self.format == "int64" {
            return format!("{what} value must be of type integer with format int64 in {path}");
        }
        range.error(what, path)
    }
}

/// Returns a limit in the type of the number that it is compared with. The fraction is cut.
fn in_type_of(number: Number, limit: f64) -> Number {
    match number {
        Number::Integer(_) => Number::Integer(whole_part(limit)),
        Number::Float(_) => Number::Float(limit),
    }
}

/// Returns whether `number` is below `limit`, or equal to it if `exclusive` is set. Both have the same type.
fn is_below(number: Number, limit: Number, exclusive: bool) -> bool {
    match (number, limit) {
        (Number::Integer(number), Number::Integer(limit)) => {
            number < limit || (exclusive && number == limit)
        }
        (number, limit) => {
            let (number, limit) = (number.as_float(), limit.as_float());
            number < limit || (exclusive && number <= limit)
        }
    }
}

fn check_multiple(outcome: &mut Outcome, place: Place<'_>, (number, factor): (Number, f64)) {
    let value = number.to_value();
    let (is_positive, is_multiple, factor) = match number {
        Number::Integer(number) => {
            let factor = whole_part(factor);
            let is_multiple = number.checked_rem(factor).is_none_or(|rest| rest == 0);
            (factor > 0, is_multiple, Number::Integer(factor))
        }
        Number::Float(number) => {
            let quotient = if factor < 1.0 {
                1.0 / factor * number
            } else {
                number / factor
            };
            (factor > 0.0, is_whole(quotient), Number::Float(factor))
        }
    };
    if !is_positive {
        let path = place.path;
        let factor_shown = factor.to_string();
        let text =
            format!("factor MultipleOf declared for {path} must be positive: {factor_shown}");
        outcome.invalid_text(place, &factor.to_value(), text);
    } else if !is_multiple {
        outcome.invalid(place, &value, &format!("should be a multiple of {factor}"));
    }
}
