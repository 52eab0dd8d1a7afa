//! Adapts sets of fields to a type: after a change of the type, and for the removal of fields.

use super::atom::{Identity, Type};
use super::path::PathElement;
use super::planted::{self, Bug};
use super::set::{Node, Set};

/// Returns the fields with those below an atomic value replaced by the value itself, or `None` if there are none.
///
/// Such fields were owned before a list or an object of the type became atomic.
pub(super) fn reconciled(fields: &Set, object_type: Type<'_>) -> Option<Set> {
    let is_atomic = object_type.atom().map.is_some_and(|map| map.is_atomic);
    if is_atomic {
        // The whole object has no owner.
        return None;
    }
    below_reconciled(fields, |step| step_type(object_type, step))
}

/// Calls `reconciled_node` with all nodes. Returns the changed set, or `None` if no node has changed.
fn below_reconciled<'a>(
    fields: &Set,
    type_of: impl Fn(&PathElement) -> Option<Type<'a>>,
) -> Option<Set> {
    let mut changed = Vec::new();
    for (step, node) in fields.nodes() {
        if let Some(node) = type_of(step).and_then(|value_type| reconciled_node(node, value_type)) {
            changed.push((step.clone(), node));
        }
    }
    if changed.is_empty() {
        return None;
    }
    let mut fields = fields.clone();
    for (step, node) in changed {
        fields.replace(step, node);
    }
    Some(fields)
}

fn reconciled_node(node: &Node, value_type: Type<'_>) -> Option<Node> {
    let atom = value_type.atom();
    let is_atomic = match (&atom.map, &atom.scalar, &atom.list) {
        (Some(map), _, _) if map.is_deduced() => return None,
        (Some(map), _, _) => map.is_atomic,
        (None, None, Some(list)) => matches!(list.identity, Identity::Atomic),
        (None, Some(_), _) | (None, None, None) => return None,
    };
    if is_atomic {
        return (!node.below.is_empty()).then(Node::leaf);
    }
    let below = below_reconciled(&node.below, |step| step_type(value_type, step))?;
    Some(Node {
        is_member: node.is_member,
        below,
    })
}

/// Returns the type of the value at a step below a value, as far as a value has owners below it.
fn step_type<'a>(value_type: Type<'a>, step: &PathElement) -> Option<Type<'a>> {
    let atom = value_type.atom();
    match (&atom.map, &atom.scalar, &atom.list, step) {
        (Some(map), _, _, PathElement::Field(name)) => map.member(name),
        (Some(map), _, _, _) => map.member,
        (None, None, Some(list), _) => Some(list.item),
        _ => None,
    }
}

/// Adds the structs above the fields to the fields.
///
/// A struct is then removed with its last field.
pub(super) fn with_structs(fields: &Set, object_type: Option<Type<'_>>) -> Set {
    let atom = object_type.map(Type::atom);
    let (map, list) = atom.map_or((None, None), |atom| (atom.map, atom.list));
    let nodes = fields.nodes().map(|(step, node)| {
        if node.below.is_empty() {
            return (step.clone(), Node::leaf());
        }
        let (is_struct, below_type) = match (step, &map, &list) {
            (PathElement::Field(name), Some(map), _) => {
                let field = map.field(name);
                let is_struct = field.is_some() && !planted::has(Bug::Structs);
                (is_struct, field.or(map.member))
            }
            (PathElement::Key(_), _, Some(list)) => (false, Some(list.item)),
            _ => (false, None),
        };
        let node = Node {
            is_member: node.is_member || is_struct,
            below: with_structs(&node.below, below_type),
        };
        (step.clone(), node)
    });
    nodes.collect()
}
