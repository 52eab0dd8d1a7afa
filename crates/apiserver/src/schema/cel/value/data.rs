//! Converts the data of an object to values, by the schema of the data.

use std::rc::Rc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map as JsonMap, Value as Json};

use super::super::escape::unescape;
use super::super::structural::Schema;
use super::super::time;
use super::{List, Map, Text, Value};
use crate::go_base64;

/// Base64 as Kubernetes decodes the format `byte` in rules: with the alphabet of URLs, although the format requires the
/// standard one.
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Returns the value of data. Data that does not match its schema is an error.
pub(in super::super) fn value<'a>(json: &'a Json, schema: &'a Schema) -> Result<Value<'a>, String> {
    if json.is_null() {
        return if schema.nullable {
            Ok(Value::Null)
        } else {
            Err("invalid data, got null for schema with nullable=false".to_owned())
        };
    }
    if schema.extensions.int_or_string {
        return match json {
            Json::String(text) => Ok(Value::String(Text::Borrowed(text))),
            Json::Number(number) if number.is_i64() => Ok(integer(json)),
            _ => {
                let expected = "expected XIntOrString value to be either a string or integer";
                Err(format!("invalid data, {expected}"))
            }
        };
    }
    let mismatch = |expected: &str| {
        let found = go_type(json);
        Err(format!("invalid data, expected {expected}, got {found}"))
    };
    match (schema.kind.as_str(), json) {
        ("object", Json::Object(entries)) => {
            let schema = schema.resource.as_deref().unwrap_or(schema);
            Ok(Value::Map(Map::Data { entries, schema }))
        }
        ("object", _) => {
            Err("invalid data, expected a map for the provided schema with type=object".to_owned())
        }
        ("array", Json::Array(items)) => list(items, schema),
        ("array", _) => Err(
            "invalid data, expected an array for the provided schema with type=array".to_owned(),
        ),
        ("string", Json::String(text)) => string(text, schema),
        ("string", _) => mismatch("string"),
        ("number", Json::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN))),
        ("number", _) => mismatch("float"),
        ("integer", Json::Number(number)) if number.is_i64() => Ok(integer(json)),
        ("integer", _) => mismatch("int"),
        ("boolean", Json::Bool(value)) => Ok(Value::Bool(*value)),
        ("boolean", _) => mismatch("bool"),
        _ if schema.extensions.preserve_unknown_fields => Ok(Value::Unknown(json)),
        (kind, _) => {
            let types = "object, array, number, integer, boolean or string";
            let extensions = "x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields";
            let expected = format!("expected {types}, or no type with {extensions} is true");
            Err(format!("invalid type, {expected}, got {kind}"))
        }
    }
}

fn integer<'a>(json: &Json) -> Value<'a> {
    Value::Int(json.as_i64().unwrap_or_default())
}

fn list<'a>(items: &'a [Json], schema: &'a Schema) -> Result<Value<'a>, String> {
    if schema.items.is_none() {
        return Err("invalid array type, expected Items with a non-empty Schema".to_owned());
    }
    match schema.extensions.list_type.as_deref() {
        None | Some("" | "map" | "set" | "atomic") => Ok(Value::List(List::Data { items, schema })),
        Some(other) => {
            let expected = "expected 'map', 'set' or 'atomic'";
            Err(format!(
                "invalid x-kubernetes-list-type, {expected} but got {other}"
            ))
        }
    }
}

fn string<'a>(text: &'a str, schema: &Schema) -> Result<Value<'a>, String> {
    let invalid = |what: &str, error: String| format!("Invalid {what} {text}: {error}");
    match schema.format.as_str() {
        "duration" => time::parse_format_duration(text)
            .map(Value::Duration)
            .map_err(|error| invalid("duration", error)),
        "date" => time::parse_date(text)
            .map(Value::Timestamp)
            .map_err(|error| invalid("date formatted string", error)),
        "date-time" => time::parse_format_date_time(text)
            .map(Value::Timestamp)
            .map_err(|error| invalid("date-time formatted string", error)),
        "byte" => {
            let bytes = URL_SAFE.decode(text);
            let bytes = bytes.map_err(|error| {
                invalid("byte formatted string", go_base64::message(text, &error))
            })?;
            Ok(Value::Bytes(Rc::from(bytes)))
        }
        _ => Ok(Value::String(Text::Borrowed(text))),
    }
}

/// Returns a field of an object by its identifier, or an entry of a map by its key.
pub(super) fn field<'a>(
    entries: &'a JsonMap<String, Json>,
    schema: &'a Schema,
    name: &str,
) -> Option<Result<Value<'a>, String>> {
    let has_properties = schema.properties.is_some();
    let unescaped = if has_properties {
        Some(unescape(name)?)
    } else {
        None
    };
    let name = unescaped.as_deref().unwrap_or(name);
    let json = entries.get(name)?;
    // A nullable field that is null counts as absent.
    if has_properties && json.is_null() {
        return None;
    }
    schema_of(schema, name).map(|schema| value(json, schema))
}

/// Returns the schema of a field or entry.
pub(super) fn schema_of<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    match &schema.properties {
        Some(properties) => properties.get(name).map(|one| &**one),
        None if schema.extensions.embedded_resource => None,
        None => schema.additional.as_deref(),
    }
}

/// Returns the type of data in messages.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}
