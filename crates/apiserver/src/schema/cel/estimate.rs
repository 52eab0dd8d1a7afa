//! Estimates the maximum cost of an expression, in Kubernetes' unit of costs.
//!
//! Guarantees:
//! - The estimate is that of cel-go 0.26 with Kubernetes' estimator, with its peculiarities, because it decides
//!   whether a definition is accepted.
//! - The time is proportional to the count of nodes.
//!
//! cel-go divides a macro into steps, and estimates these. Here the costs of the steps are constants.

use std::collections::BTreeMap;

use super::cel_type::Type;
use super::check::Checked;
use super::declared::Declared;
use super::node::{Fold, FoldKind, Id, Kind, Literal, Slot};
use path::{Path, Paths};
use range::Range;

mod call;
mod kubernetes;
mod path;
mod range;

/// The cost of a new list.
const LIST: u64 = 10;

/// The cost of a new map.
const MAP: u64 = 30;

/// The cost of a letter of a text.
const LETTER: f64 = 0.1;

const ONE: Range = Range::fixed(1);

/// Returns the maximum cost of an expression. `declared` has the sizes of `self`.
pub(super) fn max_cost(checked: &Checked, declared: &Declared) -> u64 {
    let count = checked.expression.nodes.len();
    let mut estimator = Estimator {
        checked,
        declared,
        paths: Paths::default(),
        path_of: vec![Path::default(); count],
        sizes: vec![None; count],
        entries: BTreeMap::new(),
        locals: BTreeMap::new(),
    };
    estimator.cost(checked.expression.root).max
}

/// The sizes of the keys and values of a list or map.
#[derive(Clone, Copy)]
struct Entry {
    is_list: bool,
    key: Range,
    value: Range,
}

impl Entry {
    fn union(one: Option<Entry>, other: Option<Entry>) -> Option<Entry> {
        let (one, other) = (one?, other?);
        Some(Entry {
            is_list: one.is_list,
            key: one.key.union(other.key),
            value: one.value.union(other.value),
        })
    }
}

/// What is known of the value of a local variable.
#[derive(Clone, Copy, Default)]
struct Local {
    path: Path,
    size: Option<Range>,
    entry: Option<Entry>,
}

/// Which part of a list or map a variable has.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// The item of a list, or the key of a map.
    Single,
    Key,
    Value,
}

struct Estimator<'e> {
    checked: &'e Checked,
    declared: &'e Declared,
    paths: Paths<'e>,
    /// By node.
    path_of: Vec<Path>,
    /// By node.
    sizes: Vec<Option<Range>>,
    entries: BTreeMap<Id, Entry>,
    locals: BTreeMap<Slot, Local>,
}

impl<'e> Estimator<'e> {
    fn cost(&mut self, id: Id) -> Range {
        if let Some(call) = self.checked.calls.get(&id) {
            return self.call(id, call);
        }
        match self.kind(id) {
            // The name of a type is a variable for cel-go.
            Kind::Literal(Literal::Type(name)) => self.variable(id, name),
            Kind::Literal(_) => Range::default(),
            Kind::SelfValue => self.variable(id, "self"),
            Kind::OldSelf => self.variable(id, "oldSelf"),
            Kind::Local(_) => {
                self.path_of[id as usize] = self.path(id);
                ONE
            }
            Kind::Select(access) if access.is_optional => {
                let cost = self.cost(access.operand);
                self.size(access.operand);
                self.size(id);
                cost.add(ONE)
            }
            Kind::Select(access) => {
                let cost = self.cost(access.operand);
                let path = self.path(access.operand);
                self.path_of[id as usize] = self.paths.append(path, &access.name);
                match self.of(access.operand) {
                    Type::Map(..) | Type::Object(_) => cost.add(ONE),
                    _ => cost,
                }
            }
            Kind::Has(operand, _) => self.cost(*operand),
            Kind::And(terms) | Kind::Or(terms) => self.logical(terms),
            Kind::List(items) => self.list(id, items.iter().map(|(item, _)| *item)),
            Kind::Map(entries) => {
                let entries = entries.iter();
                self.map(id, entries.map(|(key, value, _)| (*key, *value)))
            }
            Kind::Fold(fold) => self.fold(id, fold),
            Kind::Bind(slot, value, body) => self.bind(id, *slot, *value, *body),
            // These are calls.
            Kind::Index(..) | Kind::Conditional(_) | Kind::Call(_) => Range::UNKNOWN,
        }
    }

    fn variable(&mut self, id: Id, name: &'e str) -> Range {
        self.path_of[id as usize] = self.paths.append(Path::default(), name);
        ONE
    }

    /// The second term need not be evaluated.
    fn logical(&mut self, terms: &[Id]) -> Range {
        let mut sum: Option<Range> = None;
        for term in terms {
            let cost = self.cost(*term);
            self.size(*term);
            sum = Some(match sum {
                None => cost,
                Some(sum) => Range::new(sum.min, sum.add(cost).max),
            });
        }
        sum.unwrap_or_default()
    }

    fn list(&mut self, id: Id, items: impl Iterator<Item = Id>) -> Range {
        let (mut cost, mut value) = (Range::fixed(LIST), None);
        for item in items {
            cost = cost.add(self.cost(item));
            value = Some(self.union_size(value, item));
        }
        let entry = Entry {
            is_list: true,
            key: ONE,
            value: value.unwrap_or_default(),
        };
        self.entries.insert(id, entry);
        cost
    }

    fn map(&mut self, id: Id, entries: impl Iterator<Item = (Id, Id)>) -> Range {
        let (mut cost, mut keys, mut values) = (Range::fixed(MAP), None, None);
        for (key, value) in entries {
            cost = cost.add(self.cost(key));
            cost = cost.add(self.cost(value));
            keys = Some(self.union_size(keys, key));
            values = Some(self.union_size(values, value));
        }
        let entry = Entry {
            is_list: false,
            key: keys.unwrap_or_default(),
            value: values.unwrap_or_default(),
        };
        self.entries.insert(id, entry);
        cost
    }

    fn union_size(&mut self, known: Option<Range>, id: Id) -> Range {
        let size = self.size_or_unknown(id);
        known.map_or(size, |known| known.union(size))
    }

    fn bind(&mut self, id: Id, slot: Slot, value: Id, body: Id) -> Range {
        // cel-go binds a variable with a macro that repeats nothing for an empty list.
        let cost = Range::fixed(LIST).add(self.cost(value));
        let local = Local {
            path: self.path(value),
            size: self.size(value),
            entry: self.entry(value),
        };
        self.locals.insert(slot, local);
        let cost = cost.add(self.cost(body));
        self.locals.remove(&slot);
        self.copy_sizes(body, id);
        cost
    }

    fn copy_sizes(&mut self, from: Id, to: Id) {
        let size = self.size(from);
        self.set_size(to, size);
        if let Some(entry) = self.entry(from) {
            self.entries.insert(to, entry);
        }
    }

    // Macros that repeat an expression.

    fn fold(&mut self, id: Id, fold: &'e Fold) -> Range {
        let range_cost = self.cost(fold.range);
        match fold.second_variable {
            None => self.set_variable(fold.variable, fold.range, Part::Single),
            Some(second) => {
                self.set_variable(fold.variable, fold.range, Part::Key);
                self.set_variable(second, fold.range, Part::Value);
            }
        }
        let filter = fold.filter.map(|filter| {
            let cost = self.cost(filter);
            self.size(filter);
            cost
        });
        let body = self.cost(fold.body);
        let body_size = self.size_or_unknown(fold.body);
        self.locals.remove(&fold.variable);
        if let Some(second) = fold.second_variable {
            self.locals.remove(&second);
        }
        let step = step_cost(fold.kind, filter, body);
        let count = self.size_or_unknown(fold.range);
        let size = match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => ONE,
            FoldKind::List | FoldKind::Map | FoldKind::MapEntries => count,
        };
        self.sizes[id as usize] = Some(size);
        if fold.kind == FoldKind::List {
            let entry = Entry {
                is_list: true,
                key: ONE,
                value: Range::new(0, body_size.max),
            };
            self.entries.insert(id, entry);
        }
        let outside = Range::fixed(outside_cost(fold.kind));
        range_cost.add(outside).add(count.multiply(step))
    }

    fn set_variable(&mut self, slot: Slot, range: Id, part: Part) {
        let entry = self.entry(range);
        let is_list = entry.map_or_else(
            || matches!(self.of(range), Type::List(_)),
            |entry| entry.is_list,
        );
        let step = match (part, is_list) {
            (Part::Key, true) => "@indices",
            (Part::Single | Part::Value, true) => "@items",
            (Part::Value, false) => "@values",
            (Part::Single | Part::Key, false) => "@keys",
        };
        let is_key = part == Part::Key || (part == Part::Single && !is_list);
        let size = entry.map(|entry| if is_key { entry.key } else { entry.value });
        let path = self.path(range);
        let local = Local {
            path: self.paths.append(path, step),
            size,
            entry: None,
        };
        self.locals.insert(slot, local);
    }

    // What is known of the value of a node.

    fn kind(&self, id: Id) -> &'e Kind {
        &self.checked.expression.nodes[id as usize].kind
    }

    fn of(&self, id: Id) -> &'e Type {
        &self.checked.types[id as usize]
    }

    fn local(&self, id: Id) -> Option<&Local> {
        match self.kind(id) {
            Kind::Local(slot) => self.locals.get(slot),
            _ => None,
        }
    }

    fn path(&self, id: Id) -> Path {
        match self.local(id) {
            Some(local) => local.path,
            None => self.path_of[id as usize],
        }
    }

    fn entry(&self, id: Id) -> Option<Entry> {
        let known = self.entries.get(&id).copied();
        known.or_else(|| self.local(id)?.entry)
    }

    fn set_size(&mut self, id: Id, size: Option<Range>) {
        if size.is_some() {
            self.sizes[id as usize] = size;
        }
    }

    fn size_or_unknown(&mut self, id: Id) -> Range {
        self.size(id).unwrap_or(Range::UNKNOWN)
    }

    /// Returns the size of a value, if it is known. A size that the schema determines is kept, because a path can
    /// change.
    fn size(&mut self, id: Id) -> Option<Range> {
        if let Some(size) = self.sizes[id as usize] {
            return Some(size);
        }
        if let Some(size) = size_of_literal(self.kind(id)) {
            return Some(size);
        }
        if let Some(size) = self.declared_size(self.path(id), None) {
            self.sizes[id as usize] = Some(size);
            return Some(size);
        }
        if is_scalar(self.of(id)) {
            return Some(ONE);
        }
        self.local(id)?.size
    }

    /// Returns the size that the schema determines for a path, with one more step. The first step has no effect.
    fn declared_size(&self, path: Path, last: Option<&str>) -> Option<Range> {
        if path.is_empty() {
            return None;
        }
        let steps = self.paths.steps(path)?;
        let steps = steps.iter().skip(1).copied().chain(last);
        let mut declared = self.declared;
        for step in steps {
            declared = declared.step(step)?;
        }
        Some(Range::new(0, declared.max_elements))
    }
}

/// Returns the cost of one repetition of a macro: of reading the result so far, the test whether to continue, and
/// the combination of both.
fn step_cost(kind: FoldKind, filter: Option<Range>, body: Range) -> Range {
    let either = |cost: Range| match filter {
        Some(filter) => filter.add(cost.union(ONE)),
        None => cost,
    };
    match kind {
        // `accumulator && body`, and the test `@not_strictly_false(accumulator)`.
        FoldKind::All => Range::new(1, ONE.add(body).max).add(Range::fixed(2)),
        // The test is `@not_strictly_false(!accumulator)`.
        FoldKind::Exists => Range::new(1, ONE.add(body).max).add(Range::fixed(3)),
        // `body ? accumulator + 1 : accumulator`.
        FoldKind::ExistsOne => body.add(Range::new(1, 2)),
        // `accumulator + [body]`.
        FoldKind::List => either(body.add(Range::fixed(LIST + 2))),
        // `@mapInsert(accumulator, key, body)`.
        FoldKind::Map => either(body.add(Range::fixed(3))),
        // `@mapInsert(accumulator, body)`.
        FoldKind::MapEntries => either(body.add(Range::fixed(2))),
    }
}

/// Returns the cost of the first and of the last result of a macro.
fn outside_cost(kind: FoldKind) -> u64 {
    match kind {
        FoldKind::All | FoldKind::Exists => 1,
        // `accumulator == 1`.
        FoldKind::ExistsOne => 2,
        FoldKind::List => LIST + 1,
        FoldKind::Map | FoldKind::MapEntries => MAP + 1,
    }
}

fn size_of_literal(kind: &Kind) -> Option<Range> {
    let size = match kind {
        Kind::Literal(Literal::String(text)) => text.chars().count(),
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        Kind::Literal(Literal::Type(_)) => return None,
        Kind::Literal(_) => 1,
        Kind::List(items) => items.len(),
        Kind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Range::fixed(size as u64))
}

/// Returns whether all values of a type have the same size.
fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Scalar(name) => !matches!(*name, "string" | "bytes"),
        other => other.unwrap_optional().is_some_and(is_scalar),
    }
}
