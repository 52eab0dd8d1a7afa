//! Compares two values of a type.

use std::collections::BTreeMap;

use serde_json::{Map as Members, Value};

use super::atom::{Handled, Identity, List, Map, Type};
use super::errors::{Errors, Name};
use super::path::{PathElement, equal_values};
use super::set::{Node, Set};
use super::validate::scalar_error;

/// The members of an object.
type Object = Members<String, Value>;

/// The fields in which an object differs from an older one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) removed: Set,
    pub(super) modified: Set,
    pub(super) added: Set,
}

impl Comparison {
    /// Removes fields, and all fields below them.
    pub(super) fn ignore(&mut self, fields: &Set) {
        self.removed.subtract_all(fields);
        self.modified.subtract_all(fields);
        self.added.subtract_all(fields);
    }
}

/// Compares two objects of one type.
///
/// # Errors
///
/// Returns the message about values that don't have the type.
pub(super) fn compare(
    old: &Value,
    new: &Value,
    object_type: Type<'_>,
) -> Result<Comparison, String> {
    let mut errors = Errors::default();
    let changes = changes(object_type, Sides::of(Some(old), Some(new)), &mut errors);
    errors.into_result()?;
    Ok(Comparison {
        removed: changes.removed.below,
        modified: changes.modified.below,
        added: changes.added.below,
    })
}

/// The differences of a value, and of the values below it.
#[derive(Default)]
struct Changes {
    removed: Node,
    modified: Node,
    added: Node,
}

/// The old and the new value. At least one of them exists.
#[derive(Clone, Copy)]
pub(super) struct Sides<'v> {
    pub(super) old: Option<&'v Value>,
    pub(super) new: Option<&'v Value>,
}

impl<'v> Sides<'v> {
    pub(super) fn of(old: Option<&'v Value>, new: Option<&'v Value>) -> Sides<'v> {
        Sides { old, new }
    }

    /// Returns both values as lists. A value of another type counts as absent.
    pub(super) fn lists(self) -> (Option<&'v [Value]>, Option<&'v [Value]>) {
        let list = |value: &'v Value| value.as_array().map(Vec::as_slice);
        (self.old.and_then(list), self.new.and_then(list))
    }

    /// Returns both values as objects. A value of another type counts as absent.
    pub(super) fn maps(self) -> (Option<&'v Object>, Option<&'v Object>) {
        let old = self.old.and_then(Value::as_object);
        (old, self.new.and_then(Value::as_object))
    }

    /// Returns the parts of a type by which the two values are treated, the last one for the result.
    pub(super) fn handled(self, value_type: Type<'_>) -> (Option<Handled<'_>>, Handled<'_>) {
        let atom = value_type.atom();
        let (old, new) = (atom.part(self.old), atom.part(self.new));
        if self.new.is_none() {
            (None, atom.handled(old))
        } else if self.old.is_none() || old == new {
            (None, atom.handled(new))
        } else {
            (Some(atom.handled(old)), atom.handled(new))
        }
    }

    /// Returns whether the values are treated as one field: an atomic value, or two empty ones, so that null and
    /// empty values differ.
    pub(super) fn is_leaf(self, handled: &Handled<'_>) -> bool {
        match handled {
            Handled::Scalar(_) => true,
            Handled::List(list) => {
                let (old, new) = self.lists();
                let is_empty = |list: Option<&[Value]>| list.is_none_or(<[Value]>::is_empty);
                matches!(list.identity, Identity::Atomic) || (is_empty(old) && is_empty(new))
            }
            Handled::Map(map) => {
                let (old, new) = self.maps();
                let is_empty = |map: Option<&Members<_, _>>| map.is_none_or(Members::is_empty);
                map.is_atomic || (is_empty(old) && is_empty(new))
            }
        }
    }

    /// Adds an error if neither value is a scalar of the type. Returns whether one of them is.
    pub(super) fn check_scalar(self, handled: &Handled<'_>, errors: &mut Errors) -> bool {
        let Handled::Scalar(scalar) = *handled else {
            return true;
        };
        let error = |value: Option<&Value>| value.and_then(|value| scalar_error(scalar, value));
        match (error(self.old), error(self.new)) {
            (Some(old), Some(new)) => {
                errors.push(format!("lhs: {old}"));
                errors.push(format!("rhs: {new}"));
                false
            }
            _ => true,
        }
    }
}

fn changes(value_type: Type<'_>, sides: Sides<'_>, errors: &mut Errors) -> Changes {
    let mut found = Changes::default();
    let (first, last) = sides.handled(value_type);
    if let Some(first) = first {
        found.visit(&first, sides, errors);
    }
    let is_leaf = found.visit(&last, sides, errors);
    if !is_leaf {
        found.added.is_member |= sides.old.is_none();
        found.removed.is_member |= sides.new.is_none();
    }
    found
}

impl Changes {
    /// Adds the changes of a value by one part of its type. Returns whether the value is one field.
    fn visit(&mut self, handled: &Handled<'_>, sides: Sides<'_>, errors: &mut Errors) -> bool {
        if !sides.check_scalar(handled, errors) {
            return false;
        }
        if sides.is_leaf(handled) {
            match (sides.old, sides.new) {
                (None, _) => self.added.is_member = true,
                (_, None) => self.removed.is_member = true,
                (Some(old), Some(new)) => self.modified.is_member |= !equal_values(old, new),
            }
            return true;
        }
        match handled {
            Handled::List(list) => self.items(list, sides, errors),
            Handled::Map(map) => self.members(map, sides, errors),
            Handled::Scalar(_) => {}
        }
        false
    }

    /// Adds the changes below a step.
    fn below(&mut self, step: PathElement, below: Changes) {
        self.removed.below.insert(step.clone(), below.removed);
        self.modified.below.insert(step.clone(), below.modified);
        self.added.below.insert(step, below.added);
    }

    fn members(&mut self, map: &Map<'_>, sides: Sides<'_>, errors: &mut Errors) {
        let (old, new) = sides.maps();
        each_member(old, new, |name, sides| {
            let Some(member) = map.member(name) else {
                return errors.at(&Name(name), |errors| {
                    errors.push("schema error: invalid atom: inlined");
                });
            };
            let below = errors.at(&Name(name), |errors| changes(member, sides, errors));
            self.below(PathElement::field(name), below);
        });
    }

    fn items(&mut self, list: &List<'_>, sides: Sides<'_>, errors: &mut Errors) {
        let (old, new) = sides.lists();
        let mut found: BTreeMap<PathElement, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, items) in [old, new].into_iter().enumerate() {
            for (at, item) in items.unwrap_or_default().iter().enumerate() {
                match list.step_to(item) {
                    Ok(step) => found.entry(step).or_default()[side].push(item),
                    Err(why) => errors.push(format!("element {at}: {why}")),
                }
            }
        }
        for (step, [old, new]) in found {
            let mut below = Changes::default();
            let mut one = |old: Option<&&Value>, new: Option<&&Value>| {
                let sides = Sides::of(old.copied(), new.copied());
                errors.at(&step, |errors| changes(list.item, sides, errors))
            };
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => below = one(old.first(), new.first()),
                // Items that occur several times are compared as one field.
                ([_, _, ..], [_, _, ..]) => {
                    let mut pairs = old.iter().zip(&new);
                    let is_equal =
                        old.len() == new.len() && pairs.all(|(old, new)| equal_values(old, new));
                    below.modified.is_member = !is_equal;
                }
                ([_, _, ..], _) => {
                    if !new.is_empty() {
                        below = one(None, new.first());
                    }
                    below.removed.is_member = true;
                }
                (_, [_, _, ..]) => {
                    if !old.is_empty() {
                        below = one(old.first(), None);
                    }
                    below.added.is_member = true;
                }
            }
            self.below(step, below);
        }
    }
}

/// Calls `visit` with each member that one of two objects has.
pub(super) fn each_member<'v>(
    old: Option<&'v Object>,
    new: Option<&'v Object>,
    mut visit: impl FnMut(&'v str, Sides<'v>),
) {
    for (name, value) in old.into_iter().flatten() {
        let new = new.and_then(|new| new.get(name));
        visit(name, Sides::of(Some(value), new));
    }
    for (name, value) in new.into_iter().flatten() {
        if old.is_none_or(|old| !old.contains_key(name)) {
            visit(name, Sides::of(None, Some(value)));
        }
    }
}
