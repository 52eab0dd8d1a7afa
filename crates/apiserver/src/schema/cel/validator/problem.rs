//! The errors of the rules of a schema that are known before a value is checked.

use super::super::program::Program;
use super::super::structural::Rule;
use super::{CompiledRule, Node};
use crate::go_json::to_text;
use crate::quote::Quoted;

/// Maximum estimated cost of one expression in Kubernetes.
const EXPRESSION_COST_MAX: u64 = 10_000_000;

/// Maximum estimated cost of all expressions of a schema in Kubernetes.
const SCHEMA_COST_MAX: u64 = 100_000_000;

/// Maximum number of expressions that an error about the cost of all expressions names.
const EXPENSIVE_MAX: usize = 4;

/// The error of one rule.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The path of the member, which ends in such as `.properties[spec].x-kubernetes-validations[0].rule`.
    pub(crate) path: String,
    /// The invalid value, as Kubernetes shows it in error messages. `None` if the member is forbidden.
    pub(crate) value: Option<String>,
    pub(crate) message: String,
}

/// What the schemas around a node determine.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// The path of the first node whose parts have no old values.
    forbidden: Option<&'a str>,
    /// Maximum count of values of the node in one object, if there is a limit.
    count: Option<u64>,
}

impl Around<'_> {
    pub(super) const ROOT: Around<'static> = Around {
        forbidden: None,
        count: Some(1),
    };
}

/// The problems found so far, and the costs of all expressions.
pub(super) struct Problems {
    found: Vec<Problem>,
    /// Whether the cost of one expression has no limit.
    is_unchanged: bool,
    cost: u64,
    /// The paths and costs of the most expensive expressions, in descending order.
    expensive: Vec<(String, u64)>,
}

impl Problems {
    pub(super) fn new(is_unchanged: bool) -> Problems {
        Problems {
            found: Vec::new(),
            is_unchanged,
            cost: 0,
            expensive: Vec::new(),
        }
    }

    /// Adds the problems of the schema at `path` as a whole.
    pub(super) fn finish(mut self, path: &str) -> Vec<Problem> {
        if self.cost > SCHEMA_COST_MAX {
            for (path, _) in std::mem::take(&mut self.expensive) {
                let message = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                self.forbid(path, message.to_owned());
            }
            let subject =
                "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            let message = cost_message(subject, self.cost, SCHEMA_COST_MAX);
            self.forbid(path.to_owned(), message);
        }
        self.found
    }

    fn forbid(&mut self, path: String, message: String) {
        let value = None;
        self.found.push(Problem {
            path,
            value,
            message,
        });
    }

    fn invalid(&mut self, path: String, value: String, message: String) {
        let value = Some(value);
        self.found.push(Problem {
            path,
            value,
            message,
        });
    }

    /// Counts the cost of an expression.
    fn spend(&mut self, path: String, subject: &str, cost: u64) {
        if !self.is_unchanged && cost > EXPRESSION_COST_MAX {
            let message = cost_message(subject, cost, EXPRESSION_COST_MAX);
            self.forbid(path.clone(), message);
        }
        self.cost = self.cost.saturating_add(cost);
        // Kubernetes ignores what contributes less than a hundredth of the limit.
        if cost >= SCHEMA_COST_MAX / 100 {
            let at = self.expensive.partition_point(|(_, known)| *known >= cost);
            self.expensive.insert(at, (path, cost));
            self.expensive.truncate(EXPENSIVE_MAX);
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the precision is that of Kubernetes"
)]
fn cost_message(subject: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    let advice = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared";
    format!("{subject} exceeds budget by factor of {factor} ({advice})")
}

/// Returns a rule as JSON with the names of Kubernetes' internal form.
fn shown(rule: &Rule) -> String {
    let text = |text: &str| to_text(text);
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text(&rule.source),
        text(&rule.message),
        text(&rule.message_expression),
        rule.reason
            .as_deref()
            .map_or_else(|| "null".to_owned(), text),
        text(&rule.field_path),
        to_text(&rule.optional_old_self),
    )
}

impl Node {
    /// Adds the problems of the nodes below this one, and then its own, as in Kubernetes.
    ///
    /// `path` is the path of the node.
    pub(super) fn problems(&self, path: &str, around: Around<'_>, problems: &mut Problems) {
        let schema = &self.schema;
        let count = around.count.zip(schema.max_below());
        let below = |has_old_values| Around {
            forbidden: around
                .forbidden
                .or(if has_old_values { None } else { Some(path) }),
            count: count.map(|(count, below)| count.saturating_mul(below)),
        };
        if let Some(additional) = &self.additional {
            let path = format!("{path}.additionalProperties");
            additional.problems(&path, below(true), problems);
        }
        let map_type = schema.extensions.map_type.as_deref();
        let is_granular = map_type.is_none_or(|map| map == "granular");
        for (name, property) in &self.properties {
            let path = format!("{path}.properties[{name}]");
            property.problems(&path, below(is_granular), problems);
        }
        for (index, all_of) in self.all_of.iter().enumerate() {
            all_of.problems(&format!("{path}.allOf[{index}]"), around, problems);
        }
        if let Some(items) = &self.items {
            let is_map = schema.extensions.list_type.as_deref() == Some("map");
            items.problems(&format!("{path}.items"), below(is_map), problems);
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let path = format!("{path}.x-kubernetes-validations[{index}]");
            let count = around.count.unwrap_or(self.max_count);
            rule.problems(&path, around.forbidden, count, problems);
        }
    }
}

impl CompiledRule {
    /// `count` is the maximum count of the values that the rule checks in one object.
    fn problems(&self, path: &str, forbidden: Option<&str>, count: u64, problems: &mut Problems) {
        let of = |member: &str| format!("{path}.{member}");
        match &self.program {
            None => {}
            Some(Ok(program)) => {
                let cost = program.max_cost.saturating_mul(count);
                problems.spend(of("rule"), "estimated rule cost", cost);
            }
            Some(Err(message)) => {
                problems.invalid(of("rule"), shown(&self.rule), message.clone());
            }
        }
        match &self.message_expression {
            None => {}
            Some(Ok(program)) => {
                let subject = "estimated messageExpression cost";
                problems.spend(of("messageExpression"), subject, program.max_cost);
            }
            Some(Err(message)) => {
                let path = of("messageExpression");
                problems.invalid(path, shown(&self.rule), message.clone());
            }
        }
        let program = self
            .program
            .as_ref()
            .and_then(|program| program.as_ref().ok());
        if program.is_some_and(Program::uses_old_self) {
            if let Some(around) = forbidden {
                let message = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {around}"
                );
                let value = Quoted(&self.rule.source).to_string();
                problems.invalid(of("rule"), value, message);
            }
        } else if let Some(value) = self.rule.optional_old_self {
            let message = "may not be set if oldSelf is not used in rule";
            let path = of("optionalOldSelf");
            problems.invalid(path, value.to_string(), message.to_owned());
        }
    }
}
