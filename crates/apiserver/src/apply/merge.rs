//! Merges an applied object into the stored one.
//!
//! Guarantees: the result has the fields of both objects; a field of both has the applied value. Items of a list keep
//! the order of the applied list, and other items stay at their places as far as possible.

use std::collections::BTreeMap;

use serde_json::{Map as Members, Value};

use super::atom::{Handled, List, Map, Type};
use super::compare::{Sides, each_member};
use super::errors::{Errors, Name};
use super::path::PathElement;
use super::planted::{self, Bug};

/// Merges two objects of one type.
///
/// # Errors
///
/// Returns the message about values that don't have the type, and about duplicate items in a list of `applied`.
pub(super) fn merge(
    stored: &Value,
    applied: &Value,
    object_type: Type<'_>,
) -> Result<Value, String> {
    let mut errors = Errors::default();
    let sides = Sides::of(Some(stored), Some(applied));
    let merged = merged(object_type, sides, &mut errors);
    errors.into_result()?;
    Ok(merged.unwrap_or_default())
}

/// Returns the merged value, or `None` if nothing is left of it.
fn merged(value_type: Type<'_>, sides: Sides<'_>, errors: &mut Errors) -> Option<Value> {
    let (first, last) = sides.handled(value_type);
    if let Some(first) = first {
        // Only the errors of the replaced value matter.
        part(&first, sides, errors);
    }
    part(&last, sides, errors)
}

fn part(handled: &Handled<'_>, sides: Sides<'_>, errors: &mut Errors) -> Option<Value> {
    if !sides.check_scalar(handled, errors) {
        return None;
    }
    if sides.is_leaf(handled) {
        return sides.new.or(sides.old).cloned();
    }
    match handled {
        Handled::List(list) => items(list, sides, errors),
        Handled::Map(map) => members(map, sides, errors),
        Handled::Scalar(_) => None,
    }
}

fn members(map: &Map<'_>, sides: Sides<'_>, errors: &mut Errors) -> Option<Value> {
    let (old, new) = sides.maps();
    let mut out = Members::new();
    each_member(old, new, |name, sides| {
        errors.at(&Name(name), |errors| match map.member(name) {
            Some(member) => {
                if let Some(value) = merged(member, sides, errors) {
                    out.insert(name.to_owned(), value);
                }
            }
            None => errors.push("schema error: invalid atom: inlined"),
        });
    });
    (!out.is_empty()).then_some(Value::Object(out))
}

fn items(list: &List<'_>, sides: Sides<'_>, errors: &mut Errors) -> Option<Value> {
    let (old, new) = sides.lists();
    let [old, new] = [old, new].map(Option::unwrap_or_default);
    let mut index = Index::default();
    let new_order = index.read(list, new, errors, Entry::set_new);
    let old_order = index.read(list, old, errors, Entry::set_old);
    let (new_order, old_order) = (new_order?, old_order?);
    let merge = Merge {
        list,
        old,
        entries: index.entries,
        old_order,
        new_order,
    };
    let out = merge.run();
    (!out.is_empty()).then_some(Value::Array(out))
}

/// The items of two lists, by what identifies them.
#[derive(Default)]
struct Index<'v> {
    numbers: BTreeMap<PathElement, usize>,
    entries: Vec<Entry<'v>>,
}

/// The values of one item in both lists.
#[derive(Default)]
struct Entry<'v> {
    old: Option<&'v Value>,
    new: Option<&'v Value>,
    is_merged: bool,
}

impl<'v> Entry<'v> {
    /// Adds a value of the old list, in which an item that occurs twice has no value.
    fn set_old(&mut self, item: &'v Value) -> bool {
        self.old = Some(if self.old.is_none() {
            item
        } else {
            &Value::Null
        });
        true
    }

    /// Adds a value of the new list. Returns whether it is the only one.
    fn set_new(&mut self, item: &'v Value) -> bool {
        let is_only = self.new.is_none();
        self.new = self.new.or(Some(item));
        is_only
    }
}

impl<'v> Index<'v> {
    /// Adds a list. Returns the numbers of its entries in order, or `None` after an error.
    fn read(
        &mut self,
        list: &List<'_>,
        items: &'v [Value],
        errors: &mut Errors,
        set: fn(&mut Entry<'v>, &'v Value) -> bool,
    ) -> Option<Vec<usize>> {
        let mut order = Vec::with_capacity(items.len());
        let mut is_valid = true;
        for (at, item) in items.iter().enumerate() {
            let step = match list.step_to(item) {
                Ok(step) => step,
                Err(why) => {
                    errors.push(format!("element {at}: {why}"));
                    is_valid = false;
                    continue;
                }
            };
            let known = self.numbers.get(&step).copied();
            let number = known.unwrap_or_else(|| {
                self.entries.push(Entry::default());
                self.numbers.insert(step.clone(), self.entries.len() - 1);
                self.entries.len() - 1
            });
            if !set(&mut self.entries[number], item) {
                errors.push(format!("duplicate entries for key {step}"));
                is_valid = false;
            }
            order.push(number);
        }
        is_valid.then_some(order)
    }
}

struct Merge<'a, 'v> {
    list: &'a List<'a>,
    old: &'v [Value],
    entries: Vec<Entry<'v>>,
    old_order: Vec<usize>,
    new_order: Vec<usize>,
}

impl Merge<'_, '_> {
    fn run(mut self) -> Vec<Value> {
        let mut out = Vec::with_capacity(self.old_order.len().max(self.new_order.len()));
        let is_shared = |number: &usize| self.entries[*number].old.is_some();
        let shared: Vec<usize> = self.new_order.iter().copied().filter(is_shared).collect();
        // The items of both lists in the new order: the next of them is the only one that an old place can have.
        let mut shared = shared.into_iter();
        let mut next_shared = shared.next();
        let (mut at_old, mut at_new) = (0, 0);
        while at_old < self.old_order.len() || at_new < self.new_order.len() {
            let old = self.old_order.get(at_old).copied();
            let new = self.new_order.get(at_new).copied();
            if let (Some(old), Some(new)) = (old, new) {
                if old == new {
                    out.extend(self.take(new));
                    at_old += 1;
                    at_new += 1;
                    next_shared = shared.next();
                    continue;
                }
                let is_applied = self.entries[old].new.is_some();
                if is_applied
                    && next_shared.is_some_and(|next| next != old)
                    && !planted::has(Bug::ItemOrder)
                {
                    at_old += 1;
                    continue;
                }
            }
            if let Some(old) = old {
                if self.entries[old].new.is_none() {
                    // Each of several equal items keeps its own value.
                    let sides = Sides::of(Some(&self.old[at_old]), None);
                    out.extend(merged(self.list.item, sides, &mut Errors::default()));
                    at_old += 1;
                    continue;
                }
                if self.entries[old].is_merged {
                    at_old += 1;
                }
            }
            if let Some(new) = new {
                out.extend(self.take(new));
                at_new += 1;
                if next_shared == Some(new) {
                    next_shared = shared.next();
                }
            }
        }
        out
    }

    /// Returns the merged value of an item of the new list. As in Kubernetes, its errors are not reported.
    fn take(&mut self, number: usize) -> Option<Value> {
        let entry = &mut self.entries[number];
        entry.is_merged = true;
        let sides = Sides::of(entry.old, entry.new);
        merged(self.list.item, sides, &mut Errors::default())
    }
}
