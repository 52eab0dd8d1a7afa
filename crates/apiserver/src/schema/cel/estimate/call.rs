//! The costs of calls.
//!
//! The numbers are those of `cost.go` in cel-go's checker, and of its libraries for lists and sets.

use super::super::check::CallFacts;
use super::super::cost::orders_letters;
use super::super::node::{Id, Kind, Literal};
use super::{Entry, Estimator, LETTER, LIST, ONE, Path, Range};

/// The cost of a letter of a regular expression.
pub(super) const PATTERN_LETTER: f64 = 0.25;

/// An argument of a call.
#[derive(Clone, Copy)]
pub(super) struct Argument {
    pub(super) id: Id,
    pub(super) path: Path,
    pub(super) size: Option<Range>,
}

/// The arguments of a call, and the target of a member function.
pub(super) struct Arguments<'a> {
    pub(super) target: Option<Argument>,
    pub(super) others: &'a [Argument],
    /// The cost of `others`.
    cost: Range,
}

/// The cost of a call, and the size of its result.
pub(super) struct Estimate {
    cost: Range,
    size: Option<Range>,
}

impl Estimate {
    pub(super) const fn of(cost: Range) -> Estimate {
        Estimate { cost, size: None }
    }

    pub(super) const fn sized(cost: Range, size: Range) -> Estimate {
        Estimate {
            cost,
            size: Some(size),
        }
    }

    /// A call that returns a new list of this size.
    fn new_list(factor: f64, size: Range) -> Estimate {
        Estimate::sized(size.scale(factor).add(Range::fixed(1 + LIST)), size)
    }
}

impl<'e> Estimator<'e> {
    pub(super) fn call(&mut self, id: Id, call: &'e CallFacts) -> Range {
        let arguments = call.arguments.as_slice();
        if let ("dyn", [argument]) = (call.function, arguments) {
            let cost = self.cost(*argument);
            self.copy_sizes(*argument, id);
            return cost.add(ONE);
        }
        let (target, others) = match arguments.split_first() {
            Some((target, others)) if call.is_member => (Some(*target), others),
            _ => (None, arguments),
        };
        let (mut all, mut costs) = (Vec::new(), Vec::new());
        for argument in others {
            costs.push(self.cost(*argument));
            all.push(self.argument(*argument));
        }
        let cost_of_target = target.map(|target| self.cost(target));
        let target = target.map(|target| self.argument(target));
        let arguments = Arguments {
            target,
            others: &all,
            cost: costs
                .iter()
                .fold(Range::default(), |sum, one| sum.add(*one)),
        };
        let (mut cost, mut size) = (Range::new(u64::MAX, 0), None);
        for overload in &call.overloads {
            let estimate = match self.conditional(id, overload, &arguments, &costs) {
                Some(estimate) => estimate,
                None => self.overload(id, (call.function, overload), &arguments),
            };
            cost = cost.union(estimate.cost);
            size = union(size, estimate.size);
            let step = match *overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(step), Some(operand)) = (step, all.first()) {
                size = self.entry(operand.id).map(|entry| entry.value);
                let path = self.path(operand.id);
                self.path_of[id as usize] = self.paths.append(path, step);
            }
            if size.is_none() {
                size = self.size(id);
            }
        }
        self.set_size(id, size);
        cost_of_target.unwrap_or_default().add(cost)
    }

    fn argument(&mut self, id: Id) -> Argument {
        Argument {
            id,
            path: self.path(id),
            size: self.size(id),
        }
    }

    /// The cost of a conditional is not the sum of the costs of its arguments.
    fn conditional(
        &mut self,
        id: Id,
        overload: &str,
        arguments: &Arguments<'_>,
        costs: &[Range],
    ) -> Option<Estimate> {
        let ("conditional", [_, first, second]) = (overload, arguments.others) else {
            return None;
        };
        let size = known(first.size).union(known(second.size));
        self.set_entry(id, first.id, second.id);
        let cost = costs[0].add(costs[1].union(costs[2]));
        Some(Estimate::sized(cost, size))
    }

    fn set_entry(&mut self, id: Id, first: Id, second: Id) {
        if let Some(entry) = Entry::union(self.entry(first), self.entry(second)) {
            self.entries.insert(id, entry);
        }
    }

    fn overload(
        &mut self,
        id: Id,
        (function, overload): (&str, &str),
        arguments: &Arguments<'_>,
    ) -> Estimate {
        let estimate = self
            .of_lists(overload, arguments)
            .or_else(|| self.of_kubernetes(function, overload, arguments))
            .or_else(|| self.of_cel(id, overload, arguments));
        let estimate = estimate.unwrap_or(Estimate::of(ONE));
        Estimate {
            cost: estimate.cost.add(arguments.cost),
            ..estimate
        }
    }

    /// The size that the schema determines, if no other is known.
    pub(super) fn declared(&self, argument: Argument) -> Range {
        let size = argument.size;
        known(size.or_else(|| self.declared_size(argument.path, None)))
    }

    /// The functions of cel-go's libraries for lists and sets.
    fn of_lists(&self, overload: &str, arguments: &Arguments<'_>) -> Option<Estimate> {
        let Arguments { target, others, .. } = *arguments;
        let factor = match overload {
            "list_sets_contains_list" | "list_sets_intersects_list" => Some(1.0),
            "list_sets_equivalent_list" => Some(2.0),
            _ => None,
        };
        if let (Some(factor), [first, second]) = (factor, others) {
            let pairs = self.declared(*first).multiply(self.declared(*second));
            return Some(Estimate::of(pairs.scale(factor).add(ONE)));
        }
        let sort = |argument: Argument, of: &str| {
            let size = self.declared(argument);
            let factor = match of {
                "string" | "bytes" => 2.0 + LETTER,
                _ => 2.0,
            };
            Estimate::new_list(factor, size.multiply(size))
        };
        let sorted = overload.strip_prefix("list_");
        if let Some(of) = sorted.and_then(|rest| rest.strip_suffix("_sort")) {
            return target.map(|target| sort(target, of));
        }
        if let Some(of) = sorted.and_then(|rest| rest.strip_suffix("_sortByAssociatedKeys")) {
            return others.first().map(|keys| sort(*keys, of));
        }
        match (overload, target, others) {
            ("list_slice", Some(target), [start, end]) => {
                let size = self.declared(target);
                let start = self.integer(*start).unwrap_or(0);
                let end = self.integer(*end).unwrap_or(size.max);
                let size = Range::fixed(end.wrapping_sub(start));
                Some(Estimate::new_list(1.0, size))
            }
            ("lists_range", None, [end]) => {
                let size = Range::fixed(self.integer(*end).unwrap_or(u64::MAX));
                Some(Estimate::new_list(1.0, size))
            }
            ("list_reverse", Some(target), _) => {
                Some(Estimate::new_list(1.0, self.declared(target)))
            }
            ("list_flatten" | "list_flatten_int", Some(target), _) => {
                let depth = others.first().map_or(1, |depth| {
                    let depth = self.integer(*depth);
                    depth.unwrap_or(u64::MAX)
                });
                Some(Estimate::new_list(to_f64(depth), self.declared(target)))
            }
            ("list_distinct", Some(target), _) => {
                let size = self.declared(target);
                Some(Estimate::new_list(2.0, size.multiply(size)))
            }
            _ => None,
        }
    }

    /// Returns the value of an integer, which is zero if it is negative, or `None` if it is not a literal.
    fn integer(&self, argument: Argument) -> Option<u64> {
        match self.kind(argument.id) {
            Kind::Literal(Literal::Int(value)) => Some((*value).max(0).cast_unsigned()),
            _ => None,
        }
    }

    /// The functions for which cel-go has an estimate.
    fn of_cel(&mut self, id: Id, overload: &str, arguments: &Arguments<'_>) -> Option<Estimate> {
        let Arguments { target, others, .. } = *arguments;
        let size = |argument: Argument| known(argument.size);
        let of_text = |size: Range| size.scale(LETTER);
        match (overload, target, others) {
            ("string_format", Some(target), _) => Some(Estimate::of(of_text(size(target)))),
            ("string_to_bytes", _, [text]) => {
                let size = size(*text);
                // A letter has up to four bytes.
                let result = Range::new(size.min, size.max.wrapping_mul(4));
                Some(Estimate::sized(of_text(size), result))
            }
            ("bytes_to_string", _, [bytes]) => {
                let size = size(*bytes);
                let result = Range::new(size.min / 4, size.max);
                Some(Estimate::sized(of_text(size), result))
            }
            ("strings_quote", _, [text]) => {
                let size = size(*text);
                let max = size.max.wrapping_mul(2).wrapping_add(2);
                let result = Range::new(size.min.wrapping_add(2), max);
                Some(Estimate::sized(of_text(size), result))
            }
            ("starts_with_string" | "ends_with_string", _, [text]) => {
                Some(Estimate::of(of_text(size(*text))))
            }
            ("in_list", _, [_, list]) => Some(Estimate::of(size(*list).scale(1.0))),
            ("matches_string", Some(target), [pattern]) => {
                Some(Estimate::of(of_pattern(size(target), size(*pattern))))
            }
            ("contains_string", Some(target), [part]) => {
                let cost = of_text(size(target)).multiply(of_text(size(*part)));
                Some(Estimate::of(cost))
            }
            ("add_string" | "add_bytes" | "add_list", _, [first, second]) => {
                let result = size(*first).add(size(*second));
                self.set_entry(id, first.id, second.id);
                let cost = match overload {
                    "add_list" => ONE,
                    _ => of_text(result),
                };
                Some(Estimate::sized(cost, result))
            }
            (overload, _, [first, second]) if compares(overload) => {
                let max = size(*first).max.min(size(*second).max);
                Some(Estimate::of(of_text(Range::new(max.min(1), max))))
            }
            _ => None,
        }
    }
}

pub(super) fn known(size: Option<Range>) -> Range {
    size.unwrap_or(Range::UNKNOWN)
}

fn union(one: Option<Range>, other: Option<Range>) -> Option<Range> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.union(other)),
        (one, other) => one.or(other),
    }
}

/// Returns whether the cost of a comparison depends on the sizes of the values.
fn compares(overload: &str) -> bool {
    matches!(overload, "equals" | "not_equals") || orders_letters(overload)
}

/// The cost of applying a regular expression.
pub(super) fn of_pattern(text: Range, pattern: Range) -> Range {
    let letters = text.add(ONE).scale(LETTER);
    letters.multiply(pattern.scale(PATTERN_LETTER))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the precision is that of Kubernetes"
)]
pub(super) fn to_f64(value: u64) -> f64 {
    value as f64
}
