//! Converts protobuf values that result in one JSON value: scalars, and messages with their own JSON
//! encoding.
//!
//! Guarantees: the JSON equals the JSON that Go's types write after reading the same bytes.
//! A value that Go's types can't write is an error.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Number, Value, json};

use super::wire::{WireError, WireFields, WireValue};
use crate::kinds::wire::{Form, Type};

/// Unix time in seconds of the start of year 1: Go's zero time, and the minimum of RFC 3339.
/// The maximum is that of [`Timestamp`].
const FIRST_SECOND: i64 = -62_135_596_800;

/// Maximum absolute value up to which a double represents every integer exactly.
const INTEGRAL_MAX: f64 = 9_007_199_254_740_992.0;

/// The reason why a value can't be converted, without the name of the field.
#[derive(Debug)]
pub(super) struct Reason(Cow<'static, str>);

// === impl Reason ===

impl Reason {
    pub(super) fn new(text: impl Into<Cow<'static, str>>) -> Reason {
        Reason(text.into())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<WireError> for Reason {
    fn from(error: WireError) -> Reason {
        Reason::new(error.to_string())
    }
}

/// Converts a protobuf scalar of the given type to JSON.
pub(super) fn scalar(value_type: Type, value: WireValue<'_>) -> Result<Value, Reason> {
    match (value_type, value) {
        (Type::Bool, WireValue::Varint(number)) => Ok(json!(number != 0)),
        (Type::Int32, WireValue::Varint(number)) => Ok(json!(int32(number))),
        (Type::Int64, WireValue::Varint(number)) => Ok(json!(number.cast_signed())),
        (Type::Double, WireValue::Fixed64(bits)) => double(f64::from_bits(bits)),
        (Type::Text, WireValue::Bytes(bytes)) => Ok(text(bytes)),
        (Type::Bytes, WireValue::Bytes(bytes)) => Ok(json!(STANDARD.encode(bytes))),
        (_, value) => Err(value.unexpected().into()),
    }
}

/// Returns the JSON of a type's zero value, for a value that was not sent.
pub(super) fn zero(value_type: Type) -> Value {
    match value_type {
        Type::Bool => json!(false),
        Type::Int32 | Type::Int64 | Type::Double => json!(0),
        Type::Text | Type::Bytes => json!(""),
        Type::Message(_) => Value::Null,
    }
}

/// Returns whether Go omits this value from a field with `omitempty`.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(bool) => !bool,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// Converts a message that has its own JSON encoding, such as a time or a quantity.
pub(super) fn special(form: Form, bytes: &[u8]) -> Result<Value, Reason> {
    match form {
        Form::IntOrString => int_or_string(bytes),
        Form::Json => embedded_json(bytes),
        Form::Quantity => quantity(bytes),
        Form::Time => time(bytes, false),
        Form::MicroTime => time(bytes, true),
        Form::Object | Form::List | Form::Either => Ok(Value::Null),
    }
}

/// Converts bytes to a JSON string, and replaces invalid UTF-8, which JSON can't represent.
fn text(bytes: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(bytes).into_owned())
}

/// Returns the lower 32 bits of a varint as a signed integer, as Go does.
fn int32(number: u64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Converts a double to a JSON number, which has no fraction if the double is integral, as in Go.
fn double(number: f64) -> Result<Value, Reason> {
    if number.fract() == 0.0 && number.abs() <= INTEGRAL_MAX {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is integral and within 54 bits"
        )]
        let integer = number as i64;
        return Ok(json!(integer));
    }
    let number = Number::from_f64(number);
    let number = number.ok_or_else(|| Reason::new("a number that JSON can't say"))?;
    Ok(Value::Number(number))
}

/// Decodes the message `{1: type, 2: integer, 3: text}`.
///
/// Type 0 selects the integer, and type 1 selects the text.
fn int_or_string(bytes: &[u8]) -> Result<Value, Reason> {
    let (mut kind, mut integer, mut string) = (0, json!(0), json!(""));
    for field in WireFields::new(bytes) {
        match field? {
            (1, WireValue::Varint(number)) => kind = number,
            (2, value) => integer = scalar(Type::Int32, value)?,
            (3, value) => string = scalar(Type::Text, value)?,
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

/// Decodes the message `{1: text}` as a quantity; the text is not converted, and an absent text is `0`.
fn quantity(bytes: &[u8]) -> Result<Value, Reason> {
    match only(bytes)? {
        None | Some([]) => Ok(json!("0")),
        Some(bytes) => Ok(text(bytes)),
    }
}

/// Decodes the message `{1: JSON}` as the embedded JSON value; an absent value is null.
fn embedded_json(bytes: &[u8]) -> Result<Value, Reason> {
    match only(bytes)? {
        None | Some([]) => Ok(Value::Null),
        Some(bytes) => serde_json::from_slice(bytes)
            .map_err(|error| Reason::new(format!("json parse error: {error}"))),
    }
}

/// Returns the bytes in field 1 of a message, and ignores all other fields.
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

/// Decodes the message `{1: seconds, 2: nanoseconds}`, a time since 1970, as RFC 3339 text.
///
/// An empty message is Go's zero time, which is null in JSON.
fn time(bytes: &[u8], micro: bool) -> Result<Value, Reason> {
    if bytes.is_empty() {
        return Ok(Value::Null);
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
    // `Time` has no fraction; `MicroTime` truncates it.
    let nanos = if micro { nanos / 1_000 * 1_000 } else { 0 };
    let time = Timestamp::from_second(seconds)
        .and_then(|time| time.checked_add(SignedDuration::from_nanos(i64::from(nanos))))
        .ok()
        .filter(|time| time.as_second() >= FIRST_SECOND)
        .ok_or_else(|| Reason::new("a time that RFC 3339 can't say"))?;
    if time.as_second() == FIRST_SECOND && time.subsec_nanosecond() == 0 {
        return Ok(Value::Null);
    }
    Ok(Value::String(if micro {
        format!("{time:.6}")
    } else {
        time.to_string()
    }))
}

#[cfg(test)]
mod tests;
