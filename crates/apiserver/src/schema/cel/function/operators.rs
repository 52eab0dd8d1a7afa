//! Arithmetic, comparison and membership.

use std::collections::{BTreeMap, BTreeSet};

use super::super::cost::{Failure, Meter};
use super::super::equality::{ScalarKey, compare, contains, equal, item_keys, map_list_key};
use super::super::time::Timestamp;
use super::super::value::{List, Map, Value};
use super::{Outcome, missing_operator};

pub(super) fn call<'a>(
    meter: &mut Meter,
    name: &str,
    arguments: &[Value<'a>],
) -> Option<Outcome<'a>> {
    Some(match (name, arguments) {
        ("_==_", [one, other]) => equal(meter, one, other).map(Value::Bool),
        // cel-go counts values that can't be compared as different.
        ("_!=_", [one, other]) => match equal(meter, one, other) {
            Err(Failure::LimitExceeded) => Err(Failure::LimitExceeded),
            equal => Ok(Value::Bool(!equal.unwrap_or(false))),
        },
        ("_<_" | "_<=_" | "_>_" | "_>=_", [one, other]) => order(name, one, other),
        ("@in", [value, Value::List(list)]) => contains(meter, list, value).map(Value::Bool),
        ("@in", [value, Value::Map(map)]) => is_key(meter, map, value),
        ("@in", _) => Err("no such overload".into()),
        ("!_", [Value::Bool(value)]) => Ok(Value::Bool(!value)),
        ("-_", [value]) => negate(value),
        ("_+_", [one, other]) => add(meter, one, other),
        ("_-_", [one, other]) => subtract(one, other),
        ("_*_" | "_/_" | "_%_", [one, other]) => multiply(name, one, other),
        _ => return None,
    })
}

fn order<'a>(name: &str, one: &Value<'a>, other: &Value<'a>) -> Outcome<'a> {
    let is_comparable = matches!(
        one,
        Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::Timestamp(_)
            | Value::Duration(_)
    );
    if !is_comparable {
        return Err(Failure::Error(format!("no such overload: {name}")));
    }
    let order = compare(one, other)?;
    Ok(Value::Bool(match name {
        "_<_" => order.is_lt(),
        "_<=_" => order.is_le(),
        "_>_" => order.is_gt(),
        _ => order.is_ge(),
    }))
}

fn negate<'a>(value: &Value<'a>) -> Outcome<'a> {
    match value {
        Value::Int(value) => integer(value.checked_neg()),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => duration(value.checked_neg()),
        _ => Err(missing_operator("-_", value)),
    }
}

fn integer<'a>(value: Option<i64>) -> Outcome<'a> {
    Ok(Value::Int(value.ok_or("integer overflow")?))
}

fn unsigned<'a>(value: Option<u64>) -> Outcome<'a> {
    Ok(Value::Uint(value.ok_or("unsigned integer overflow")?))
}

fn duration<'a>(value: Option<i64>) -> Outcome<'a> {
    // cel-go adds the nanoseconds as integers.
    Ok(Value::Duration(value.ok_or("integer overflow")?))
}

fn timestamp<'a>(value: Option<Timestamp>) -> Outcome<'a> {
    Ok(Value::Timestamp(value.ok_or("timestamp overflow")?))
}

/// Returns the sum of two values. It also concatenates texts, bytes and lists.
pub(super) fn add<'a>(meter: &mut Meter, one: &Value<'a>, other: &Value<'a>) -> Outcome<'a> {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => integer(one.checked_add(*other)),
        (Value::Uint(one), Value::Uint(other)) => unsigned(one.checked_add(*other)),
        (Value::Double(one), Value::Double(other)) => Ok(Value::Double(one + other)),
        (Value::String(one), Value::String(other)) => {
            super::text(meter, one.len() + other.len(), || {
                format!("{}{}", &**one, &**other)
            })
        }
        (Value::Bytes(one), Value::Bytes(other)) => {
            meter.work((one.len() + other.len()) / 4)?;
            Ok(Value::Bytes([&**one, &**other].concat().into()))
        }
        (Value::Duration(one), Value::Duration(other)) => duration(one.checked_add(*other)),
        (Value::Timestamp(one), Value::Duration(other))
        | (Value::Duration(other), Value::Timestamp(one)) => timestamp(one.add((*other).into())),
        (Value::List(one), Value::List(other)) => concatenate(meter, one, other),
        _ if is_addable(one) => Err("no such overload".into()),
        _ => Err(missing_operator("_+_", one)),
    }
}

fn is_addable(value: &Value<'_>) -> bool {
    !matches!(
        value,
        Value::Bool(_) | Value::Null | Value::Map(_) | Value::Type(_) | Value::Optional(_)
    )
}

fn is_key<'a>(meter: &mut Meter, map: &Map<'a>, key: &Value<'a>) -> Outcome<'a> {
    let found = map.get(key).map(|value| meter.read(value)).transpose()?;
    match found {
        Some(Err(error)) => Err(error.into()),
        found => Ok(Value::Bool(found.is_some())),
    }
}

/// Concatenates lists. To a list of the type `set` only new items are added, and items of a list of the type
/// `map` replace those with the same keys.
fn concatenate<'a>(meter: &mut Meter, one: &List<'a>, other: &List<'a>) -> Outcome<'a> {
    meter.work(one.len() + other.len())?;
    let items = one.iter().map(|item| Ok(meter.read(item)??));
    let mut items: Vec<Value<'a>> = items.collect::<Result<_, Failure>>()?;
    let like = one.like();
    let kind = like.and_then(|schema| schema.extensions.list_type.as_deref());
    match (kind, like) {
        (Some("set"), _) => {
            let mut known: BTreeSet<_> = item_keys(one).collect();
            for item in other.iter() {
                let item = meter.read(item)??;
                let key = ScalarKey::of_value(&item);
                if key.is_none() || known.insert(key) {
                    items.push(item);
                }
            }
        }
        (Some("map"), Some(schema)) => {
            let keys = &schema.extensions.list_map_keys;
            let key = |item: &Value<'a>| map_list_key(item, keys);
            let indices = items
                .iter()
                .enumerate()
                .map(|(index, item)| (key(item), index));
            let indices: BTreeMap<_, _> = indices.collect();
            for item in other.iter() {
                let item = meter.read(item)??;
                match indices.get(&key(&item)) {
                    Some(index) => items[*index] = item,
                    None => items.push(item),
                }
            }
        }
        _ => {
            for item in other.iter() {
                items.push(meter.read(item)??);
            }
        }
    }
    Ok(Value::List(List::Made {
        items: items.into(),
        like,
    }))
}

fn subtract<'a>(one: &Value<'a>, other: &Value<'a>) -> Outcome<'a> {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => integer(one.checked_sub(*other)),
        (Value::Uint(one), Value::Uint(other)) => unsigned(one.checked_sub(*other)),
        (Value::Double(one), Value::Double(other)) => Ok(Value::Double(one - other)),
        (Value::Duration(one), Value::Duration(other)) => duration(one.checked_sub(*other)),
        (Value::Timestamp(one), Value::Duration(other)) => timestamp(one.add(-i128::from(*other))),
        (Value::Timestamp(one), Value::Timestamp(other)) => {
            let difference = one.total_nanoseconds() - other.total_nanoseconds();
            duration(i64::try_from(difference).ok())
        }
        (
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Timestamp(_),
            _,
        ) => Err("no such overload".into()),
        _ => Err(missing_operator("_-_", one)),
    }
}

fn multiply<'a>(name: &str, one: &Value<'a>, other: &Value<'a>) -> Outcome<'a> {
    match (name, one, other) {
        ("_*_", Value::Int(one), Value::Int(other)) => integer(one.checked_mul(*other)),
        ("_*_", Value::Uint(one), Value::Uint(other)) => unsigned(one.checked_mul(*other)),
        ("_*_", Value::Double(one), Value::Double(other)) => Ok(Value::Double(one * other)),
        ("_/_", Value::Int(_), Value::Int(0)) | ("_/_", Value::Uint(_), Value::Uint(0)) => {
            Err("division by zero".into())
        }
        ("_/_", Value::Int(one), Value::Int(other)) => integer(one.checked_div(*other)),
        ("_/_", Value::Uint(one), Value::Uint(other)) => unsigned(one.checked_div(*other)),
        ("_/_", Value::Double(one), Value::Double(other)) => Ok(Value::Double(one / other)),
        ("_%_", Value::Int(_), Value::Int(0)) | ("_%_", Value::Uint(_), Value::Uint(0)) => {
            Err("modulus by zero".into())
        }
        ("_%_", Value::Int(one), Value::Int(other)) => integer(one.checked_rem(*other)),
        ("_%_", Value::Uint(one), Value::Uint(other)) => unsigned(one.checked_rem(*other)),
        ("_*_" | "_/_", Value::Double(_), _) | (_, Value::Int(_) | Value::Uint(_), _) => {
            Err("no such overload".into())
        }
        _ => Err(missing_operator(name, one)),
    }
}
