//! Merges lists for a strategic merge patch: lists of objects by merge key, primitives as sets.
//!
//! Guarantees for the order of a merged list:
//! - the items of the patch have the order of the patch, and all other items have the order of the object;
//! - if X is one of the other items, X is placed before a patch item that comes after X in the object's list.
//!   If there are several such patch items, the first in the order of the patch counts;
//! - if no patch item comes after X in the object's list, X is placed at the end.
//!
//! For example, the object's list `a, b, c` and the patch's list `c, a` result in `b, c, a`. The item `b` is
//! placed before `c`, because `c` comes after `b` in the object's list.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{ListRule, PATCH, merge_map, plain, without_marked};
use crate::quote::go_text;
use crate::typed::MergeStrategy;
use crate::verb::patch::refusal::{Refusal, same_type};

/// Merges the list `patch` into `original`, or returns `patch` if the strategy does not merge lists.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    rule: ListRule,
) -> Result<Vec<Value>, Refusal> {
    if matches!(rule.strategy, MergeStrategy::MergeList(_)) {
        return merge_items(original, patch, rule);
    }
    let mut patch = Value::Array(patch);
    plain(&mut patch);
    super::array(patch)
}

/// Returns `original` without the items in `gone`, the content of `$deleteFromPrimitiveList`.
pub(super) fn delete(
    original: Vec<Value>,
    gone: Vec<Value>,
    rule: ListRule,
) -> Result<Vec<Value>, Refusal> {
    if original.is_empty() && gone.is_empty() {
        return Ok(original);
    }
    // Kubernetes also merges lists of objects here.
    if are_maps(&original, &gone)? {
        return merge_items(original, gone, rule);
    }
    let gone: BTreeSet<String> = gone.iter().map(Value::to_string).collect();
    let kept = original.into_iter();
    Ok(kept
        .filter(|item| !gone.contains(&item.to_string()))
        .collect())
}

/// Merges `patch` into `original`, and sorts the result by `order`, the content of `$setElementOrder`.
pub(super) fn merge_in_order(
    original: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    order: &[Value],
    rule: ListRule,
) -> Result<Option<Vec<Value>>, Refusal> {
    let key = rule.merge_key();
    check_order(patch.as_deref().unwrap_or_default(), order, key)?;
    let (server, new) = (original.as_deref(), patch.as_deref());
    let (server, new) = (server.unwrap_or_default(), new.unwrap_or_default());
    let is_empty = server.is_empty() && new.is_empty();
    let server_order = server_order(server, new, key);
    let merged = match (original, patch) {
        (None, None) => return Ok(None),
        (Some(original), None) => original,
        (None, Some(patch)) => {
            let kept = patch.into_iter().filter_map(without_marked);
            kept.map(|mut item| {
                plain(&mut item);
                item
            })
            .collect()
        }
        (Some(original), Some(patch)) => merge(original, patch, rule)?,
    };
    if is_empty {
        return Err(Refusal::other("no elements in any of the given slices"));
    }
    are_maps(&server_order, &merged)?;
    let places = places(order, key)?;
    let server_places = places_of(&server_order, key)?;
    in_order(merged, &places, &server_places, key).map(Some)
}

fn merge_items(
    original: Vec<Value>,
    patch: Vec<Value>,
    rule: ListRule,
) -> Result<Vec<Value>, Refusal> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let key = rule.merge_key();
    if !are_maps(&original, &patch)? {
        let server_places = places_of(&original, key)?;
        let places = places_of(&patch, key)?;
        let mut seen = BTreeSet::new();
        let all = original.into_iter().chain(patch);
        let merged = all.filter(|item| seen.insert(item.to_string())).collect();
        return in_order(merged, &places, &server_places, key);
    }
    let Some(key) = key else {
        return Err(Refusal::other(
            "cannot merge lists without merge key for struct",
        ));
    };
    let (original, patch) = obey_markers(original, patch, key)?;
    let server_places = places_of(&original, Some(key))?;
    let places = places_of(&patch, Some(key))?;
    let merged = merge_maps(original, patch, key, rule)?;
    in_order(merged, &places, &server_places, Some(key))
}

/// Merges each item of `patch` into the item of `original` with the same value of `key`.
///
/// Appends an item of `patch` to `original` if `original` has no such item. Returns the merged list.
fn merge_maps(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    rule: ListRule,
) -> Result<Vec<Value>, Refusal> {
    let mut at = BTreeMap::new();
    for (place, item) in original.iter().enumerate() {
        if let Some(value) = item.get(key) {
            at.entry(value.to_string()).or_insert(place);
        }
    }
    for mut item in patch {
        let identity = identity(&item, Some(key))?;
        match (at.get(&identity).map(|place| &mut original[*place]), item) {
            (Some(Value::Object(old)), Value::Object(new)) => merge_map(old, new, rule.items)?,
            (_, new) => {
                item = new;
                plain(&mut item);
                at.insert(identity, original.len());
                original.push(item);
            }
        }
    }
    Ok(original)
}

/// Applies the `$patch` directives, and returns the remaining items of `original` and of `patch`.
fn obey_markers(
    original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Refusal> {
    let (mut gone, mut rest, mut replace) = (BTreeSet::new(), Vec::new(), false);
    for item in patch {
        let Some(marker) = item.get(PATCH) else {
            rest.push(item);
            continue;
        };
        match marker.as_str() {
            Some("delete") => {
                gone.insert(identity(&item, Some(key))?);
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(Refusal::other(
                    "merging lists cannot yet be specified in the patch",
                ));
            }
            _ => return Err(Refusal::unknown_directive(marker, map(&item)?)),
        }
    }
    if replace {
        let mut items = Value::Array(rest);
        plain(&mut items);
        return Ok((super::array(items)?, Vec::new()));
    }
    let is_kept = |item: &Value| {
        let value = item.get(key).map(Value::to_string);
        value.is_none_or(|value| !gone.contains(&value))
    };
    let kept = original.into_iter().filter(is_kept).collect();
    Ok((kept, rest))
}

/// Returns whether the items of both lists are JSON objects.
///
/// # Errors
/// Returns an error if the items have different types, or if items are lists.
fn are_maps(original: &[Value], patch: &[Value]) -> Result<bool, Refusal> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else {
        return Ok(false);
    };
    if first.is_array() {
        return Err(Refusal::ListOfLists);
    }
    if items.all(|item| same_type(first, item)) {
        return Ok(first.is_object());
    }
    let lists = Value::Array(vec![
        Value::Array(original.to_vec()),
        Value::Array(patch.to_vec()),
    ]);
    Err(Refusal::other(format!(
        "list element types are not identical: {}",
        go_text(&lists)
    )))
}

/// Checks that `order`, the content of `$setElementOrder`, lists the items of `patch` in the same order.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Refusal> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut open = Vec::with_capacity(patch.len());
    for item in patch {
        let is_deleted =
            key.is_some() && map(item)?.get(PATCH).is_some_and(|mark| mark == "delete");
        if !is_deleted {
            open.push(item);
        }
    }
    let (mut open, mut ordered) = (open.into_iter().peekable(), order.iter().peekable());
    while let (Some(item), Some(candidate)) = (open.peek(), ordered.peek()) {
        if item.get(PATCH).is_some() {
            open.next();
            continue;
        }
        if identity(item, key)? == identity(candidate, key)? {
            open.next();
        }
        ordered.next();
    }
    if open.peek().is_none() {
        return Ok(());
    }
    let (patch, order) = (Value::Array(patch.to_vec()), Value::Array(order.to_vec()));
    Err(Refusal::other(format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        go_text(&patch),
        go_text(&order)
    )))
}

/// Returns the list whose order determines the places of items that `$setElementOrder` does not name.
///
/// Without a merge key, the list is `original`. With a merge key, it is `original` without the items that
/// `patch` deletes, followed by new items of `patch`. As in Kubernetes, at most as many new items are added
/// as were deleted. With the marker `$patch: replace`, no new items are added.
fn server_order(original: &[Value], patch: &[Value], key: Option<&str>) -> Vec<Value> {
    let Some(key) = key else {
        return original.to_vec();
    };
    let text = |item: &Value| item.get(key).map(Value::to_string);
    let is_marked = |item: &&Value, with: &str| item.get(PATCH).is_some_and(|mark| mark == with);
    let gone = patch.iter().filter(|item| is_marked(item, "delete"));
    let gone: BTreeSet<String> = gone.filter_map(text).collect();
    let is_kept = |item: &&Value| text(item).is_none_or(|text| !gone.contains(&text));
    let mut order: Vec<Value> = original.iter().filter(is_kept).cloned().collect();
    if patch.iter().any(|item| is_marked(&item, "replace")) {
        return order;
    }
    // Kubernetes overwrites the deleted items in a Go slice, so only as many new items fit.
    let room = original.len() - order.len();
    let mut known: BTreeSet<String> = order.iter().filter_map(text).collect();
    let unmarked = patch.iter().filter(|item| item.get(PATCH).is_none());
    let added = unmarked.filter(|item| text(item).is_some_and(|text| known.insert(text)));
    order.extend(added.take(room).cloned());
    order
}

/// Sorts a merged list.
///
/// `places` contains the positions of items in the order that the patch requires, and `server_places` the
/// positions in the stored order. Both maps have the [`identity`] of an item as key.
///
/// The documentation of this module describes the resulting order.
fn in_order(
    merged: Vec<Value>,
    places: &BTreeMap<String, usize>,
    server_places: &BTreeMap<String, usize>,
    key: Option<&str>,
) -> Result<Vec<Value>, Refusal> {
    let (mut named, mut rest) = (Vec::new(), Vec::new());
    for item in merged {
        let identity = identity(&item, key)?;
        let on_server = server_places.get(&identity).copied();
        match places.get(&identity) {
            Some(place) => named.push((*place, on_server, item)),
            None => rest.push((on_server.unwrap_or(usize::MAX), on_server, item)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    rest.sort_by_key(|(place, ..)| *place);
    let mut all = Vec::with_capacity(named.len() + rest.len());
    let mut rest = rest.into_iter().peekable();
    for (_, named_on_server, item) in named {
        while let Some((.., left)) = rest.next_if(|(_, on_server, _)| {
            on_server.is_some_and(|left| named_on_server.is_some_and(|right| left < right))
        }) {
            all.push(left);
        }
        all.push(item);
    }
    all.extend(rest.map(|(.., item)| item));
    Ok(all)
}

/// Returns the index of the first item with each [`identity`].
fn places_of(items: &[Value], key: Option<&str>) -> Result<BTreeMap<String, usize>, Refusal> {
    let mut places = BTreeMap::new();
    for (place, item) in items.iter().enumerate() {
        places.entry(identity(item, key)?).or_insert(place);
    }
    Ok(places)
}

/// Maps each [`identity`] in a `$setElementOrder` list to the index of the first item with this identity.
///
/// # Errors
/// Returns an error if the list has a merge key, but an item is not an object.
fn places(order: &[Value], key: Option<&str>) -> Result<BTreeMap<String, usize>, Refusal> {
    if key.is_some()
        && let Some(at) = order.iter().position(|item| !item.is_object())
    {
        return Err(Refusal::other(format!("value for key {at} is not a map")));
    }
    places_of(order, key)
}

/// Returns the JSON text of the item's member `key`, or of the whole item if `key` is `None`.
fn identity(item: &Value, key: Option<&str>) -> Result<String, Refusal> {
    let Some(key) = key else {
        return Ok(item.to_string());
    };
    let members = map(item)?;
    let value = members.get(key);
    value
        .map(Value::to_string)
        .ok_or_else(|| Refusal::no_merge_key(members, key))
}

fn map(item: &Value) -> Result<&Map<String, Value>, Refusal> {
    item.as_object()
        .ok_or_else(|| Refusal::expected(&Value::Object(Map::new()), item))
}
