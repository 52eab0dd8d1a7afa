//! Functions of lists and sets.

use std::cmp::Ordering;

use super::super::cost::{Failure, Meter};
use super::super::equality::{compare, contains, equal};
use super::super::value::{List, Value};
use super::{Outcome, operators};

pub(super) fn call<'a>(
    meter: &mut Meter,
    name: &str,
    overload: Option<&str>,
    arguments: &[Value<'a>],
) -> Option<Outcome<'a>> {
    Some(match (name, arguments) {
        ("lists.range", [Value::Int(count)]) => range(meter, *count),
        ("isSorted", [Value::List(list)]) => is_sorted(meter, list),
        ("sum", [Value::List(list)]) => sum(meter, list, overload),
        ("min", [Value::List(list)]) => extreme(meter, list, "min", Ordering::Less),
        ("max", [Value::List(list)]) => extreme(meter, list, "max", Ordering::Greater),
        ("indexOf", [Value::List(list), item]) => index_of(meter, list, item, 0..list.len()),
        ("lastIndexOf", [Value::List(list), item]) => {
            index_of(meter, list, item, (0..list.len()).rev())
        }
        ("distinct", [Value::List(list)]) => distinct(meter, list),
        ("reverse", [Value::List(list)]) => items(meter, list).map(|mut items| {
            items.reverse();
            Value::list(items)
        }),
        ("slice", [Value::List(list), Value::Int(start), Value::Int(end)]) => {
            slice(meter, list, *start, *end)
        }
        ("first", [Value::List(list)]) => optional_item(list, 0),
        ("last", [Value::List(list)]) => optional_item(list, list.len().wrapping_sub(1)),
        ("flatten", [Value::List(list)]) => flatten(meter, list, 1),
        ("flatten", [Value::List(list), Value::Int(depth)]) => flatten(meter, list, *depth),
        ("sort", [Value::List(list)]) => sort(meter, list, list),
        ("@sortByAssociatedKeys", [Value::List(list), Value::List(keys)]) => {
            sort(meter, list, keys)
        }
        ("sets.contains", [Value::List(one), Value::List(other)]) => {
            contains_all(meter, one, other).map(Value::Bool)
        }
        ("sets.intersects", [Value::List(one), Value::List(other)]) => {
            intersects(meter, one, other)
        }
        ("sets.equivalent", [Value::List(one), Value::List(other)]) => {
            equivalent(meter, one, other)
        }
        _ => return None,
    })
}

fn items<'a>(meter: &mut Meter, list: &List<'a>) -> Result<Vec<Value<'a>>, Failure> {
    meter.work(list.len())?;
    list.iter().map(|item| Ok(meter.read(item)??)).collect()
}

fn range<'a>(meter: &mut Meter, count: i64) -> Outcome<'a> {
    meter.work(usize::try_from(count).unwrap_or(0))?;
    Ok(Value::list((0..count).map(Value::Int).collect()))
}

fn is_sorted<'a>(meter: &mut Meter, list: &List<'a>) -> Outcome<'a> {
    let items = items(meter, list)?;
    for pair in items.windows(2) {
        if compare(&pair[0], &pair[1]) == Ok(Ordering::Greater) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(meter: &mut Meter, list: &List<'a>, overload: Option<&str>) -> Outcome<'a> {
    let items = items(meter, list)?;
    // The overload is unknown for a list of any type.
    let zero = match (overload, items.first()) {
        (Some("list_uint_sum_uint"), _) | (None, Some(Value::Uint(_))) => Value::Uint(0),
        (Some("list_double_sum_double"), _) | (None, Some(Value::Double(_))) => Value::Double(0.0),
        (Some("list_duration_sum_duration"), _) | (None, Some(Value::Duration(_))) => {
            Value::Duration(0)
        }
        _ => Value::Int(0),
    };
    items
        .iter()
        .try_fold(zero, |sum, item| operators::add(meter, &sum, item))
}

fn extreme<'a>(meter: &mut Meter, list: &List<'a>, name: &str, preferred: Ordering) -> Outcome<'a> {
    let mut items = items(meter, list)?.into_iter();
    let first = items
        .next()
        .ok_or_else(|| format!("{name} called on empty list"))?;
    Ok(items.fold(first, |best, item| match compare(&item, &best) {
        Ok(order) if order == preferred => item,
        _ => best,
    }))
}

fn index_of<'a>(
    meter: &mut Meter,
    list: &List<'a>,
    item: &Value<'a>,
    indices: impl Iterator<Item = usize>,
) -> Outcome<'a> {
    for index in indices {
        let candidate = list.get(index).map(|item| meter.read(item)).transpose()?;
        let Some(Ok(candidate)) = candidate else {
            continue;
        };
        match equal(meter, &candidate, item) {
            Ok(true) => return Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))),
            Err(Failure::LimitExceeded) => return Err(Failure::LimitExceeded),
            _ => {}
        }
    }
    Ok(Value::Int(-1))
}

fn distinct<'a>(meter: &mut Meter, list: &List<'a>) -> Outcome<'a> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    for item in items(meter, list)? {
        let mut is_known = false;
        for known in &unique {
            match equal(meter, &item, known) {
                Ok(true) => {
                    is_known = true;
                    break;
                }
                Err(Failure::LimitExceeded) => return Err(Failure::LimitExceeded),
                _ => {}
            }
        }
        if !is_known {
            unique.push(item);
        }
    }
    Ok(Value::list(unique))
}

fn slice<'a>(meter: &mut Meter, list: &List<'a>, start: i64, end: i64) -> Outcome<'a> {
    let refuse = |why: &str| {
        Err(Failure::Error(format!(
            "cannot slice({start}, {end}), {why}"
        )))
    };
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return refuse("negative indexes not supported");
    };
    if from > to {
        return refuse("start index must be less than or equal to end index");
    }
    if list.len() < to {
        return refuse(&format!("list is length {}", list.len()));
    }
    let items = items(meter, list)?;
    Ok(Value::list(items[from..to].to_vec()))
}

fn optional_item<'a>(list: &List<'a>, index: usize) -> Outcome<'a> {
    match list.get(index) {
        Some(item) => Ok(Value::some(item?)),
        None => Ok(Value::Optional(None)),
    }
}

fn flatten<'a>(meter: &mut Meter, list: &List<'a>, depth: i64) -> Outcome<'a> {
    if depth < 0 {
        return Err("level must be non-negative".into());
    }
    let mut flat = Vec::new();
    flatten_into(meter, list, depth, &mut flat)?;
    Ok(Value::list(flat))
}

fn flatten_into<'a>(
    meter: &mut Meter,
    list: &List<'a>,
    depth: i64,
    flat: &mut Vec<Value<'a>>,
) -> Result<(), Failure> {
    for item in items(meter, list)? {
        match item {
            Value::List(nested) if depth > 0 => flatten_into(meter, &nested, depth - 1, flat)?,
            item => flat.push(item),
        }
    }
    Ok(())
}

fn sort<'a>(meter: &mut Meter, list: &List<'a>, keys: &List<'a>) -> Outcome<'a> {
    let (items, keys) = (items(meter, list)?, items(meter, keys)?);
    if items.len() != keys.len() {
        let expected = "expected a list of the same size as the associated keys list";
        let (one, other) = (items.len(), keys.len());
        let message = format!(
            "@sortByAssociatedKeys() {expected}, but got {one} and {other} elements respectively"
        );
        return Err(message.into());
    }
    if let Some(first) = keys.first() {
        if compare(first, first).is_err() && !matches!(first, Value::Double(_)) {
            return Err("list elements must be comparable".into());
        }
        if keys.iter().any(|key| key.type_name() != first.type_name()) {
            return Err("list elements must have the same type".into());
        }
    }
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(items).collect();
    // A comparison of values that have no order is inconsistent, which a merge sort of our own tolerates.
    merge_sort(&mut pairs);
    Ok(Value::list(
        pairs.into_iter().map(|(_, item)| item).collect(),
    ))
}

/// Sorts by the keys. Values without an order, such as NaN, are equal to all others.
fn merge_sort<'a>(pairs: &mut Vec<(Value<'a>, Value<'a>)>) {
    let is_less = |one: &Value<'a>, other: &Value<'a>| compare(one, other) == Ok(Ordering::Less);
    let mut width = 1;
    while width < pairs.len() {
        let mut merged = Vec::with_capacity(pairs.len());
        for chunk in pairs.chunks(2 * width) {
            let (mut left, mut right) = chunk.split_at(width.min(chunk.len()));
            while let ([one, ..], [other, ..]) = (left, right) {
                let side = if is_less(&other.0, &one.0) {
                    &mut right
                } else {
                    &mut left
                };
                merged.push(side[0].clone());
                *side = &side[1..];
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        *pairs = merged;
        width *= 2;
    }
}

fn contains_all<'a>(meter: &mut Meter, list: &List<'a>, other: &List<'a>) -> Result<bool, Failure> {
    for item in other.iter() {
        let item = meter.read(item)??;
        if !contains(meter, list, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(meter: &mut Meter, one: &List<'a>, other: &List<'a>) -> Outcome<'a> {
    for item in one.iter() {
        let Ok(item) = meter.read(item)? else {
            continue;
        };
        match contains(meter, other, &item) {
            Ok(true) => return Ok(Value::Bool(true)),
            Err(Failure::LimitExceeded) => return Err(Failure::LimitExceeded),
            _ => {}
        }
    }
    Ok(Value::Bool(false))
}

fn equivalent<'a>(meter: &mut Meter, one: &List<'a>, other: &List<'a>) -> Outcome<'a> {
    let equivalent = contains_all(meter, one, other)? && contains_all(meter, other, one)?;
    Ok(Value::Bool(equivalent))
}
