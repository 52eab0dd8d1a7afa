//! Defines the steps of a path to a field, their order, and their text in messages.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::{Number, Value};

use super::planted::{self, Bug};
use crate::quote::{Quoted, go_float};

/// One step of a path to a field.
///
/// The order is that of structured-merge-diff. Numbers are compared as floating-point numbers, so that the order is
/// total.
#[derive(Clone, Debug)]
pub(super) enum PathElement {
    /// A member of an object.
    Field(Arc<str>),
    /// The item of a list whose members have these values, sorted by name.
    Key(Arc<[(Box<str>, Value)]>),
    /// The item of a set.
    Value(Arc<Value>),
    /// The item of a list at a position.
    Index(i64),
    /// A list item that can't be identified: a null, which the removal of all members leaves. No owner has this step.
    Unidentified,
}

impl PathElement {
    pub(super) fn field(name: &str) -> PathElement {
        PathElement::Field(name.into())
    }

    /// Creates the step to a list item from members, which are sorted here.
    pub(super) fn key(mut members: Vec<(Box<str>, Value)>) -> PathElement {
        members.sort_by(|left, right| left.0.cmp(&right.0));
        PathElement::Key(members.into())
    }

    /// Position of the kind of step in the order.
    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
            PathElement::Unidentified => 4,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &PathElement) -> Ordering {
        match (self, other) {
            (PathElement::Field(left), PathElement::Field(right)) => left.cmp(right),
            (PathElement::Key(left), PathElement::Key(right)) => {
                let mut pairs = left.iter().zip(right.iter());
                let differing = pairs.find_map(|(left, right)| {
                    let order = left.0.cmp(&right.0);
                    let order = order.then_with(|| compare_values(&left.1, &right.1));
                    (order != Ordering::Equal).then_some(order)
                });
                differing.unwrap_or(left.len().cmp(&right.len()))
            }
            (PathElement::Value(left), PathElement::Value(right)) => compare_values(left, right),
            (PathElement::Index(left), PathElement::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &PathElement) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &PathElement) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(members) => {
                f.write_str("[")?;
                for (at, (name, value)) in members.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={}", Shown(value))?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={}]", Shown(value)),
            PathElement::Index(index) => write!(f, "[{index}]"),
            PathElement::Unidentified => f.write_str("{{invalid path element}}"),
        }
    }
}

/// A value in the text of a path.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => write!(f, "{integer}"),
                None => f.write_str(&go_float(float(number))),
            },
            Value::String(text) => write!(f, "{}", Quoted(text)),
            Value::Array(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{}", Shown(item))?;
                }
                f.write_str("]")
            }
            Value::Object(members) => {
                for (name, value) in members {
                    write!(f, "{name}={}", Shown(value))?;
                }
                Ok(())
            }
        }
    }
}

/// Returns a number as Go reads it, if it is no `int64`.
pub(super) fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::INFINITY)
}

/// Compares two values as parts of a path.
fn compare_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let order = float(left).partial_cmp(&float(right));
            order.unwrap_or(Ordering::Equal)
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right);
            let differing = pairs.find_map(|(left, right)| {
                let order = compare_values(left, right);
                (order != Ordering::Equal).then_some(order)
            });
            differing.unwrap_or(left.len().cmp(&right.len()))
        }
        // Only a written `managedFields` can have an object here. Its order has no meaning.
        (Value::Object(left), Value::Object(right)) => {
            let mut pairs = left.iter().zip(right);
            let differing = pairs.find_map(|(left, right)| {
                let order = left.0.cmp(right.0);
                let order = order.then_with(|| compare_values(left.1, right.1));
                (order != Ordering::Equal).then_some(order)
            });
            differing.unwrap_or(left.len().cmp(&right.len()))
        }
        _ => value_rank(left).cmp(&value_rank(right)),
    }
}

fn value_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Returns whether two values are equal. The numbers 1 and 1.0 are.
pub(super) fn equal_values(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left == right,
            _ if planted::has(Bug::Numbers) => left == right,
            _ => float(left).partial_cmp(&float(right)) == Some(Ordering::Equal),
        },
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right);
            left.len() == right.len() && pairs.all(|(left, right)| equal_values(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let mut members = left.iter();
            left.len() == right.len()
                && members.all(|(name, value)| {
                    let other = right.get(name);
                    other.is_some_and(|other| equal_values(value, other))
                })
        }
        _ => left == right,
    }
}
