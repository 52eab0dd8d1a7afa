//! Conversions between types, and the text of values in messages.

use super::super::cost::Failure;
use super::super::time::{self, Timestamp};
use super::super::value::{List, Map, Text, Value};
use super::Outcome;
use crate::quote::go_float;

pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Outcome<'a>> {
    let [value] = arguments else { return None };
    Some(match name {
        "type" => Ok(Value::Type(value.type_name())),
        "dyn" => Ok(value.clone()),
        "bool" => to_bool(value)?,
        "bytes" => to_bytes(value)?,
        "double" => to_double(value)?,
        "duration" => to_duration(value)?,
        "int" => to_int(value)?,
        "string" => to_string(value)?,
        "timestamp" => to_timestamp(value)?,
        "uint" => to_uint(value)?,
        _ => return None,
    })
}

fn mismatch<'a>(value: &Value<'_>, to: &str) -> Outcome<'a> {
    let from = value.type_name();
    Err(Failure::Error(format!(
        "type conversion error from '{from}' to '{to}'"
    )))
}

fn to_bool<'a>(value: &Value<'a>) -> Option<Outcome<'a>> {
    Some(match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => mismatch(value, "bool"),
        },
        _ => return None,
    })
}

fn to_bytes<'a>(value: &Value<'a>) -> Option<Outcome<'a>> {
    Some(match value {
        Value::Bytes(_) => Ok(value.clone()),
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
        _ => return None,
    })
}

#[expect(clippy::cast_precision_loss, reason = "as in Go")]
fn to_double<'a>(value: &Value<'a>) -> Option<Outcome<'a>> {
    Some(match value {
        Value::Double(_) => Ok(value.clone()),
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        Value::String(text) => match text.parse::<f64>() {
            // Unlike Rust, Go rejects numbers that are too large, and a sign before `NaN`.
            Ok(parsed)
                if parsed.is_infinite() && text.contains(|one: char| one.is_ascii_digit()) =>
            {
                mismatch(value, "double")
            }
            Ok(parsed) if parsed.is_nan() && text.starts_with(['+', '-']) => {
                mismatch(value, "double")
            }
            Ok(parsed) => Ok(Value::Double(parsed)),
            _ => mismatch(value, "double"),
        },
        _ => return None,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked before"
)]
fn to_int<'a>(value: &Value<'a>) -> Option<Outcome<'a>> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    Some(match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Uint(value) => {
            let value = i64::try_from(*value);
            value.map(Value::Int).map_err(|_| "integer overflow".into())
        }
        Value::Double(value) if *value > -END && *value < END => Ok(Value::Int(*value as i64)),
        Value::Double(_) => Err("integer overflow".into()),
        Value::Duration(value) => Ok(Value::Int(*value)),
        Value::Timestamp(value) => Ok(Value::Int(value.seconds)),
        Value::String(text) => match text.parse() {
            Ok(parsed) => Ok(Value::Int(parsed)),
            Err(_) => mismatch(value, "int"),
        },
        _ => return None,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked before"
)]
fn to_uint<'a>(value: &Value<'a>) -> Option<Outcome<'a>> {
    const END: f64 = 18_446_744_073_709_551_616.0;
    let overflow = || Err("unsigned integer overflow".into());
    Some(match value {
        Value::Uint(_) => Ok(value.clone()),
        Value::Int(value) => {
            u64::try_from(*value).map_or_else(|_| overflow(), |value| Ok(Value::Uint(value)))
        }
        Value::Double(value) if *value >= 0.0 && *value < END => Ok(Value::Uint(*value as u64)),
        Value::Double(_) => overflow(),
        Value::String(text) => match text.parse() {
            Ok(parsed) if !text.starts_with('+') => Ok(Value::Uint(parsed)),
            _ => mismatch(value, "uint"),
        },
        _ => return None,
    })
}

fn to_string<'a>(value: &Value<'a>) -> Option<Outcome<'a>> {
    Some(Ok(match value {
        Value::String(_) => value.clone(),
        Value::Bool(value) => Value::String(Text::Borrowed(if *value { "true" } else { "false" })),
        Value::Int(value) => Value::text(value.to_string()),
        Value::Uint(value) => Value::text(value.to_string()),
        Value::Double(value) => Value::text(general(*value)),
        Value::Timestamp(value) => Value::text(value.to_string()),
        Value::Duration(value) => Value::text(time::display_duration(*value)),
        Value::Ip(value) => Value::text(value.to_string()),
        Value::Cidr(value) => Value::text(value.to_string()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::text(text),
            Err(_) => {
                return Some(Err(
                    "invalid UTF-8 in bytes, cannot convert to string".into()
                ));
            }
        },
        _ => return None,
    }))
}

fn to_timestamp<'a>(value: &Value<'a>) -> Option<Outcome<'a>> {
    Some(match value {
        Value::Timestamp(_) => Ok(value.clone()),
        Value::Int(seconds) => match Timestamp::new(*seconds, 0) {
            Some(timestamp) => Ok(Value::Timestamp(timestamp)),
            None => Err("timestamp overflow".into()),
        },
        Value::String(text) => match time::parse_rfc3339(text) {
            Some(timestamp) if timestamp.is_in_range() => Ok(Value::Timestamp(timestamp)),
            Some(_) => Err("timestamp overflow".into()),
            None => mismatch(value, "google.protobuf.Timestamp"),
        },
        _ => return None,
    })
}

fn to_duration<'a>(value: &Value<'a>) -> Option<Outcome<'a>> {
    Some(match value {
        Value::Duration(_) => Ok(value.clone()),
        Value::String(text) => match time::parse_duration(text) {
            Some(duration) => Ok(Value::Duration(duration)),
            None => mismatch(value, "google.protobuf.Duration"),
        },
        Value::Int(_) => mismatch(value, "google.protobuf.Duration"),
        _ => return None,
    })
}

/// Displays a number as Go's `%g`.
pub(super) fn general(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    go_float(value)
}

/// Returns the text of a value in messages.
pub(in super::super) fn display(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Type(name) => (*name).to_owned(),
        Value::List(list) => display_list(list),
        Value::Map(map) => display_map(map),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(value)) => format!("optional({})", display(value)),
        other => match to_string(other) {
            Some(Ok(text)) => display(&text),
            _ => other.type_name().to_owned(),
        },
    }
}

fn display_list(list: &List<'_>) -> String {
    let items = list
        .iter()
        .take(SHOWN)
        .map(|item| item.as_ref().map(display).unwrap_or_default());
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn display_map(map: &Map<'_>) -> String {
    let keys = map.keys();
    let entries = keys.iter().take(SHOWN).map(|key| {
        let value = map.get(key).and_then(Result::ok);
        format!(
            "{}: {}",
            display(key),
            value.as_ref().map(display).unwrap_or_default()
        )
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
}

/// Maximum count of items that a message shows.
const SHOWN: usize = 100;
