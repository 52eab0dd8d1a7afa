//! Limits the work of an evaluation, in Kubernetes' unit of costs.
//!
//! The costs are those of cel-go's cost tracker with Kubernetes' estimator, so that an expression exceeds its
//! limit here when it does in Kubernetes.
//! A second limit bounds the work that has no cost in Kubernetes: comparisons of nested values, and
//! copies of lists and texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::named_format;
use super::value::{List, Map, Value};
use crate::go_regex::Pattern;

/// Maximum cost of one evaluation, as in Kubernetes.
pub(super) const PER_CALL_LIMIT: u64 = 1_000_000;

/// Maximum cost of all rules of one object, as in Kubernetes.
pub(super) const TOTAL_LIMIT: i64 = 10_000_000;

/// Maximum work of one evaluation: the count of nodes that it evaluates, and of values that it compares or
/// copies.
///
/// An evaluation at this limit takes less than a second in a release build.
const WORK_LIMIT: u64 = 5_000_000;

/// Maximum work of all rules of one object.
pub(super) const TOTAL_WORK_LIMIT: u64 = 100_000_000;

/// The work that each evaluation counts as at least.
const EVALUATION_WORK: u64 = 20;

/// The reason for which an evaluation has no result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Failure {
    /// An error that the operators `&&` and `||` can ignore.
    Error(String),
    /// The evaluation exceeded a limit.
    LimitExceeded,
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Error(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Failure {
        Failure::Error(message.to_owned())
    }
}

/// The compiled regular expressions of the constants of an expression, by their texts.
pub(super) type Patterns = Arc<BTreeMap<String, Pattern>>;

/// The cost and work of an evaluation so far.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) cost: u64,
    limit: u64,
    pub(super) work: u64,
    patterns: Patterns,
}

impl Meter {
    pub(super) fn new(limit: u64, patterns: &Patterns) -> Meter {
        Meter {
            cost: 0,
            limit,
            work: EVALUATION_WORK,
            patterns: Arc::clone(patterns),
        }
    }

    /// Returns a compiled regular expression. The compilation of an unknown one counts as work.
    pub(super) fn pattern(&mut self, text: &str) -> Result<Pattern, Failure> {
        if let Some(known) = self.patterns.get(text) {
            return Ok(known.clone());
        }
        self.work(2_000 + text.len() * 64)?;
        let pattern = Pattern::compile(text).map_err(Failure::Error)?;
        self.work(pattern.automaton_bytes() / 16)?;
        Ok(pattern)
    }

    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Failure> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit {
            return Err(Failure::LimitExceeded);
        }
        Ok(())
    }

    /// Counts the work of converting data to `found`: a value, or an error that contains the data.
    pub(super) fn read<'a>(
        &mut self,
        found: Result<Value<'a>, String>,
    ) -> Result<Result<Value<'a>, String>, Failure> {
        let decoded = match &found {
            Ok(Value::Bytes(bytes)) => bytes.len(),
            Ok(_) => 0,
            Err(message) => message.len(),
        };
        self.work(decoded / 16)?;
        Ok(found)
    }

    /// Counts the comparison of a text or of bytes with another one.
    pub(super) fn compare(&mut self, length: usize) -> Result<(), Failure> {
        self.work(length / 64)
    }

    /// Counts work that has no cost.
    pub(super) fn work(&mut self, count: usize) -> Result<(), Failure> {
        self.work = self.work.saturating_add(count as u64);
        if self.work > WORK_LIMIT {
            return Err(Failure::LimitExceeded);
        }
        Ok(())
    }
}

/// Multiplies a size by a factor, and rounds up. A result that does not fit is the maximum.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the rounding is that of Go, and the conversion saturates"
)]
pub(super) fn scale(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// The cost of reading one character.
const READ: f64 = 0.1;

/// Returns the cost of matching a text with a pattern.
fn matching(text: u64, pattern: u64) -> u64 {
    scale(text + 1, READ) * scale(pattern, 0.25)
}

/// The cost of making a list.
pub(super) const LIST: u64 = 10;

/// The cost of making a map.
pub(super) const MAP: u64 = 30;

/// Returns the cost of a call that has been evaluated.
pub(super) fn of_call(
    function: &str,
    overload: Option<&str>,
    arguments: &[Value<'_>],
    result: Option<&Value<'_>>,
) -> u64 {
    let size = |index: usize| arguments.get(index).map_or(1, Value::cost_size);
    if let Some(cost) = of_overload(overload.unwrap_or_default(), arguments, result) {
        return cost;
    }
    match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            arguments.first().map_or(0, of_traversal)
        }
        "ip" if overload == Some("cidr_ip") => 1,
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => scale(size(0), READ),
        "replace" | "split" | "ip.isCanonical" => scale(size(0), 2.0 * READ),
        "join" => scale(result.map_or(1, Value::cost_size), 2.0 * READ),
        "find" | "findAll" => matching(size(0), size(1)),
        "containsIP" | "containsCIDR" => {
            let base = scale(2 * size(0), READ);
            let masking = if function == "containsCIDR" {
                scale(size(0), READ) + 1
            } else {
                0
            };
            let is_text = overload.is_some_and(|overload| overload.ends_with("_string"));
            base + masking + if is_text { scale(size(1), READ) } else { 0 }
        }
        "validate" => match arguments.first() {
            Some(Value::Format(format)) => matching(size(1), named_format::pattern_size(format)),
            _ => 1,
        },
        "_==_" if arguments.first().is_some_and(has_constant_size) => 1,
        "_==_" | "_!=_" => scale(size(0).min(size(1)), READ),
        _ => 1,
    }
}

/// Returns the cost of a call whose cost depends on its overload.
fn of_overload(overload: &str, arguments: &[Value<'_>], result: Option<&Value<'_>>) -> Option<u64> {
    let size = |index: usize| arguments.get(index).map_or(1, Value::cost_size);
    let allocation = |size: u64| size + 1 + LIST;
    Some(match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => {
            1 + size(0).saturating_mul(size(1))
        }
        "list_sets_equivalent_list" => 1 + size(0).saturating_mul(size(1)).saturating_mul(2),
        "list_slice" | "lists_range" | "list_reverse" => {
            allocation(result.map_or(1, Value::cost_size))
        }
        "list_flatten" => allocation(size(0)),
        "list_flatten_int" => {
            let depth = match arguments.get(1) {
                Some(Value::Int(depth)) => *depth,
                _ => 1,
            };
            // A negative depth, which is an error, wraps around in Go.
            size(0)
                .wrapping_mul(depth.cast_unsigned())
                .wrapping_add(1 + LIST)
        }
        "list_distinct" => of_self_comparison(arguments.first()),
        sort if sort.starts_with("list_") && sort.ends_with("_sort") => {
            of_self_comparison(arguments.first())
        }
        sort if sort.ends_with("_sortByAssociatedKeys") => of_self_comparison(arguments.get(1)),
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => scale(size(0), READ),
        "in_list" => size(1),
        "matches_string" => matching(size(0), size(1)),
        "contains_string" => scale(size(0), READ) * scale(size(1), READ),
        "add_string" | "add_bytes" => scale(size(0) + size(1), READ),
        order if orders_letters(order) => scale(size(0).min(size(1)), READ),
        _ => return None,
    })
}

/// Returns whether an overload compares the letters of two texts, or the bytes of two values.
pub(super) fn orders_letters(overload: &str) -> bool {
    matches!(
        overload,
        "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
    )
}

fn has_constant_size(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Quantity(_)
            | Value::Ip(_)
            | Value::Cidr(_)
            | Value::Format(_)
            | Value::Url(_)
            | Value::Version(_)
    )
}

/// Returns the cost of comparing all items of a list with one another.
fn of_self_comparison(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else {
        return 1;
    };
    let is_text = matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
    let pairs = (list.len() as u64).saturating_mul(list.len() as u64);
    let tenths = if is_text { 21 } else { 20 };
    pairs.saturating_mul(tenths) / 10 + 1 + LIST
}

/// Returns the cost of reading a value with all values inside.
fn of_traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => of_items(list),
        Value::Map(map) => of_entries(map),
        _ => 1,
    }
}

fn of_items(list: &List<'_>) -> u64 {
    list.iter()
        .map(|item| item.as_ref().map_or(1, of_traversal))
        .sum()
}

fn of_entries(map: &Map<'_>) -> u64 {
    let cost = |key: &Value<'_>| {
        let value = map.get_name(match key {
            Value::String(name) => name,
            _ => "",
        });
        of_traversal(key) + value.map_or(1, |value| value.as_ref().map_or(1, of_traversal))
    };
    map.keys().iter().map(cost).sum()
}
