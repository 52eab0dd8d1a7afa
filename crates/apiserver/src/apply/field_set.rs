//! Lists the fields of a value.

use std::collections::BTreeMap;

use serde_json::{Map as Members, Value};

use super::atom::{Handled, Identity, List, Map, Type};
use super::path::PathElement;
use super::planted::{self, Bug};
use super::set::{Node, Set};

/// Returns the paths of all fields of an object, as a manager owns them that applies it.
pub(super) fn fields_of(object: &Value, object_type: Type<'_>) -> Set {
    fields(object, object_type).below
}

fn fields(value: &Value, value_type: Type<'_>) -> Node {
    let atom = value_type.atom();
    match (atom.handled(atom.part(Some(value))), value) {
        (Handled::Scalar(_), _) => Node::leaf(),
        (Handled::List(list), _) if matches!(list.identity, Identity::Atomic) => Node::leaf(),
        (Handled::Map(map), _) if map.is_atomic && !planted::has(Bug::AtomicObjects) => {
            Node::leaf()
        }
        (Handled::List(list), Value::Array(items)) => of_items(&list, items),
        (Handled::Map(map), Value::Object(members)) => of_members(&map, members),
        _ => Node::default(),
    }
}

fn of_members(map: &Map<'_>, members: &Members<String, Value>) -> Node {
    let below = members.iter().filter_map(|(name, value)| {
        let field = map.field(name);
        let mut node = fields(value, field.or(map.member)?);
        let is_empty = match value {
            Value::Null => true,
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        // A struct is no field of its own, but a member of a map is.
        node.is_member |= is_empty || field.is_none();
        Some((PathElement::field(name), node))
    });
    Node {
        is_member: false,
        below: below.collect(),
    }
}

fn of_items(list: &List<'_>, items: &[Value]) -> Node {
    // Of an item that occurs twice, only the item itself is a field.
    let mut found: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
    for item in items {
        let step = list.step_to(item).unwrap_or(PathElement::Unidentified);
        let only = found.entry(step).and_modify(|only| *only = None);
        only.or_insert(Some(item));
    }
    let below = found.into_iter().map(|(step, item)| {
        let mut node = item.map_or_else(Node::default, |item| fields(item, list.item));
        node.is_member = true;
        (step, node)
    });
    Node {
        is_member: false,
        below: below.collect(),
    }
}
