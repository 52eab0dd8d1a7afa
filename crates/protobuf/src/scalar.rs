//! Decodes protobuf values that result in a single JSON value: scalars, times, quantities
//! and embedded JSON.
//!
//! Guarantees: the JSON value equals the one that Go's types write after reading the same bytes. If Go can't
//! write the value as JSON, decoding returns an error.

use std::{borrow::Cow, ops::RangeInclusive};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{
    SignedDuration, Timestamp,
    civil::{self, DateTime},
    tz::Offset,
};
use serde::de::{Deserializer as _, Visitor};

use crate::{
    error::{Error, Reason},
    table::{Form, Type},
    wire::{VARINT_BYTES_MAX, WireFields, WireValue},
};

/// Unix time in seconds of Go's zero time, at the start of year 1.
const ZERO_SECOND: i64 = -62_135_596_800;

/// Unix times in seconds that RFC 3339 can represent: the years 0 to 9999.
pub(crate) const SECONDS: RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// The time from which Unix times count.
pub(crate) const EPOCH: DateTime = civil::datetime(1970, 1, 1, 0, 0, 0, 0);

/// Number of nanoseconds in a second.
const NANOS: i32 = 1_000_000_000;

/// Maximum absolute value up to which an `f64` represents every integer exactly: 2^53.
const INTEGRAL_MAX: f64 = 9_007_199_254_740_992.0;

/// A decoded value that is a JSON scalar, or any JSON text ([`Scalar::Json`]).
#[derive(Debug)]
pub(crate) enum Scalar<'de> {
    Null,
    Bool(bool),
    Integer(i64),
    Double(f64),
    Text(Cow<'de, str>),
    Time(Written),
    /// The JSON text that a message contains as bytes.
    Json(&'de [u8]),
}

impl<'de> Scalar<'de> {
    /// Decodes a value whose type is not a message.
    #[inline]
    pub(crate) fn of(value_type: Type, value: WireValue<'de>) -> Result<Self, Reason> {
        match (value_type, value) {
            (Type::Text, WireValue::Bytes(bytes)) => Ok(text(bytes)),
            (Type::Bool, WireValue::Varint(number)) => Ok(Self::Bool(number != 0)),
            (Type::Int32, WireValue::Varint(number)) => Ok(Self::Integer(int32(number).into())),
            (Type::Int64, WireValue::Varint(number)) => Ok(Self::Integer(number.cast_signed())),
            (Type::Double, WireValue::Fixed64(bits)) => double(f64::from_bits(bits)),
            (Type::Bytes, WireValue::Bytes(bytes)) => Ok(Self::Text(STANDARD.encode(bytes).into())),
            (_, value) => Err(value.unexpected().into()),
        }
    }

    /// Returns the zero value of a scalar type, or null for a message.
    pub(crate) fn zero(value_type: Type) -> Self {
        match value_type {
            Type::Bool => Self::Bool(false),
            Type::Int32 | Type::Int64 | Type::Double => Self::Integer(0),
            Type::Text | Type::Bytes => Self::Text(Cow::Borrowed("")),
            Type::Message(_) => Self::Null,
        }
    }

    /// Decodes a message that contains a time, a quantity, an `IntOrString` or JSON text.
    ///
    /// Returns null if `form` is [`Form::Object`], [`Form::List`] or [`Form::Either`].
    pub(crate) fn special(form: Form, bytes: &'de [u8]) -> Result<Self, Reason> {
        match form {
            Form::IntOrString => int_or_string(bytes),
            Form::Json => Ok(match only(bytes)? {
                None | Some([]) => Self::Null,
                Some(json) => Self::Json(json),
            }),
            Form::Quantity => Ok(match only(bytes)? {
                None | Some([]) => Self::Text(Cow::Borrowed("0")),
                Some(bytes) => text(bytes),
            }),
            Form::Time => time(bytes, false),
            Form::MicroTime => time(bytes, true),
            Form::Object | Form::List | Form::Either => Ok(Self::Null),
        }
    }

    /// Passes the value to the visitor, and returns the visitor's result.
    #[inline]
    pub(crate) fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Integer(value) => visitor.visit_i64(value),
            Self::Double(value) => visitor.visit_f64(value),
            Self::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Self::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Self::Time(time) => visitor.visit_str(time.text()),
            // Programs that decode the visitor's type from JSON already contain the code for `from_slice`.
            Self::Json(json) => visit_json(serde_json::Deserializer::from_slice(json), visitor),
        }
    }
}

/// Returns whether a message is Go's zero time, or a [`Form::Json`] message without text. Go writes both as
/// null.
///
/// `form` is the message's form in JSON. Returns false for all other messages. This includes
/// [`Form::Either`] messages, which the caller must decode to detect null.
#[inline]
pub(crate) fn is_null(form: Form, bytes: &[u8]) -> Result<bool, Reason> {
    match form {
        // Go's zero time is null. Its seconds are negative, so they alone have eleven bytes.
        Form::Time | Form::MicroTime if bytes.len() <= VARINT_BYTES_MAX => Ok(bytes.is_empty()),
        Form::Time => Ok(since_1970(bytes, false)?.is_none()),
        Form::MicroTime => Ok(since_1970(bytes, true)?.is_none()),
        Form::Json => Ok(matches!(Scalar::special(form, bytes)?, Scalar::Null)),
        _ => Ok(false),
    }
}

/// Parses a single JSON value, and passes it to the visitor.
///
/// This function is faster than [`Scalar::visit`], because it validates the UTF-8 of all strings at once.
pub(crate) fn visit_text<'de, V: Visitor<'de>>(
    json: &'de [u8],
    visitor: V,
) -> Result<V::Value, Error> {
    match std::str::from_utf8(json) {
        Ok(text) => visit_json(serde_json::Deserializer::from_str(text), visitor),
        Err(_) => visit_json(serde_json::Deserializer::from_slice(json), visitor),
    }
}

// Inlined, it makes the values of all other types slower.
#[inline(never)]
fn visit_json<'de, R: serde_json::de::Read<'de>, V: Visitor<'de>>(
    mut json: serde_json::Deserializer<R>,
    visitor: V,
) -> Result<V::Value, Error> {
    use serde_json::error::Category;

    let value = json.deserialize_any(visitor);
    let value = value.and_then(|value| json.end().map(|()| value));
    value.map_err(|error| {
        // The text of an error of the type quotes the value.
        let text = match error.classify() {
            Category::Data => format!(
                "a value of another type than expected in the JSON at line {} column {}",
                error.line(),
                error.column()
            ),
            Category::Io | Category::Syntax | Category::Eof => format!("json parse error: {error}"),
        };
        Reason::new(text).into()
    })
}

/// Decodes a string, and replaces invalid UTF-8 with U+FFFD, because JSON text must be valid UTF-8.
#[inline]
pub(crate) fn text(bytes: &[u8]) -> Scalar<'_> {
    Scalar::Text(match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    })
}

/// Returns the lower 32 bits of a varint as a signed integer, as Go does.
#[inline]
pub(crate) fn int32(number: u64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Decodes a double; a number without a fraction becomes an integer, as Go writes it.
fn double(number: f64) -> Result<Scalar<'static>, Reason> {
    if number.fract() == 0.0 && number.abs() <= INTEGRAL_MAX {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is integral and within 54 bits"
        )]
        let integer = number as i64;
        return Ok(Scalar::Integer(integer));
    }
    if number.is_finite() {
        Ok(Scalar::Double(number))
    } else {
        Err(Reason::new("a number that JSON can't represent"))
    }
}

/// Decodes an `IntOrString` from the fields `{1: type, 2: integer, 3: text}`.
fn int_or_string(bytes: &[u8]) -> Result<Scalar<'_>, Reason> {
    let (mut kind, mut integer, mut string) = (0, Scalar::Integer(0), text(b""));
    for field in WireFields::new(bytes) {
        match field? {
            (1, WireValue::Varint(number)) => kind = number,
            (2, value) => integer = Scalar::of(Type::Int32, value)?,
            (3, value) => string = Scalar::of(Type::Text, value)?,
            (1, value) => return Err(value.unexpected().into()),
            _ => {}
        }
    }
    match kind {
        0 => Ok(integer),
        1 => Ok(string),
        _ => Err(Reason::new("impossible IntOrString.Type")),
    }
}

/// Returns the bytes in field 1 of a message, ignoring all other fields.
fn only(bytes: &[u8]) -> Result<Option<&[u8]>, Reason> {
    let mut found = None;
    for field in WireFields::new(bytes) {
        let (number, value) = field?;
        if number == 1 {
            found = Some(value.bytes()?);
        }
    }
    Ok(found)
}

/// Decodes a time from a message with the fields 1 (seconds) and 2 (nanoseconds).
///
/// Truncates the time to microseconds if `micro` is true, otherwise to seconds.
fn time(bytes: &[u8], micro: bool) -> Result<Scalar<'static>, Reason> {
    let Some((seconds, nanos)) = since_1970(bytes, micro)? else {
        return Ok(Scalar::Null);
    };
    if !SECONDS.contains(&seconds) {
        return Err(Reason::new("a time that RFC 3339 can't represent"));
    }
    Ok(Scalar::Time(Written::new(civil(seconds, nanos), micro)))
}

/// Returns the Unix time in seconds and nanoseconds; `None` for Go's zero time.
///
/// Truncates the time to microseconds if `micro` is true, otherwise to seconds.
#[inline]
fn since_1970(bytes: &[u8], micro: bool) -> Result<Option<(i64, i32)>, Reason> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for field in WireFields::new(bytes) {
        match field? {
            (1, WireValue::Varint(number)) => seconds = number.cast_signed(),
            (2, WireValue::Varint(number)) => nanos = int32(number),
            (1 | 2, value) => return Err(value.unexpected().into()),
            _ => {}
        }
    }
    // Go accepts nanoseconds that are negative, or more than a second.
    let seconds = seconds.saturating_add(nanos.div_euclid(NANOS).into());
    let nanos = nanos.rem_euclid(NANOS);
    let nanos = if micro { nanos / 1_000 * 1_000 } else { 0 };
    Ok(Some((seconds, nanos)).filter(|time| *time != (ZERO_SECOND, 0)))
}

/// Returns the date and the time in UTC of a Unix time in [`SECONDS`].
#[inline]
fn civil(seconds: i64, nanos: i32) -> DateTime {
    match Timestamp::new(seconds, nanos) {
        Ok(time) => Offset::UTC.to_datetime(time),
        // A `Timestamp` ends before the last day of year 9999 does.
        Err(_) => EPOCH.saturating_add(SignedDuration::new(seconds, nanos)),
    }
}

/// The RFC 3339 text of a time, stored without a heap allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    bytes: [u8; Self::BYTES],
    length: usize,
}

impl Written {
    /// Length in bytes of the longest RFC 3339 text of a time: `2006-01-02T15:04:05.000000Z`.
    const BYTES: usize = 27;

    fn new(civil: DateTime, micro: bool) -> Self {
        let mut written = Self {
            bytes: [0; Self::BYTES],
            length: 0,
        };
        let number = |number: i8| u32::from(number.unsigned_abs());
        written.digits(4, u32::from(civil.year().unsigned_abs()), b'-');
        written.digits(2, number(civil.month()), b'-');
        written.digits(2, number(civil.day()), b'T');
        written.digits(2, number(civil.hour()), b':');
        written.digits(2, number(civil.minute()), b':');
        written.digits(2, number(civil.second()), if micro { b'.' } else { b'Z' });
        if micro {
            let micros = civil.subsec_nanosecond().unsigned_abs() / 1_000;
            written.digits(6, micros, b'Z');
        }
        written
    }

    /// Appends `number` with `count` decimal digits, and then the byte `after`.
    fn digits(&mut self, count: usize, mut number: u32, after: u8) {
        let place = &mut self.bytes[self.length..=self.length + count];
        for digit in place[..count].iter_mut().rev() {
            let [low, ..] = (number % 10).to_le_bytes();
            *digit = b'0' + low;
            number /= 10;
        }
        place[count] = after;
        self.length += count + 1;
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
