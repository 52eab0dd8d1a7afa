//! Checks literal lists and maps, and calls of `format`.

use cel::common::ast::{EntryExpr, IdedEntryExpr, IdedExpr};

use super::super::cel_type::{Type, most_general};
use super::super::function::{self, FormatArgument};
use super::super::issue::{Issue, Location};
use super::super::node::{Id, Kind, Literal};
use super::{Checker, Part};

/// The items of a list, or the keys or values of a map, with their types.
pub(super) struct Items {
    is_list: bool,
    items: Vec<(Location, Type)>,
}

pub(super) struct FormatCall {
    location: Location,
    text: String,
    arguments: Vec<FormatArgument>,
}

impl Checker<'_> {
    pub(super) fn note_format(&mut self, id: u64, all: &[Part]) {
        let [target, list] = all else { return };
        let text = match &self.expression.nodes[target.id as usize].kind {
            Kind::Literal(Literal::String(text)) => text.clone(),
            _ => return,
        };
        let Some(items) = self.format_items(list.id) else {
            return;
        };
        let arguments = items.iter().map(|item| {
            let mut parts = Vec::new();
            self.format_parts(item, &mut parts);
            parts
        });
        let arguments = arguments.collect();
        let call = FormatCall {
            location: self.parsed.location(id),
            text,
            arguments,
        };
        self.formats.push(call);
    }

    pub(super) fn format_items(&self, id: Id) -> Option<&[Part]> {
        self.format_literals.get(&id).map(Vec::as_slice)
    }

    /// Adds the places and types of an argument, and of the items of literals inside.
    pub(super) fn format_parts(&self, part: &Part, parts: &mut FormatArgument) {
        parts.push((self.locations[part.id as usize], part.of.clone()));
        for item in self.format_items(part.id).unwrap_or_default() {
            self.format_parts(item, parts);
        }
    }

    /// Reports calls of `format` whose arguments don't fit.
    pub(super) fn check_formats(&mut self) {
        for call in &mut self.formats {
            for (_, of) in call.arguments.iter_mut().flatten() {
                *of = self.bindings.resolve(of, true);
            }
            if let Some((place, message)) = function::check_format(&call.text, &call.arguments) {
                let location = place.unwrap_or(call.location);
                self.issues.push(Issue { location, message });
            }
        }
    }

    pub(super) fn list(&mut self, id: u64, items: &[IdedExpr], optional: &[usize]) -> Part {
        let mut of: Option<Type> = None;
        let (mut ids, mut literals, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            let is_optional = optional.contains(&index);
            let part = self.check(item);
            let item_type = self.unwrap_if(is_optional, &part);
            literals.push((self.locations[part.id as usize], item_type.clone()));
            of = Some(self.join(of, item_type));
            ids.push((part.id, is_optional));
            parts.push(part);
        }
        let of = of.unwrap_or_else(|| self.bindings.new_variable());
        let is_constant = ids.iter().all(|(id, _)| self.is_constant(*id));
        let id = self.push(id, Kind::List(ids), is_constant);
        match self.in_format {
            0 => self.literals.push(Items {
                is_list: true,
                items: literals,
            }),
            _ => {
                self.format_literals.insert(id, parts);
            }
        }
        Part {
            id,
            of: Type::list(of),
        }
    }

    pub(super) fn map(&mut self, id: u64, entries: &[IdedEntryExpr]) -> Part {
        let (mut key_type, mut value_type) = (None, None);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let (mut ids, mut parts) = (Vec::new(), Vec::new());
        for entry in entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let key = self.check(&entry.key);
            key_type = Some(self.join(key_type, key.of.clone()));
            let value = self.check(&entry.value);
            let of = self.unwrap_if(entry.optional, &value);
            value_type = Some(self.join(value_type, of.clone()));
            keys.push((self.locations[key.id as usize], key.of.clone()));
            values.push((self.locations[value.id as usize], of));
            ids.push((key.id, value.id, entry.optional));
            parts.extend([key, value]);
        }
        let key = key_type.unwrap_or_else(|| self.bindings.new_variable());
        let value = value_type.unwrap_or_else(|| self.bindings.new_variable());
        let constant =
            |(key, value, _): &(Id, Id, bool)| self.is_constant(*key) && self.is_constant(*value);
        let is_constant = ids.iter().all(constant);
        let id = self.push(id, Kind::Map(ids), is_constant);
        match self.in_format {
            0 => {
                let items = |items| Items {
                    is_list: false,
                    items,
                };
                self.literals.extend([keys, values].map(items));
            }
            _ => {
                self.format_literals.insert(id, parts);
            }
        }
        let of = Type::map(key, value);
        Part { id, of }
    }

    /// Returns the type inside an optional item of a literal.
    pub(super) fn unwrap_if(&mut self, is_optional: bool, part: &Part) -> Type {
        if !is_optional {
            return part.of.clone();
        }
        if let Some(inner) = part.of.unwrap_optional() {
            return inner.clone();
        }
        if !matches!(part.of, Type::Dyn) {
            let location = self.locations[part.id as usize];
            self.mismatch(location, &Type::optional(part.of.clone()), &part.of);
        }
        part.of.clone()
    }

    /// Returns the type of items of two types.
    pub(super) fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        match previous {
            None => current,
            Some(previous) if self.bindings.assign(&previous, &current) => {
                most_general(&previous, &current).clone()
            }
            Some(_) => Type::Dyn,
        }
    }

    /// Reports literals whose items have different types. A list has one message.
    pub(super) fn compare_literals(&mut self) {
        for literal in &self.literals {
            let types = literal.items.iter();
            let mut types =
                types.map(|(location, of)| (*location, self.bindings.resolve(of, true)));
            let Some((_, first)) = types.next() else {
                continue;
            };
            for (location, of) in types {
                if !first.is_same(&of, true) {
                    let message = format!("expected type '{first}' but found '{of}'");
                    self.issues.push(Issue { location, message });
                    if literal.is_list {
                        break;
                    }
                }
            }
        }
    }
}
