//! Removes fields from a value.

use serde_json::{Map as Members, Value};

use super::atom::{Handled, Identity, List, Map, Type};
use super::path::PathElement;
use super::set::{Node, Set};

/// Returns a copy of an object without some fields, and without everything below them.
///
/// A value of which all parts are removed becomes null, unless it is one of the fields itself.
pub(super) fn remove(object: &Value, fields: &Set, object_type: Type<'_>) -> Value {
    without(object, fields, object_type)
}

fn without(value: &Value, fields: &Set, value_type: Type<'_>) -> Value {
    let atom = value_type.atom();
    match (atom.handled(atom.part(Some(value))), value) {
        (Handled::Scalar(_), _) => value.clone(),
        (Handled::List(list), Value::Array(items))
            if !matches!(list.identity, Identity::Atomic) =>
        {
            items_without(&list, items, fields)
        }
        (Handled::Map(map), Value::Object(members)) if !map.is_atomic => {
            members_without(&map, members, fields)
        }
        _ => Value::Null,
    }
}

fn items_without(list: &List<'_>, items: &[Value], fields: &Set) -> Value {
    let mut kept = Vec::new();
    for item in items {
        let step = list.step_to(item).unwrap_or(PathElement::Unidentified);
        kept.extend(value_without(item, fields.get(&step), list.item));
    }
    if kept.is_empty() {
        return Value::Null;
    }
    Value::Array(kept)
}

fn members_without(map: &Map<'_>, members: &Members<String, Value>, fields: &Set) -> Value {
    let mut kept = Members::new();
    for (name, value) in members {
        let node = fields.get(&PathElement::field(name));
        let member = map.member(name).unwrap_or(Type::Untyped);
        if let Some(value) = value_without(value, node, member) {
            kept.insert(name.clone(), value);
        }
    }
    if kept.is_empty() {
        return Value::Null;
    }
    Value::Object(kept)
}

/// Returns what is left of a value, or `None` if it is removed.
fn value_without(value: &Value, fields: Option<&Node>, value_type: Type<'_>) -> Option<Value> {
    match fields {
        Some(node) if node.is_member => None,
        Some(node) if !node.below.is_empty() => Some(without(value, &node.below, value_type)),
        _ => Some(value.clone()),
    }
}
