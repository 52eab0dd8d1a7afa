//! Equality and order of values.
//!
//! Lists and objects of the validated object are compared as Kubernetes does: a list of the type `set` or
//! `map` is equal in any order.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::cost::{Failure, Meter};
use super::structural::Schema;
use super::value::{List, Map, Value};

/// Returns whether two values are equal.
pub(super) fn equal<'a>(
    meter: &mut Meter,
    one: &Value<'a>,
    other: &Value<'a>,
) -> Result<bool, Failure> {
    meter.work(1)?;
    match (one, other) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Null, _) | (_, Value::Null) => Ok(false),
        (Value::List(one), other) => equal_list(meter, one, other),
        (Value::Map(one), other) => equal_map(meter, one, other),
        (Value::Optional(Some(one)), Value::Optional(Some(other))) => equal(meter, one, other),
        (Value::Optional(one), Value::Optional(other)) => Ok(one.is_none() && other.is_none()),
        (Value::Unknown(one), other) => equal_unknown(meter, one, other),
        (Value::String(one), Value::String(other)) => {
            meter.compare(one.len().min(other.len()))?;
            Ok(**one == **other)
        }
        (Value::Bytes(one), Value::Bytes(other)) => {
            meter.compare(one.len().min(other.len()))?;
            Ok(one == other)
        }
        (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
        (Value::Type(one), Value::Type(other)) => Ok(one == other),
        (Value::Timestamp(one), Value::Timestamp(other)) => Ok(one == other),
        (Value::Duration(one), Value::Duration(other)) => Ok(one == other),
        _ => match (is_number(one), is_number(other)) {
            (true, true) => Ok(compare(one, other) == Ok(Ordering::Equal)),
            _ => equal_kubernetes(one, other),
        },
    }
}

/// Compares values of Kubernetes' types. Another type is an error.
fn equal_kubernetes(one: &Value<'_>, other: &Value<'_>) -> Result<bool, Failure> {
    match (one, other) {
        (Value::Url(one), Value::Url(other)) => Ok(one == other),
        (Value::Quantity(one), Value::Quantity(other)) if !other.is_computed => {
            Ok(one.compare(*other).is_eq())
        }
        (Value::Ip(one), Value::Ip(other)) => Ok(one == other),
        (Value::Cidr(one), Value::Cidr(other)) => Ok(one == other),
        (Value::Format(one), Value::Format(other)) => Ok(one == other),
        (Value::Version(one), Value::Version(other)) => Ok(one.compare(other).is_eq()),
        (
            Value::Url(_)
            | Value::Quantity(_)
            | Value::Ip(_)
            | Value::Cidr(_)
            | Value::Format(_)
            | Value::Version(_),
            _,
        ) => Err("no such overload".into()),
        _ => Ok(false),
    }
}

fn equal_list<'a>(meter: &mut Meter, one: &List<'a>, other: &Value<'a>) -> Result<bool, Failure> {
    let Some(schema) = one.like() else {
        let Value::List(other) = other else {
            return Ok(false);
        };
        return equal_made_list(meter, one, other);
    };
    let Value::List(other) = other else {
        return Err("no such overload".into());
    };
    if one.len() != other.len() {
        return Ok(false);
    }
    match schema.extensions.list_type.as_deref() {
        Some("set") => {
            meter.work(one.len())?;
            let mut known = BTreeSet::new();
            for key in item_keys(one) {
                meter.work(key.as_ref().map_or(0, ScalarKey::work))?;
                known.insert(key);
            }
            for item in other.iter() {
                let item = meter.read(item)?.ok();
                let key = item.as_ref().and_then(ScalarKey::of_value);
                meter.work(key.as_ref().map_or(0, ScalarKey::work))?;
                if key.is_none() || !known.contains(&key) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Some("map") => equal_map_list(meter, one, other, schema),
        _ => {
            for (item, other) in one.iter().zip(other.iter()) {
                let (item, other) = (meter.read(item)??, meter.read(other)??);
                if !equal_data(meter, &item, &other)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Compares an item of a list of the object. Unlike elsewhere, a list or object can't be compared with null.
fn equal_data<'a>(meter: &mut Meter, item: &Value<'a>, other: &Value<'a>) -> Result<bool, Failure> {
    let is_composite = matches!(
        item,
        Value::List(List::Data { .. }) | Value::Map(Map::Data { .. })
    );
    match other {
        Value::Null if is_composite => Err("no such overload".into()),
        _ => equal(meter, item, other),
    }
}

/// Compares a list that the expression made. As in cel-go, items that can't be compared count as equal.
fn equal_made_list<'a>(
    meter: &mut Meter,
    one: &List<'a>,
    other: &List<'a>,
) -> Result<bool, Failure> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (item, other) in one.iter().zip(other.iter()) {
        let (Ok(item), Ok(other)) = (meter.read(item)?, meter.read(other)?) else {
            continue;
        };
        match equal(meter, &item, &other) {
            Ok(true) | Err(Failure::Error(_)) => {}
            failed => return failed,
        }
    }
    Ok(true)
}

fn equal_map_list<'a>(
    meter: &mut Meter,
    one: &List<'a>,
    other: &List<'a>,
    schema: &'a Schema,
) -> Result<bool, Failure> {
    meter.work(one.len())?;
    let keys = &schema.extensions.list_map_keys;
    let mut known = BTreeMap::new();
    for item in one.iter() {
        let item = meter.read(item)??;
        if let Some(key) = map_list_key(&item, keys) {
            meter.work(key.iter().map(ScalarKey::work).sum())?;
            known.insert(key, item);
        }
    }
    for item in other.iter() {
        let item = meter.read(item)??;
        let Some(key) = map_list_key(&item, keys) else {
            return Ok(false);
        };
        meter.work(key.iter().map(ScalarKey::work).sum())?;
        let Some(known) = known.get(&key) else {
            return Ok(false);
        };
        if !equal(meter, known, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_map<'a>(meter: &mut Meter, one: &Map<'a>, other: &Value<'a>) -> Result<bool, Failure> {
    let Map::Data { entries, .. } = one else {
        let Value::Map(other) = other else {
            return Ok(false);
        };
        return equal_made_map(meter, one, other);
    };
    let Value::Map(other) = other else {
        return Err("no such overload".into());
    };
    if one.len() != other.len() {
        return Ok(false);
    }
    for (name, json) in *entries {
        meter.work(1 + name.len() / 64)?;
        if !one.knows(name) {
            // A field without a schema is compared as data.
            let Map::Data {
                entries: others, ..
            } = other
            else {
                return Err("no such overload".into());
            };
            if let Some(other) = others.get(name)
                && !equal_json(meter, json, other)?
            {
                return Ok(false);
            }
            continue;
        }
        match (one.get_name(name), other.get_name(name)) {
            (None, None) => {}
            (Some(value), Some(other)) => {
                let (value, other) = (meter.read(value)??, meter.read(other)??);
                if !equal(meter, &value, &other)? {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn equal_made_map<'a>(meter: &mut Meter, one: &Map<'a>, other: &Map<'a>) -> Result<bool, Failure> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for key in one.keys() {
        let (Some(Ok(value)), Some(other)) = (one.get(&key), other.get(&key)) else {
            return Ok(false);
        };
        let Ok(other) = meter.read(other)? else {
            continue;
        };
        match equal(meter, &value, &other) {
            Ok(true) | Err(Failure::Error(_)) => {}
            failed => return failed,
        }
    }
    Ok(true)
}

fn equal_unknown(meter: &mut Meter, one: &Json, other: &Value<'_>) -> Result<bool, Failure> {
    Ok(match other {
        Value::Unknown(other) => equal_json(meter, one, other)?,
        Value::String(text) => {
            meter.compare(text.len())?;
            one.as_str() == Some(text)
        }
        Value::Bool(value) => one.as_bool() == Some(*value),
        Value::Int(value) => one.as_i64() == Some(*value),
        Value::Double(value) => one.is_f64() && one.as_f64() == Some(*value),
        _ => false,
    })
}

/// Returns whether data without a schema is equal.
fn equal_json(meter: &mut Meter, one: &Json, other: &Json) -> Result<bool, Failure> {
    meter.work(1)?;
    let all_equal = |meter: &mut Meter, pairs: &mut dyn Iterator<Item = (&Json, &Json)>| {
        for (one, other) in pairs {
            if !equal_json(meter, one, other)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    match (one, other) {
        (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
            all_equal(meter, &mut one.iter().zip(other))
        }
        (Json::Object(one), Json::Object(other)) if one.len() == other.len() => {
            for (name, other) in one.keys().zip(other.keys()) {
                meter.work(1 + name.len() / 64)?;
                if name != other {
                    return Ok(false);
                }
            }
            all_equal(meter, &mut one.values().zip(other.values()))
        }
        (Json::String(one), Json::String(other)) if one.len() == other.len() => {
            meter.compare(one.len())?;
            Ok(one == other)
        }
        (Json::Array(_) | Json::Object(_), _) => Ok(false),
        (one, other) => Ok(one == other),
    }
}

/// A scalar as Go compares it: an integer is never equal to a floating-point number.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum ScalarKey {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(String),
}

impl ScalarKey {
    fn of_json(json: &Json) -> Option<ScalarKey> {
        Some(match json {
            Json::Null => ScalarKey::Null,
            Json::Bool(value) => ScalarKey::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => ScalarKey::Int(value),
                None => ScalarKey::Double(number.as_f64()?.to_bits()),
            },
            Json::String(text) => ScalarKey::String(text.clone()),
            Json::Array(_) | Json::Object(_) => return None,
        })
    }

    /// Returns the work of copying and comparing the key.
    fn work(&self) -> usize {
        match self {
            ScalarKey::String(text) => text.len() / 16,
            _ => 0,
        }
    }

    pub(super) fn of_value(value: &Value<'_>) -> Option<ScalarKey> {
        Some(match value {
            Value::Bool(value) => ScalarKey::Bool(*value),
            Value::Int(value) => ScalarKey::Int(*value),
            Value::Uint(value) => ScalarKey::Uint(*value),
            Value::Double(value) => ScalarKey::Double(value.to_bits()),
            Value::String(text) => ScalarKey::String(text.to_string()),
            Value::Unknown(json) => return ScalarKey::of_json(json),
            _ => return None,
        })
    }
}

/// Returns the keys of the items of a set: those of the data, where there is data.
pub(super) fn item_keys(list: &List<'_>) -> impl Iterator<Item = Option<ScalarKey>> {
    (0..list.len()).map(|index| match list {
        List::Data { items, .. } => ScalarKey::of_json(&items[index]),
        List::Made { items, .. } => ScalarKey::of_value(&items[index]),
    })
}

/// Returns the values of the keys of an item of a list of the type `map`. Absent keys are `Null`.
pub(super) fn map_list_key(item: &Value<'_>, keys: &[String]) -> Option<Vec<ScalarKey>> {
    let Value::Map(Map::Data { entries, .. }) = item else {
        return None;
    };
    // Kubernetes looks for the escaped names in the data.
    let key = |name: &String| {
        let name = super::escape::escape(name).unwrap_or_else(|| name.clone());
        entries
            .get(&name)
            .map_or(Some(ScalarKey::Null), ScalarKey::of_json)
    };
    keys.iter().map(key).collect()
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

/// Returns the order of two values of comparable types.
pub(super) fn compare(one: &Value<'_>, other: &Value<'_>) -> Result<Ordering, Failure> {
    Ok(match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Int(one), Value::Int(other)) | (Value::Duration(one), Value::Duration(other)) => {
            one.cmp(other)
        }
        (Value::Uint(one), Value::Uint(other)) => one.cmp(other),
        (Value::String(one), Value::String(other)) => (**one).cmp(&**other),
        (Value::Bytes(one), Value::Bytes(other)) => one.cmp(other),
        (Value::Timestamp(one), Value::Timestamp(other)) => {
            one.total_nanoseconds().cmp(&other.total_nanoseconds())
        }
        _ => {
            let (Some(one), Some(other)) = (Number::of(one), Number::of(other)) else {
                return Err("no such overload".into());
            };
            one.compare(other).ok_or("NaN values cannot be ordered")?
        }
    })
}

#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Double(f64),
}

impl Number {
    fn of(value: &Value<'_>) -> Option<Number> {
        Some(match value {
            Value::Int(value) => Number::Integer((*value).into()),
            Value::Uint(value) => Number::Integer((*value).into()),
            Value::Double(value) => Number::Double(*value),
            _ => return None,
        })
    }

    fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Integer(one), Number::Integer(other)) => Some(one.cmp(&other)),
            (Number::Double(one), Number::Double(other)) => one.partial_cmp(&other),
            (Number::Integer(one), Number::Double(other)) => compare_mixed(one, other),
            (Number::Double(one), Number::Integer(other)) => {
                compare_mixed(other, one).map(Ordering::reverse)
            }
        }
    }
}

/// Compares an integer as a floating-point number, as cel-go does within the range of the integer's type.
fn compare_mixed(integer: i128, double: f64) -> Option<Ordering> {
    #[expect(clippy::cast_precision_loss, reason = "as in Go")]
    (integer as f64).partial_cmp(&double)
}

/// Returns whether a list contains a value.
pub(super) fn contains<'a>(
    meter: &mut Meter,
    list: &List<'a>,
    value: &Value<'a>,
) -> Result<bool, Failure> {
    let mut failure = None;
    for item in list.iter() {
        let found = match meter.read(item)? {
            Ok(item) if list.like().is_some() => equal_data(meter, &item, value),
            Ok(item) => equal(meter, value, &item),
            Err(error) => Err(Failure::Error(error)),
        };
        match found {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(Failure::LimitExceeded) => return Err(Failure::LimitExceeded),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(failure) if list.like().is_some() => Err(failure),
        _ => Ok(false),
    }
}
