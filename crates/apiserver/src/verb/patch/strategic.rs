//! Applies strategic merge patches, which merge lists by the rules in the schema of built-in kinds.
//!
//! The module follows `strategicpatch.StrategicMergeMapPatch` of Kubernetes 1.36, including the order of
//! merged lists.
//!
//! Guarantees:
//! - directives and nulls of a patch never become part of the object;
//! - the recursion depth is at most the depth of the patch, which the JSON parser limits to 128 levels;
//! - merging a list takes `O(n log n)` time, where `n` is the total number of items in the object's list and
//!   the patch's list;
//! - deletions from lists of primitives are applied before the other members of a patch. Kubernetes processes
//!   all members in random order.
//!
//! There is one difference from Kubernetes: if a value of the patch replaces a stored value, nulls inside the new value are
//! dropped. Kubernetes stores the zero value of the field's type instead of a null.
//!
//! A member that is not in the schema is merged if it is a map, and otherwise replaced. It is dropped when the result is
//! decoded.

mod list;

use serde_json::{Map, Value};

use super::refusal::Refusal;
use crate::typed::{MergeStrategy, Structure, ValueType};

pub(super) const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

#[derive(Clone, Copy)]
struct ListRule {
    items: ValueType,
    strategy: MergeStrategy,
}

/// Merges `patch` into `original`, whose type is `known`, and applies the directives of the patch, such as
/// `$patch` and `$retainKeys`.
pub(super) fn merge_map(
    original: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    known: ValueType,
) -> Result<(), Refusal> {
    match patch.remove(PATCH) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            plain_members(&mut patch);
            *original = patch;
            return Ok(());
        }
        Some(Value::String(directive)) if directive == "delete" => {
            original.clear();
            return Ok(());
        }
        Some(directive) => {
            patch.insert(PATCH.to_owned(), directive.clone());
            return Err(Refusal::unknown_directive(&directive, &patch));
        }
    }
    retain_keys(original, &mut patch)?;
    set_element_orders(original, &mut patch, known)?;
    for (name, value) in patch {
        if name.starts_with(DELETE_FROM_LIST) {
            let field = target(&name).ok_or(Refusal::Format("primitive list"))?;
            delete_from_list(original, field, value, known)?;
        } else {
            merge_member(original, name, value, known)?;
        }
    }
    Ok(())
}

/// Merges one member of a patch into `original`. The member must not be a directive, such as `$retainKeys`.
fn merge_member(
    original: &mut Map<String, Value>,
    name: String,
    value: Value,
    known: ValueType,
) -> Result<(), Refusal> {
    match (original.get_mut(&name), value) {
        (_, Value::Null) => {
            original.remove(&name);
        }
        (Some(Value::Object(old)), Value::Object(mut new)) => {
            let field = field(known, &name)?;
            if field.merge_strategy() == MergeStrategy::Replace {
                plain_members(&mut new);
                *old = new;
            } else {
                merge_map(old, new, field.of_items())?;
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            let rule = ListRule::of(field(known, &name)?);
            let taken = std::mem::take(old);
            *old = list::merge(taken, new, rule)?;
        }
        (_, value) => match without_marked(value) {
            Some(mut value) => {
                plain(&mut value);
                original.insert(name, value);
            }
            None => {
                original.remove(&name);
            }
        },
    }
    Ok(())
}

fn delete_from_list(
    original: &mut Map<String, Value>,
    field: &str,
    value: Value,
    known: ValueType,
) -> Result<(), Refusal> {
    match (original.get_mut(field), value) {
        (_, Value::Null) => {
            original.remove(field);
        }
        (Some(Value::Array(old)), Value::Array(gone)) => {
            let rule = ListRule::of(self::field(known, field)?);
            let taken = std::mem::take(old);
            *old = list::delete(taken, gone, rule)?;
        }
        _ => {}
    }
    Ok(())
}

/// Applies `$retainKeys`: removes the members of `original` that the directive does not list.
///
/// # Errors
///
/// Returns an error if the directive is not a list, or if the patch sets an unlisted member.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), Refusal> {
    const BAD: Refusal = Refusal::Format("retainKeys");
    let Some(directive) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let keys = directive.as_array().ok_or(BAD)?;
    let kept: std::collections::BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let complete = patch.iter().all(|(name, value)| {
        value.is_null() || is_list_directive(name) || kept.contains(name.as_str())
    });
    if !complete {
        return Err(BAD);
    }
    original.retain(|name, _| kept.contains(name.as_str()));
    Ok(())
}

/// Applies every `$setElementOrder/<field>`: merges the field's list in `patch` into the field's list in
/// `original`, and sorts the result in the order that the directive lists.
fn set_element_orders(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    known: ValueType,
) -> Result<(), Refusal> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|name| name.starts_with(SET_ELEMENT_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else {
            continue;
        };
        let order = array(order)?;
        let field = target(&directive).ok_or(Refusal::Format("setElementOrder list"))?;
        let old = match original.get(field) {
            None | Some(Value::Null) => None,
            Some(old) => Some(array(old.clone())?).filter(|old| !old.is_empty()),
        };
        let new = patch.get(field).cloned().map(array).transpose()?;
        let rule = list_rule(known, field)?;
        if let Some(merged) = list::merge_in_order(old, new, &order, rule)? {
            original.insert(field.to_owned(), Value::Array(merged));
            patch.remove(field);
        }
    }
    Ok(())
}

/// Returns the name of the field in a directive, such as `ports` in `$setElementOrder/ports`.
fn target(directive: &str) -> Option<&str> {
    directive.split_once('/').map(|(_, field)| field)
}

fn array(value: Value) -> Result<Vec<Value>, Refusal> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(Refusal::expected(&Value::Array(Vec::new()), &other)),
    }
}

fn is_list_directive(name: &str) -> bool {
    name.starts_with(SET_ELEMENT_ORDER) || name.starts_with(DELETE_FROM_LIST)
}

/// Removes from `value` all nested objects that contain the directive `$patch`.
///
/// Returns `None` if `value` itself is such an object.
fn without_marked(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let members = members.into_iter();
            let kept = members.filter_map(|(name, value)| Some((name, without_marked(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => {
            let kept = items.into_iter().filter_map(without_marked);
            Some(Value::Array(kept.collect()))
        }
        scalar => Some(scalar),
    }
}

/// Removes directives and nulls from a value of the patch.
pub(super) fn plain(value: &mut Value) {
    match value {
        Value::Object(members) => plain_members(members),
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

fn plain_members(members: &mut Map<String, Value>) {
    members.retain(|name, value| {
        !value.is_null() && name != PATCH && name != RETAIN_KEYS && !is_list_directive(name)
    });
    members.values_mut().for_each(plain);
}

/// Returns the type of the member `name` of an object of the type `known`, or an error if the object can't be merged.
fn field(known: ValueType, name: &str) -> Result<ValueType, Refusal> {
    match known.structure() {
        Structure::Map => Err(Refusal::other(
            "merging an object in json but data type is not struct, instead is: map",
        )),
        Structure::Opaque(type_name) => Err(unknown_field(type_name, name)),
        Structure::Struct(_) | Structure::List | Structure::Leaf => {
            Ok(known.member(name).unwrap_or(ValueType::Unknown))
        }
    }
}

/// Returns the merge rule of the list `name`, or an error if the type has no such list.
fn list_rule(known: ValueType, name: &str) -> Result<ListRule, Refusal> {
    let field = field(known, name)?;
    match (field.structure(), field, known.structure()) {
        (Structure::List, ..) => Ok(ListRule::of(field)),
        (_, ValueType::Unknown, Structure::Struct(of)) => Err(unknown_field(of, name)),
        _ => Err(Refusal::other(
            "expected slice or array type, but got: struct",
        )),
    }
}

fn unknown_field(type_name: &str, name: &str) -> Refusal {
    Refusal::other(format!(
        "unable to find api field in struct {type_name} for the json field {name:?}"
    ))
}

// === impl ListRule ===

impl ListRule {
    fn of(field: ValueType) -> ListRule {
        ListRule {
            items: field.of_items(),
            strategy: field.merge_strategy(),
        }
    }

    fn merge_key(self) -> Option<&'static str> {
        match self.strategy {
            MergeStrategy::MergeList(key) => key,
            MergeStrategy::Default | MergeStrategy::Replace => None,
        }
    }
}
