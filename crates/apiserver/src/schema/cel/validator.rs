//! Checks objects with the rules of a schema.
//!
//! Guarantees:
//! - The errors and their texts are those of Kubernetes. Their order is that of the fields' names, where
//!   Kubernetes' order is random.
//! - A rule that refers to `oldSelf` is evaluated only if there is an old value, or if `oldSelf` is optional.
//! - On an update, the error of an unchanged value is a warning, unless the rule refers to `oldSelf`.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value as Json;

use super::cost::{Failure, PER_CALL_LIMIT, TOTAL_LIMIT, TOTAL_WORK_LIMIT};
use super::eval::Inputs;
use super::program::{Evaluated, Program};
use super::structural::{Rule, Schema};
use super::value::Value;
use crate::quote::Quoted;
use crate::status::FieldError;

mod build;
mod correlation;
mod field_path;
mod message;
mod place;
mod problem;
#[cfg(test)]
mod tests;

use correlation::{Correlation, ListIndex};
use place::{COST_EXCEEDED, OUT_OF_BUDGET, Path, RuleInputs, Segment, violation_error};
pub(crate) use problem::Problem;
use problem::{Around, Problems};

/// Maximum size of the errors of one check. Once they exceed it, further errors are not reported.
///
/// The errors repeat the paths of fields and the texts of rules, both of which can be long.
const MAX_ERROR_BYTES: usize = 8 << 20;

/// The compiled rules of a schema.
#[derive(Debug)]
pub(crate) struct Validator {
    root: Option<Node>,
}

/// The rules of one node of a schema and of the nodes below it.
#[derive(Debug)]
struct Node {
    rules: Vec<CompiledRule>,
    /// The reason for which no rule of this node could be compiled.
    failure: Option<&'static str>,
    schema: Arc<Schema>,
    /// How often values of this node fit into one request.
    max_count: u64,
    /// The schema with the fields that rules of a resource can always access.
    data_schema: Arc<Schema>,
    items: Option<Box<Node>>,
    properties: BTreeMap<String, Node>,
    additional: Option<Box<Node>>,
    all_of: Vec<Node>,
}

#[derive(Debug)]
struct CompiledRule {
    rule: Rule,
    /// `None` for an empty rule.
    program: Option<Result<Program, String>>,
    message_expression: Option<Result<Program, String>>,
    /// The field that errors name, relative to the value of the rule.
    field_path: Option<String>,
}

/// The result of a check.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The field of an error about the object itself is `<nil>`.
    pub(crate) errors: Vec<FieldError>,
    /// The errors of unchanged values, as texts.
    pub(crate) warnings: Vec<String>,
    pub(crate) left: Budget,
}

/// What the rules of one object, or of the defaults of one schema, may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Negative if a limit was exceeded.
    cost: i64,
    work: u64,
}

/// The compiled rules of a schema, or of a part of it.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a>(Option<&'a Node>);

/// A value that is checked, with the value that it replaces.
#[derive(Clone)]
struct Place<'a> {
    /// `None` for the object itself.
    path: Option<Rc<Path<'a>>>,
    new: &'a Json,
    old: Option<&'a Json>,
    /// The old value for the comparison of unchanged values.
    correlation: Option<Rc<Correlation<'a>>>,
    /// The closest value around this one that has an old value.
    parent: Option<Rc<Correlation<'a>>>,
}

impl Validator {
    /// Compiles the rules of an `openAPIV3Schema`.
    ///
    /// With `is_resource`, the schema is that of a whole object.
    pub(crate) fn new(schema: &Json, is_resource: bool) -> Validator {
        let root = build::build_root(schema, is_resource);
        Validator { root }
    }

    /// Returns the errors of the compilation. `path` is the path of the schema.
    ///
    /// With `is_unchanged`, the limit of the cost of one expression does not apply.
    pub(crate) fn problems(&self, path: &str, is_unchanged: bool) -> Vec<Problem> {
        let mut problems = Problems::new(is_unchanged);
        if let Some(root) = &self.root {
            root.problems(path, Around::ROOT, &mut problems);
        }
        problems.finish(path)
    }

    /// Returns the rules of the whole schema.
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules(self.root.as_ref())
    }

    /// Checks an object, on an update with the old object.
    pub(crate) fn validate(&self, new: &Json, old: Option<&Json>) -> Outcome {
        self.rules().validate(new, old, Budget::OF_OBJECT, true)
    }
}

// === impl Budget ===

impl Budget {
    pub(crate) const OF_OBJECT: Budget = Budget {
        cost: TOTAL_LIMIT,
        work: TOTAL_WORK_LIMIT,
    };

    pub(crate) fn is_exceeded(self) -> bool {
        self.cost < 0
    }

    /// Returns the lower of two costs and of two works.
    pub(crate) fn min(self, other: Budget) -> Budget {
        Budget {
            cost: self.cost.min(other.cost),
            work: self.work.min(other.work),
        }
    }
}

// === impl Rules ===

impl<'a> Rules<'a> {
    /// Returns the rules of the items of a list.
    pub(crate) fn items(self) -> Rules<'a> {
        Rules(self.0.and_then(|node| node.items.as_deref()))
    }

    pub(crate) fn property(self, name: &str) -> Rules<'a> {
        Rules(self.0.and_then(|node| node.properties.get(name)))
    }

    /// Returns whether there are rules, other than those under `allOf`.
    pub(crate) fn exist(self) -> bool {
        self.0.is_some_and(|node| node.schema.has_rules())
    }

    /// Checks a value, on an update with the old value. Without `ratchets`, unchanged values have errors too.
    pub(crate) fn validate(
        self,
        new: &Json,
        old: Option<&Json>,
        budget: Budget,
        ratchets: bool,
    ) -> Outcome {
        let outcome = Outcome {
            errors: Vec::new(),
            warnings: Vec::new(),
            left: budget,
        };
        let mut check = Check { outcome, bytes: 0 };
        if let Some(root) = self.0 {
            let old = old.filter(|old| !old.is_null());
            let pair = old.filter(|_| ratchets);
            let correlation = pair.map(|old| Rc::new(Correlation::new(new, old, &root.schema)));
            let place = Place {
                path: None,
                new,
                old,
                correlation,
                parent: None,
            };
            check.node(root, &place);
        }
        check.outcome
    }
}

struct Check {
    outcome: Outcome,
    /// The size of all errors and warnings.
    bytes: usize,
}

impl Check {
    /// Checks a value and the values inside. Returns without effect once a limit is exceeded.
    fn node<'a>(&mut self, node: &'a Node, place: &Place<'a>) {
        if place.new.is_null() || self.outcome.left.is_exceeded() {
            return;
        }
        self.rules(node, place);
        for all_of in &node.all_of {
            if self.outcome.left.is_exceeded() {
                return;
            }
            let place = Place {
                correlation: None,
                ..place.clone()
            };
            self.node(all_of, &place);
        }
        match place.new {
            Json::Array(items) => self.items(node, place, items),
            Json::Object(_) => self.fields(node, place),
            _ => {}
        }
    }

    fn items<'a>(&mut self, node: &'a Node, place: &Place<'a>, items: &'a [Json]) {
        let Some(item_node) = &node.items else { return };
        let old = place
            .old
            .and_then(Json::as_array)
            .map_or(&[][..], Vec::as_slice);
        let index = ListIndex::new(&node.schema, old);
        for (number, item) in items.iter().enumerate() {
            if self.outcome.left.is_exceeded() {
                return;
            }
            let (correlation, parent) = match &place.correlation {
                Some(correlation) => (correlation.item(number), Some(Rc::clone(correlation))),
                None => (None, place.parent.clone()),
            };
            let inner = Place {
                path: Some(place.below(Segment::Index(number))),
                new: item,
                old: index.find(item),
                correlation,
                parent,
            };
            self.node(item_node, &inner);
        }
    }

    fn fields<'a>(&mut self, node: &'a Node, place: &Place<'a>) {
        let Json::Object(fields) = place.new else {
            return;
        };
        let map_type = node.schema.extensions.map_type.as_deref();
        let is_correlatable = matches!(map_type, None | Some("granular" | "atomic"));
        let old = place
            .old
            .and_then(Json::as_object)
            .filter(|_| is_correlatable);
        for (name, value) in fields {
            let targets = [
                node.additional
                    .as_deref()
                    .map(|node| (node, Segment::Key(name))),
                node.properties
                    .get(name)
                    .map(|node| (node, Segment::Child(name))),
            ];
            for (field_node, segment) in targets.into_iter().flatten() {
                if self.outcome.left.is_exceeded() {
                    return;
                }
                let (correlation, parent) = place.field_correlation(name);
                let inner = Place {
                    path: Some(place.below(segment)),
                    new: value,
                    old: old
                        .and_then(|old| old.get(name))
                        .filter(|old| !old.is_null()),
                    correlation,
                    parent,
                };
                self.node(field_node, &inner);
            }
        }
    }

    fn rules<'a>(&mut self, node: &'a Node, place: &Place<'a>) {
        if let Some(failure) = node.failure {
            self.fail(
                node,
                place,
                &format!("rule compiler initialization error: {failure}"),
            );
            return;
        }
        if node.rules.is_empty() {
            return;
        }
        if self.outcome.left.cost <= 0 || self.outcome.left.work == 0 {
            self.fail(node, place, OUT_OF_BUDGET);
            self.outcome.left.cost = -1;
            return;
        }
        // Rules that are not evaluated count too, because they can be many.
        let left = &mut self.outcome.left;
        left.work = left.work.saturating_sub(node.rules.len() as u64);
        let inputs = RuleInputs::new(node, place);
        for compiled in &node.rules {
            let program = match &compiled.program {
                None => continue,
                Some(Ok(program)) => program,
                Some(Err(error)) => {
                    self.fail(node, place, &format!("rule compile error: {error}"));
                    continue;
                }
            };
            let is_optional = compiled.rule.optional_old_self == Some(true);
            if program.uses_old_self() && place.old.is_none() && !is_optional {
                continue;
            }
            let inputs = if is_optional {
                &inputs.optional
            } else {
                &inputs.plain
            };
            self.rule(node, (compiled, program), place, inputs);
            if self.outcome.left.is_exceeded() {
                return;
            }
        }
    }

    /// Evaluates one rule.
    fn rule<'a>(
        &mut self,
        node: &'a Node,
        (compiled, program): (&'a CompiledRule, &'a Program),
        place: &Place<'a>,
        inputs: &Inputs<'a>,
    ) {
        let evaluated = program.evaluate(inputs, PER_CALL_LIMIT);
        if !self.spend(&evaluated) {
            self.fail(node, place, OUT_OF_BUDGET);
            return;
        }
        let text = compiled.rule.error_text();
        let detail = match evaluated.result {
            Ok(Value::Bool(true)) => return,
            Ok(_) => return self.violation(node, compiled, place, inputs),
            Err(Failure::LimitExceeded) => {
                self.outcome.left.cost = -1;
                format!(
                    "'{COST_EXCEEDED}': no further validation rules will be run due to call cost \
                     exceeds limit for rule: {text}"
                )
            }
            Err(Failure::Error(error)) if error.starts_with("no such overload") => format!(
                "'{error}': call arguments did not match a supported operator, function or macro \
                 signature for rule: {text}"
            ),
            Err(Failure::Error(error)) => format!("{error} evaluating rule: {text}"),
        };
        self.fail(node, place, &detail);
    }

    /// Reports that a rule could not be evaluated.
    fn fail(&mut self, node: &Node, place: &Place<'_>, detail: &str) {
        if self.bytes <= MAX_ERROR_BYTES {
            let kind = Quoted(&node.schema.kind);
            let body = format!("Invalid value: {kind}: {detail}");
            self.add(place.error("FieldValueInvalid", body));
        }
    }

    fn add(&mut self, error: FieldError) {
        self.bytes += error.field.len() + error.body.len();
        self.outcome.errors.push(error);
    }

    /// Reports a rule whose result is false.
    fn violation<'a>(
        &mut self,
        node: &'a Node,
        compiled: &'a CompiledRule,
        place: &Place<'a>,
        inputs: &Inputs<'a>,
    ) {
        if self.bytes > MAX_ERROR_BYTES {
            return;
        }
        let path = match &compiled.field_path {
            Some(path) => Some(place.below(Segment::Child(path))),
            None => place.path.clone(),
        };
        let place = Place {
            path,
            ..place.clone()
        };
        let message = match &compiled.message_expression {
            Some(Ok(program)) => self.message(program, compiled, inputs),
            _ => Ok(None),
        };
        let error = match message {
            Ok(message) => {
                let message = message.unwrap_or_else(|| compiled.rule.message_or_default());
                violation_error(node, compiled, &place, &message)
            }
            // The limit that the message exceeded ends the check.
            Err(detail) => {
                let kind = Quoted(&node.schema.kind);
                place.error(
                    "FieldValueInvalid",
                    format!("Invalid value: {kind}: {detail}"),
                )
            }
        };
        let uses_old_self =
            matches!(&compiled.program, Some(Ok(program)) if program.uses_old_self());
        if !uses_old_self && place.is_unchanged() {
            let warning = format!("{}: {}", error.field, error.body);
            self.bytes += warning.len();
            self.outcome.warnings.push(warning);
        } else {
            self.add(error);
        }
    }

    /// Returns the message of a message expression, `None` if it has no usable result, or an error if it
    /// exceeded a limit.
    fn message<'a>(
        &mut self,
        program: &'a Program,
        compiled: &CompiledRule,
        inputs: &Inputs<'a>,
    ) -> Result<Option<String>, String> {
        let evaluated = program.evaluate(inputs, PER_CALL_LIMIT);
        if !self.spend(&evaluated) {
            let limit = "running out of cost budget";
            return Err(format!(
                "messageExpression evaluation failed due to {limit}, no further validation rules will be run"
            ));
        }
        match evaluated.result {
            Ok(Value::String(text)) => Ok(message::usable(&text)),
            Err(Failure::LimitExceeded) => {
                self.outcome.left.cost = -1;
                let expression = Quoted(&compiled.rule.message_expression);
                Err(format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {expression}"
                ))
            }
            _ => Ok(None),
        }
    }

    /// Subtracts the cost of an evaluation. Returns false if it exceeds what is left, or if the work of all
    /// evaluations exceeds its limit.
    fn spend(&mut self, evaluated: &Evaluated<Value<'_>>) -> bool {
        let left = &mut self.outcome.left;
        let work = left.work.checked_sub(evaluated.work);
        match (i64::try_from(evaluated.cost), work) {
            (Ok(cost), Some(work)) if cost <= left.cost => {
                left.cost -= cost;
                left.work = work;
                true
            }
            _ => {
                left.cost = -1;
                false
            }
        }
    }
}
